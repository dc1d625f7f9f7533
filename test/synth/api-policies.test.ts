/** The policies of the stacks, as IAM reads them, allow each role its routes of the API. */
import { describe, expect, test } from "vitest";
import { gatewayRouteKeys } from "#shared/fleet/api/api-routes.ts";
import { requestsOf } from "#test/support/policy-guard.ts";
import { ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
const policies = ofType(resources, "AWS::IAM::ManagedPolicy");

const people = ["Viewer", "Reader", "Operator", "Approver", "Robot", "Administrator"] as const;
/** Some of them begin with the same letter. */
const initials: Partial<Record<(typeof people)[number], string>> = { Approver: "P", Robot: "B" };
const initialOf = (name: (typeof people)[number]) => initials[name] ?? name[0];

function who(request: string): string {
  const may = (policy: string) =>
    requestsOf(resources, policy).some((pattern) =>
      new RegExp(
        `^${pattern
          .split("*")
          .map((part) => RegExp.escape(part))
          .join(".*")}$`,
      ).test(request),
    );
  return people.filter(may).map(initialOf).join("");
}

const ns = "/v1/namespaces/:namespace";

/** Every route of the API, and the initials of the roles that may call it. */
const routes = {
  "GET /v1/version": "VROPA",
  "GET /v1/whoami": "VROPBA",
  "GET /v1/installation": "VROPA",
  "POST /v1/apply": "A",
  "GET /v1/clusters": "VROPA",
  "GET /v1/clusters/:name": "VROPA",
  "DELETE /v1/clusters/:name": "A",
  "GET /v1/clusters/:name/syncs": "VROPA",
  "GET /v1/clusters/:name/logs": "VROPA",
  "GET /v1/clusterdiscoveries": "VROPA",
  "GET /v1/clusterdiscoveries/:name": "VROPA",
  "DELETE /v1/clusterdiscoveries/:name": "A",
  "GET /v1/clusterdiscoveries/:name/logs": "VROPA",
  "GET /v1/clustervalues": "VROPA",
  "GET /v1/clustervalues/:name": "VROPA",
  "DELETE /v1/clustervalues/:name": "A",
  "GET /v1/clustervalues/:name/logs": "VROPA",
  "GET /v1/windows": "VROPA",
  "GET /v1/windows/:name": "VROPA",
  "DELETE /v1/windows/:name": "A",
  "GET /v1/windows/:name/logs": "VROPA",
  "GET /v1/logs": "VROPA",
  "GET /v1/audit": "A",
  "GET /v1/fleet": "VROPA",
  "GET /v1/events": "VROPA",
  "POST /v1/clusters/:name/accept": "OA",
  "POST /v1/clusters/:name/recover": "OA",
  "POST /v1/clusters/:name/check": "OA",
  "GET /v1/clusters/:name/check": "VROPA",
  "POST /v1/clusters/:name/cordon": "OA",
  "POST /v1/clusters/:name/uncordon": "OA",
  "GET /v1/freezes": "VROPA",
  "GET /v1/zones": "VROPA",
  "POST /v1/zones/:zone/check": "OA",
  "GET /v1/zones/:zone/check": "VROPA",
  [`POST ${ns}/receivers/:name/trigger`]: "OA",
  "POST /v1/freezes/:freeze": "OA",
  "DELETE /v1/freezes/:freeze": "OA",
  "GET /v1/sources/:namespace/:name/artifacts": "VROPA",
  "GET /v1/sources/:namespace/:name/artifacts/:reference": "RA",
  "GET /v1/:plural": "VROPA",
  [`GET ${ns}/:plural`]: "VROPBA",
  [`GET ${ns}/:plural/:name`]: "VROPBA",
  [`DELETE ${ns}/:plural/:name`]: "A",
  [`POST ${ns}/:plural/:name/suspend`]: "OA",
  [`POST ${ns}/:plural/:name/resume`]: "OA",
  [`POST ${ns}/:plural/:name/reconcile`]: "OA",
  [`POST ${ns}/:plural/:name/refresh`]: "OA",
  [`POST ${ns}/:owners/:name/hold`]: "OA",
  [`POST ${ns}/:owners/:name/release`]: "OA",
  [`POST ${ns}/:owners/:name/promote`]: "OA",
  [`POST ${ns}/:owners/:name/reject`]: "OA",
  [`POST ${ns}/:owners/:name/unreject`]: "OA",
  [`POST ${ns}/:owners/:name/retry`]: "OA",
  [`POST ${ns}/:owners/:name/skip`]: "OA",
  [`POST ${ns}/:owners/:name/rollback`]: "OA",
  [`POST ${ns}/:owners/:name/rollback-deleting`]: "A",
  [`POST ${ns}/:owners/:name/approve`]: "PBA",
  [`POST ${ns}/:owners/:name/exempt`]: "A",
  [`POST ${ns}/:owners/:name/unexempt`]: "OA",
  [`POST ${ns}/syncs/:name/prune`]: "A",
  [`POST ${ns}/syncgroups/:name/approve-guard`]: "A",
  [`GET ${ns}/:plural/:name/events`]: "VROPBA",
  [`GET ${ns}/:plural/:name/logs`]: "VROPBA",
  [`GET ${ns}/syncs/:name/objects`]: "VROPBA",
  [`GET ${ns}/sources/:name/revisions`]: "VROPBA",
  "GET /v1/clusters/:name/objects": "VROPA",
  [`GET ${ns}/:owners/:name/history`]: "VROPBA",
  [`GET ${ns}/:owners/:name/syncs`]: "VROPBA",
  [`GET ${ns}/:owners/:name/fleet`]: "VROPBA",
  [`POST ${ns}/:owners/:name/contents`]: "RA",
  [`POST ${ns}/sources/:name/contents`]: "RA",
  // A job gets a policy for the Source that it pushes to.
  [`POST ${ns}/sources/:name/uploads`]: "A",
  [`GET ${ns}/:owners/:name/rollout`]: "VROPBA",
  [`GET ${ns}/:owners/:name/rollouts`]: "VROPBA",
  [`GET ${ns}/:owners/:name/rollouts/:number`]: "VROPBA",
  [`GET ${ns}/:owners/:name/rollouts/:number/targets`]: "VROPBA",
} as const;

/** The routes of the gateway for one route of the table, which leaves the kind of the object open. */
function routesOf(route: string): readonly string[] {
  const kinds: Readonly<Record<string, string>> = {
    ":plural": "(sources|receivers|syncgroups|syncs|rollouts)",
    ":owners": "(syncgroups|syncs)",
  };
  const parts = route.split(/(:plural|:owners)(?=\/|$)/);
  const pattern = parts.map((each) => kinds[each] ?? RegExp.escape(each.replaceAll(/:(\w+)/g, "{$1}"))).join("");
  return gatewayRouteKeys().filter((key) => new RegExp(`^${pattern}$`).test(key));
}

describe("viewers, readers, operators, approvers, robots and administrators", () => {
  test.each(
    Object.entries(routes).flatMap(([route, expected]) => routesOf(route).map((key) => [key, expected] as const)),
  )("%s is allowed for %s, whether IAM checks the path of the request or of the route", (key, expected) => {
    const asked = key.replace(" ", "");
    expect([asked, asked.replaceAll(/\{(\w+)\}/g, "any-$1")].map(who)).toEqual([expected, expected]);
  });

  test("every policy is within the length limit of IAM", () => {
    for (const { Properties } of policies) {
      const longest = JSON.stringify(Properties.PolicyDocument, (_name, value) =>
        typeof value === "object" && value !== null && "Fn::Join" in value ? textOf(value) : value,
      );
      expect(longest.replaceAll(/<[^>]*>/g, "ap-southeast-1-----").length).toBeLessThan(6144);
    }
  });

  test("no role may call a route that the API does not have, or a route of another API", () => {
    expect(["PUT/v1/clusters/c1", "POST/v1/clusters/c1", "GET/hook/github", "POST/hook/github"].map(who)).toEqual([
      "A",
      "A",
      "",
      "",
    ]);
    for (const { Properties } of policies) {
      const [statement] = (Properties.PolicyDocument as { Statement: { Action: string; Resource: unknown }[] })
        .Statement;
      expect(statement?.Action).toBe("execute-api:Invoke");
      for (const resource of [statement?.Resource].flat()) {
        expect(textOf(resource)).toMatch(
          /^arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<WiringApiEntryHttp\w+>\/\$default\/[A-Z*]+\/v1\//,
        );
      }
    }
  });

  test("every role but a robot's may invoke the function of the dashboards, and no other function", () => {
    for (const { id, Properties } of policies) {
      const { Statement } = Properties.PolicyDocument as { Statement: { Action: string; Resource: unknown }[] };
      expect(Statement.slice(1).map(({ Action, Resource: on }) => `${Action} ${textOf(on)}`)).toEqual(
        id.includes("Robot")
          ? []
          : [expect.stringMatching(/^lambda:InvokeFunction <WiringDashboardFunction\w+\.Arn>$/)],
      );
    }
  });

  test("the table of this test has every route of the API", () => {
    expect(Object.keys(routes).flatMap(routesOf).toSorted()).toEqual([...gatewayRouteKeys()].sort());
  });

  test("CloudFormation keeps a policy that is in use, and no policy has a name that another installation could take", () => {
    expect(policies).toHaveLength(6);
    for (const { DeletionPolicy, Properties } of policies) {
      expect(DeletionPolicy).toBe("RetainExceptOnCreate");
      expect(Properties.ManagedPolicyName).toBeUndefined();
    }
  });
});
