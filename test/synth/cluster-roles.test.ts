/** The settings say in which accounts the apply function may assume roles; by default only in its own one. */
import { App, Stack } from "aws-cdk-lib";
import { describe, expect, test } from "vitest";
import { assumeClusterRoles, clusterRoles, sayWhichAccounts } from "#infra/cluster-roles.ts";
import { readSettings } from "#infra/read-settings.ts";
import type { StarlingSettings } from "#infra/settings.ts";
import { textOf } from "#test/synth/synthesized.ts";

const accounts = "111122223333, 444455556666";
const organization = "o-a1b2c3d4e5";

function rolesFor(settings: StarlingSettings) {
  return clusterRoles(readSettings({ installation: "staging", ...settings }));
}

function granted(settings: StarlingSettings) {
  const { action, arns, conditions } = assumeClusterRoles(rolesFor(settings));
  const stack = new Stack(new App(), "Any");
  return { action, arns: arns.map((arn) => textOf(stack.resolve(arn))), conditions };
}

const roleIn = (account: string, names = "staging/clusters/*") => `arn:<AWS::Partition>:iam::${account}:role/${names}`;
const member = { StringEquals: { "aws:ResourceOrgID": organization } };

describe("apply may assume roles", () => {
  test.each([
    ["of its own account and path by default", {}, [roleIn("<AWS::AccountId>")], undefined],
    [
      "of named accounts besides its own",
      { clusterAccounts: accounts },
      [roleIn("<AWS::AccountId>"), roleIn("111122223333"), roleIn("444455556666")],
      undefined,
    ],
    ["of all accounts of an organization", { organization }, [roleIn("*")], member],
    [
      "of named accounts while they are in the organization",
      { clusterAccounts: "111122223333", organization },
      [roleIn("<AWS::AccountId>"), roleIn("111122223333")],
      member,
    ],
    [
      "of a path that the settings name",
      { clusterRoles: "fleet/member-*" },
      [roleIn("<AWS::AccountId>", "fleet/member-*")],
      undefined,
    ],
  ])("%s", (_what, settings, arns, conditions) => {
    expect(granted(settings)).toEqual({ action: "sts:AssumeRole", arns, conditions });
  });
});

test.each([
  [{}, true],
  [{ clusterAccounts: "111122223333" }, false],
  [{ organization }, false],
])("a synthesis with %j notes that only the own account is allowed: %s", (settings, said) => {
  const stack = new Stack(new App(), "Any");
  sayWhichAccounts(stack, rolesFor(settings));
  const infos = stack.node.metadata.filter(({ type }) => type === "aws:cdk:info").map(({ data }) => String(data));
  const expected = expect.stringContaining("staging/clusters/* only in its own account; to allow other accounts, set");
  expect(infos).toEqual(said ? [expected] : []);
});
