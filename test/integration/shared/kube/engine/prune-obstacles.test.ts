import { afterEach, expect, test } from "vitest";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { ensureParent } from "#shared/kube/engine/ensure-parent.ts";
import { type PruneResult, pruneSet } from "#shared/kube/engine/prune-set.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { claimFor, configMap, definition, deployment, namespace, widget } from "#test/support/cluster-fixture.ts";
import { faultyEngineWorld, pruneRequest } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

/** Obstacles of a deletion, in a cluster with settable faults. */
const cluster = forAllTests(faultyEngineWorld);
afterEach(() => cluster.setFaults({}));

const configPath = (ns: string) => `/api/v1/namespaces/${ns}/configmaps/c`;

async function applied(set: string, objects: readonly ManifestObject[]) {
  const claim = claimFor(set);
  await ensureParent(cluster.client, { claim, groupKinds: [] });
  return { claim, inventory: await cluster.applied(set, objects) };
}

function summary(result: PruneResult) {
  if (result.outcome === "refused") throw new Error(result.message);
  return {
    outcome: result.outcome,
    objects: Object.fromEntries(result.objects.map(({ id, outcome }) => [`${id.kind} ${id.name}`, outcome])),
    settled: result.settled.map(({ name }) => name),
  };
}

/** Deletes the object between the prune's read and its deletion. */
function rivalled(rival: () => Promise<unknown>): ClusterClient {
  return watchedClient(cluster.client, async ({ method }) => {
    if (method === "delete") await rival();
  });
}

test("a deletion that is refused fails alone, and its object stays in the inventory", async () => {
  const keep = [namespace("refused")];
  const set = await applied("refused", [...keep, configMap("refused/c"), deployment("refused/web")]);
  const about = { kinds: ["ConfigMap"], operations: ["DELETE" as const] };
  await cluster.setFaults({ webhooks: [{ name: "policy.example.com", does: "deny", message: "not today", ...about }] });
  const result = await pruneSet(cluster.client, pruneRequest(set, keep));
  expect(summary(result)).toEqual({
    outcome: "failed",
    objects: { "Deployment web": "deleted", "ConfigMap c": "failed" },
    settled: ["web"],
  });
  expect(result).toMatchObject({
    objects: [{}, { failure: { reason: "Forbidden" }, message: expect.stringContaining("not today") }],
  });
  expect(await cluster.statusOf(configPath("refused"))).toBe(200);
});

test("an object that takes the name between the read and the deletion survives", async () => {
  const keep = [namespace("replaced")];
  const set = await applied("replaced", [...keep, configMap("replaced/c")]);
  const client = rivalled(async () => {
    await cluster.raw("DELETE", configPath("replaced"));
    await cluster.raw("POST", "/api/v1/namespaces/replaced/configmaps", { body: configMap("replaced/c") });
  });
  const result = await pruneSet(client, pruneRequest(set, keep));
  expect(summary(result)).toEqual({ outcome: "done", objects: { "ConfigMap c": "foreign" }, settled: ["c"] });
  expect(result).toMatchObject({ objects: [{ message: "another object has taken its name" }] });
  expect(await cluster.statusOf(configPath("replaced"))).toBe(200);
});

test("an object that disappears between the read and the deletion counts as deleted", async () => {
  const keep = [namespace("gone")];
  const set = await applied("gone", [...keep, configMap("gone/c")]);
  const client = rivalled(() => cluster.raw("DELETE", configPath("gone")));
  expect(summary(await pruneSet(client, pruneRequest(set, keep)))).toEqual({
    outcome: "done",
    objects: { "ConfigMap c": "deleted" },
    settled: ["c"],
  });
});

test("a cluster that does not answer ends the prune, and nothing is settled", async () => {
  const keep = [namespace("silent")];
  const set = await applied("silent", [...keep, configMap("silent/c")]);
  const client = rivalled(async () => {
    await cluster.setFaults({ network: "refused" });
  });
  await expect(pruneSet(client, pruneRequest(set, keep))).rejects.toMatchObject({ class: "unreachable" });
  await cluster.setFaults({});
  expect(await cluster.statusOf(configPath("silent"))).toBe(200);
});

test("no request is sent if nothing is to be deleted", async () => {
  const set = await applied("idle", [namespace("idle")]);
  const asked: string[] = [];
  const client = watchedClient(cluster.client, async ({ method }) => void asked.push(method));
  expect(summary(await pruneSet(client, pruneRequest(set, [namespace("idle")])))).toMatchObject({ outcome: "done" });
  expect(asked).toEqual([]);
});

test("an API that does not answer keeps its objects in the inventory, and its name is reported", async () => {
  const group = "silent.example.com";
  const keep = [namespace("hidden"), definition(group)];
  const set = await applied("hidden", [...keep, widget(group, "hidden/w")]);
  await cluster.setFaults({ unavailableApis: [`v1.${group}`] });
  cluster.client.forgetKinds();
  const result = await pruneSet(cluster.client, pruneRequest(set, keep));
  expect(summary(result)).toEqual({ outcome: "waiting", objects: { "Widget w": "waiting" }, settled: [] });
  expect(result).toMatchObject({ objects: [{ message: expect.stringContaining(group) }] });
});

test.each([
  ["another group's of the same kind", "other.example.com", "Widget"],
  ["the same group's of another kind", "defined.example.com", "Gadget"],
] as const)("objects of a kind that is not defined are gone, beside a definition of %s", async (_name, group, kind) => {
  const own = "defined.example.com";
  const ns = `defined-${kind.toLowerCase()}`;
  const keep = [namespace(ns)];
  const set = await applied(ns, [...keep, definition(own), widget(own, `${ns}/w`)]);
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await cluster.raw("DELETE", `${definitions}/widgets.${own}`);
  await expect.poll(() => cluster.statusOf(`${definitions}/widgets.${own}`), { timeout: 20_000 }).toBe(404);
  const plural = `${kind.toLowerCase()}s`;
  const { spec } = definition(group) as unknown as { readonly spec: object };
  const names = { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() };
  const beside = { ...definition(group), metadata: { name: `${plural}.${group}` }, spec: { ...spec, names } };
  await cluster.raw("POST", definitions, { body: beside });
  cluster.client.forgetKinds();
  const candidates = set.inventory.entries.filter(({ id }) => id.kind === "Widget");
  const result = await pruneSet(cluster.client, pruneRequest(set, keep, { candidates }));
  expect(summary(result).objects).toEqual({ "Widget w": "absent" });
});

test("objects of a kind that is defined and not served for the moment are not taken for gone", async () => {
  const group = "unserved.example.com";
  const keep = [namespace("unserved"), definition(group)];
  const set = await applied("unserved", [...keep, widget(group, "unserved/w")]);
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.${group}`;
  const serve = (served: boolean) =>
    cluster.raw("PATCH", path, {
      as: "json-patch",
      body: [{ op: "replace", path: "/spec/versions/0/served", value: served }],
    });
  await serve(false);
  const widgetPath = `/apis/${group}/v1/namespaces/unserved/widgets/w`;
  await expect.poll(() => cluster.statusOf(widgetPath), { timeout: 20_000 }).toBe(404);
  cluster.client.forgetKinds();
  const result = await pruneSet(cluster.client, pruneRequest(set, keep));
  expect(summary(result)).toEqual({ outcome: "waiting", objects: { "Widget w": "waiting" }, settled: [] });
  expect(result).toMatchObject({ objects: [{ message: "Widget is defined, but not served at the moment" }] });
  await serve(true);
  await expect.poll(() => cluster.statusOf(widgetPath), { timeout: 20_000 }).toBe(200);
});

test("a resource whose name only looks like a definition of a group does not make the prune wait", async () => {
  const keep = [namespace("called")];
  const called = { ...configMap("called/x.apps"), metadata: { name: "x.apps", namespace: "called" } };
  const set = await applied("called", [...keep, called, deployment("called/web")]);
  const hold = { metadata: { finalizers: ["example.com/hold"] } };
  const path = "/apis/apps/v1/namespaces/called/deployments/web";
  await cluster.raw("PATCH", path, { as: "merge-patch", body: hold });
  expect(summary(await pruneSet(cluster.client, pruneRequest(set, keep)))).toEqual({
    outcome: "waiting",
    objects: { "Deployment web": "terminating", "ConfigMap x.apps": "deleted" },
    settled: ["x.apps"],
  });
});
