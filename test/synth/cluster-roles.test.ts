/** Whose roles the apply function may assume is the operator's to say, and nobody's when nobody says it. */
import { App, Stack } from "aws-cdk-lib";
import { describe, expect, test } from "vitest";
import { assumeClusterRoles, clusterRoles, sayWhichAccounts } from "#infra/cluster-roles.ts";
import { textOf } from "#test/synth/synthesized.ts";

const accounts = "111122223333, 444455556666";
const organization = "o-a1b2c3d4e5";

function granted(context: Parameters<typeof clusterRoles>[1]) {
  const { action, arns, conditions } = assumeClusterRoles(clusterRoles("staging", context));
  const stack = new Stack(new App(), "Any");
  return { action, arns: arns.map((arn) => textOf(stack.resolve(arn))), conditions };
}

const roleIn = (account: string, names = "staging/clusters/*") => `arn:<AWS::Partition>:iam::${account}:role/${names}`;
const member = { StringEquals: { "aws:ResourceOrgID": organization } };

describe("apply may assume the roles", () => {
  test.each([
    ["of its own account and path", {}, [roleIn("<AWS::AccountId>")], undefined],
    [
      "of the accounts that are named, too",
      { clusterAccounts: accounts },
      [roleIn("<AWS::AccountId>"), roleIn("111122223333"), roleIn("444455556666")],
      undefined,
    ],
    ["of an organization's accounts", { organization }, [roleIn("*")], member],
    [
      "of accounts as long as they are members",
      { clusterAccounts: "111122223333", organization },
      [roleIn("<AWS::AccountId>"), roleIn("111122223333")],
      member,
    ],
    ["of another path", { clusterRoles: "fleet/member-*" }, [roleIn("<AWS::AccountId>", "fleet/member-*")], undefined],
  ])("%s", (_what, context, arns, conditions) => {
    expect(granted(context)).toEqual({ action: "sts:AssumeRole", arns, conditions });
  });

  test.each([
    [
      { clusterRoles: "starling-*" },
      /^context clusterRoles is "starling-\*"; give it a path and a name, such as staging\/clusters\/\*, /,
    ],
    [{ clusterRoles: "*" }, /^context clusterRoles/],
    [{ clusterRoles: "*/x" }, /^context clusterRoles/],
    [{ clusterRoles: "fleet*/x" }, /^context clusterRoles/],
    [{ clusterRoles: "/fleet/x" }, /^context clusterRoles/],
    [{ clusterRoles: "admin" }, /^context clusterRoles/],
    [
      { clusterAccounts: "11112222333" },
      /^context clusterAccounts has "11112222333"; give it account ids of 12 digits/,
    ],
    [{ clusterAccounts: "111122223333,*" }, /^context clusterAccounts has "\*"/],
    [{ clusterAccounts: "111122223333," }, /^context clusterAccounts has ""/],
    [{ organization: "acme" }, /^context organization is "acme"; give it the id of one, such as o-a1b2c3d4e5/],
    [{ organization: "*" }, /^context organization/],
  ])("unless the context is %j", (context, message) => {
    expect(() => clusterRoles("staging", context)).toThrow(message);
  });
});

test.each([
  [{}, true],
  [{ clusterAccounts: "111122223333" }, false],
  [{ organization }, false],
])("a synthesis with %j says that other accounts are to be named: %s", (context, said) => {
  const stack = new Stack(new App(), "Any");
  sayWhichAccounts(stack, clusterRoles("staging", context));
  const infos = stack.node.metadata.filter(({ type }) => type === "aws:cdk:info").map(({ data }) => String(data));
  const expected = expect.stringContaining("staging/clusters/* of its own account only; name others by context");
  expect(infos).toEqual(said ? [expected] : []);
});
