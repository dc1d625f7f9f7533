/** Who may look, who may stop and start, and who may change what is wanted: as IAM reads the stacks' policies. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { requestsOf } from "#test/support/policy-guard.ts";
import { ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
const policies = ofType(resources, "AWS::IAM::ManagedPolicy");

const people = ["Viewer", "Operator", "Administrator"] as const;

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
  return people
    .filter(may)
    .map((name) => name[0])
    .join("");
}

const ns = "/v1/namespaces/shop";

/** Every route of the door | who may. */
const routes = {
  "GET /v1/version": "VOA",
  "GET /v1/whoami": "VOA",
  "GET /v1/installation": "VOA",
  "POST /v1/apply": "A",
  "GET /v1/clusters": "VOA",
  "GET /v1/clusters/:name": "VOA",
  "DELETE /v1/clusters/:name": "A",
  "GET /v1/clusters/:name/syncs": "VOA",
  "GET /v1/clusters/:name/logs": "VOA",
  "GET /v1/clusterdiscoveries": "VOA",
  "GET /v1/clusterdiscoveries/:name": "VOA",
  "DELETE /v1/clusterdiscoveries/:name": "A",
  "GET /v1/clusterdiscoveries/:name/logs": "VOA",
  "GET /v1/clustervalues": "VOA",
  "GET /v1/clustervalues/:name": "VOA",
  "DELETE /v1/clustervalues/:name": "A",
  "GET /v1/clustervalues/:name/logs": "VOA",
  "GET /v1/logs": "VOA",
  "GET /v1/fleet": "VOA",
  "POST /v1/clusters/:name/accept": "OA",
  "POST /v1/clusters/:name/recover": "OA",
  "POST /v1/clusters/:name/check": "OA",
  "GET /v1/clusters/:name/check": "VOA",
  "GET /v1/freezes": "VOA",
  "POST /v1/freezes/:freeze": "OA",
  "DELETE /v1/freezes/:freeze": "OA",
  "GET /v1/:plural": "VOA",
  [`GET ${ns}/:plural`]: "VOA",
  [`GET ${ns}/:plural/:name`]: "VOA",
  [`DELETE ${ns}/:plural/:name`]: "A",
  [`POST ${ns}/:plural/:name/suspend`]: "OA",
  [`POST ${ns}/:plural/:name/resume`]: "OA",
  [`POST ${ns}/:plural/:name/reconcile`]: "OA",
  [`POST ${ns}/:plural/:name/restart`]: "OA",
  [`POST ${ns}/syncs/:name/prune`]: "A",
  [`GET ${ns}/:plural/:name/events`]: "VOA",
  [`GET ${ns}/:plural/:name/logs`]: "VOA",
  [`GET ${ns}/:subjects/:name/syncs`]: "VOA",
  [`GET ${ns}/:subjects/:name/rollout`]: "VOA",
  [`GET ${ns}/:subjects/:name/rollouts`]: "VOA",
  [`GET ${ns}/:subjects/:name/rollouts/:number`]: "VOA",
  [`GET ${ns}/:subjects/:name/rollouts/:number/targets`]: "VOA",
} as const;

describe("of viewers, operators and administrators", () => {
  test.each(Object.entries(routes))("%s is for %s", (route, expected) => {
    const [method, path = ""] = route.split(" ");
    expect(who(`${method}${path.replaceAll(":", "any-")}`)).toBe(expected);
  });

  test("none may what the door has not, nor what another API has", () => {
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
          /^arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<WiringFrontDoorHttp\w+>\/\$default\/[A-Z*]+\/v1\//,
        );
      }
    }
  });

  test("every route of the door is in the table above", () => {
    const source = readFileSync("functions/api/routes.ts", "utf8");
    const written = [...source.matchAll(/method: "([A-Z]+)",\s+path: ["`]([^"`]+)["`]/g)].map(
      ([, method, path = ""]) => `${method} ${path.replace(/^\$\{ns\}/, ns)}`,
    );
    const told = [
      ...new Set(Object.keys(routes).map((route) => route.replace(/(suspend|resume|reconcile|restart)$/, ":verb"))),
    ];
    expect(written.length).toBeGreaterThan(20);
    expect(written.toSorted()).toEqual(told.toSorted());
  });

  test("the policies are kept where somebody has them, and have no name that another installation could want", () => {
    expect(policies).toHaveLength(3);
    for (const { DeletionPolicy, Properties } of policies) {
      expect(DeletionPolicy).toBe("RetainExceptOnCreate");
      expect(Properties.ManagedPolicyName).toBeUndefined();
    }
  });
});
