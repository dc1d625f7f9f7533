/** Clusters are worked on by the workers of their zones, and by no others. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { mayDo, refusedCalls, statementsOf } from "#test/support/policy-guard.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const zones = JSON.stringify([
  { name: "fixed", vpc: {} },
  { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] },
]);
/** The clusters of the messages that each function got. */
const worked = new Map<string, Set<string>>();
let world: World;

beforeAll(async () => {
  world = await startWorld({
    zones,
    sandboxes: (functionName, wire) => {
      const handler = wire();
      return async (event, context) => {
        for (const { body } of (event as { readonly Records?: readonly { readonly body: string }[] }).Records ?? []) {
          const { cluster } = JSON.parse(body) as { readonly cluster?: string };
          if (cluster !== undefined && functionName.startsWith("apply")) noteWork(functionName, cluster);
        }
        return handler(event, context);
      };
    },
  });
});
afterAll(() => world.close());

function noteWork(functionName: string, cluster: string): void {
  worked.set(functionName, (worked.get(functionName) ?? new Set()).add(cluster));
}

function configMap(color: string): string {
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "web", namespace }, data: { color } });
}

/** The answer of `starling cluster check`: the check that the workers of the cluster's zone made. */
async function checkOf(cluster: string) {
  const path = `/v1/clusters/${cluster}/check`;
  const asked = await world.session.call<{ readonly id: string; readonly zone?: string }>("POST", path);
  const { links } = await world.waitFor("the check", async () => {
    const { answer } = await world.session.call<{ readonly answer?: ClusterCheck }>("GET", path);
    return answer?.id === asked.id && answer;
  });
  return { zone: asked.zone, links: links.map(({ link, state, value }) => `${link} ${state} ${value}`) };
}

const namespaceFile = JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });

test("each cluster is worked on in its zone, from the first assignment to checks that the tick asks for", async () => {
  await world.join({ name: "c1" }, { name: "c2", zone: "fixed" }, { name: "c3", zone: "spoke" });
  await world.createRepository("shop", { "deploy/web.json": configMap("red"), "deploy/ns.json": namespaceFile });
  await world.apply(
    {
      apiVersion: "starling.dev/v1alpha1",
      kind: "Source",
      metadata: { name: "shop", namespace },
      spec: { git: { url: world.git.url("shop"), ref: { branch: "main" } } },
    },
    {
      apiVersion: "starling.dev/v1alpha1",
      kind: "SyncGroup",
      metadata: { name: "web", namespace },
      spec: { clusters: { all: true }, templates: [{ name: "web", source: "shop", path: "deploy" }] },
    },
  );
  const commit = await world.push("shop", { "deploy/web.json": configMap("blue") });
  await world.untilInSync("web", commit);
  expect(Object.fromEntries([...worked].map(([name, clusters]) => [name, [...clusters].sort()]))).toEqual({
    apply: ["c1"],
    "apply-fixed": ["c2"],
    "apply-spoke": ["c3"],
  });
  worked.clear();
  expect(await checkOf("c1")).toEqual({ zone: "home", links: expect.not.arrayContaining(["zone ok home"]) });
  expect(await checkOf("c2")).toEqual({ zone: "fixed", links: expect.arrayContaining(["zone ok fixed"]) });
  expect(await checkOf("c3")).toEqual({ zone: "spoke", links: expect.arrayContaining(["zone ok spoke"]) });
  expect(worked.get("apply-fixed")).toEqual(new Set(["c2"]));
});

test("`get zones` lists each zone with its network, its addresses, and its clusters", async () => {
  expect(await world.session.call("GET", "/v1/zones")).toMatchObject({
    items: [
      { metadata: { name: "home" }, network: { type: "none", addresses: [] } },
      { metadata: { name: "fixed" }, network: { type: "vpc", addresses: ["192.0.2.1"] } },
      { metadata: { name: "spoke" }, network: { type: "subnets", addresses: [] } },
    ],
  });
});

test("the workers of a zone know the addresses and the security groups of its network", () => {
  const environmentOf = (name: string) =>
    world.machine.plan.functions.find(({ functionName }) => functionName === name)?.environment ?? {};
  expect(environmentOf("apply")).not.toHaveProperty("STARLING_ZONE_ADDRESSES");
  expect(environmentOf("apply-fixed")).toMatchObject({ STARLING_ZONE_ADDRESSES: { Ref: expect.any(String) } });
  expect(environmentOf("apply-spoke")).toMatchObject({ STARLING_ZONE_SECURITY_GROUPS: "sg-0a1b2c3d4e5f60718" });
});

test("the roles allow every call of the functions, and no zone touches the queues and clusters of another", async () => {
  const { resources } = await synthesizeTemplates({ zones });
  expect(refusedCalls(world.calls(), resources)).toEqual([]);
  const touched = Object.groupBy(world.calls(), (call) => call.function);
  for (const [worker, zone, cluster] of [
    ["apply", "home", "c1"],
    ["apply-fixed", "fixed", "c2"],
    ["apply-spoke", "spoke", "c3"],
  ] as const) {
    const calls = touched[worker] ?? [];
    const keys = calls.flatMap(({ leadingKey }) => leadingKey ?? []).filter((key) => /^(CL|CHECK|ZONE)#/.test(key));
    expect(new Set(keys)).toEqual(new Set([`CL#${cluster}`, `CHECK#${cluster}`, `ZONE#${zone}`]));
    const own = new RegExp(
      zone === "home"
        ? "WiringTo(Apply|ApplySlow|Report|Render)Queue"
        : `starling-zone-${zone}-|To(Report|Render)Queue`,
    );
    const queues = calls.filter(({ action }) => action.startsWith("sqs:")).map(({ resource }) => resource);
    expect(queues.filter((queue) => !own.test(queue))).toEqual([]);
    const others = ["home", "fixed", "spoke"].filter((other) => other !== zone);
    for (const other of others) {
      const update = {
        action: "dynamodb:UpdateItem",
        resource: "<starling-state-table-arn>",
        partition: `ZONE#${other}`,
      };
      const queue = other === "home" ? "WiringToApplyQueue" : `WiringZone${other}ToApplyQueue`;
      expect(mayDo(update, statementsOf(resources, worker))).toBe(false);
      expect(mayDo({ action: "sqs:SendMessage", resource: `<${queue}>` }, statementsOf(resources, worker))).toBe(false);
    }
  }
});
