/**
 * Sets of one cluster that are checked one after the other: the requests to its API server, and the objects that each
 * set finds.
 */
import { startClusterHost } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { systemClock } from "#shared/adapters/system.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { detectDrift } from "#shared/kube/engine/detect-drift.ts";
import { SharedLists } from "#shared/kube/engine/shared-lists.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { configMap, definition, endpointOf, namespace, widget } from "#test/support/cluster-fixture.ts";
import { engineWorld } from "#test/support/engine-world.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const host = forEachTest(() => startClusterHost({ controllers: "off" }));
const cluster = forEachTest(async () => engineWorld({ endpoint: endpointOf(host.addCluster("test")) }));

/** Milliseconds by which the clock is ahead. */
let aheadMs = 0;
const clock = { now: () => new Date(systemClock.now().getTime() + aheadMs) };

const inNamespace = (name: string) => [namespace(name), configMap(`${name}/one`), configMap(`${name}/two`)];

async function sets(...names: readonly string[]): Promise<readonly Inventory[]> {
  const inventories: Inventory[] = [];
  for (const name of names) inventories.push(await cluster.applied(name, inNamespace(name)));
  host.clearRequests();
  return inventories;
}

const asked = () => host.requests().map(({ method, path }) => `${method} ${path.replace(/\?.*/, "")}`);
const edit = (at: string) =>
  cluster.raw("PATCH", `/api/v1/namespaces/${at}/configmaps/one`, {
    as: "merge-patch",
    body: { data: { k: "edited" } },
  });

test("all sets share one list of each kind, and each set finds its own changed objects", async () => {
  const inventories = await sets("a", "b", "c");
  await edit("b");
  host.clearRequests();
  const client = new SharedLists(inventories, clock).of(cluster.client, cluster.client);
  const found: string[][] = [];
  for (const inventory of inventories) {
    const { drifted, foreign, unread } = await detectDrift(client, inventory);
    expect([foreign, unread]).toEqual([[], []]);
    found.push(drifted.map(({ id, how }) => `${id.namespace}/${id.name} ${how}`));
  }
  expect(found).toEqual([[], ["b/one changed"], []]);
  expect(asked().sort()).toEqual([
    "GET /api/v1/configmaps",
    "GET /api/v1/namespaces",
    // Only the set of a changed object reads it in full.
    "GET /api/v1/namespaces/b/configmaps",
  ]);
});

test("no other namespace is read if all objects are in one namespace", async () => {
  await cluster.applied("first", [namespace("shared")]);
  const one = await cluster.applied("one", [configMap("shared/one")]);
  const two = await cluster.applied("two", [configMap("shared/two")]);
  host.clearRequests();
  const client = new SharedLists([one, two], clock).of(cluster.client, cluster.client);
  for (const inventory of [one, two]) expect((await detectDrift(client, inventory)).clean).toBe(true);
  expect(asked()).toEqual(["GET /api/v1/namespaces/shared/configmaps"]);
});

test("an object with a copied label is reported as without shared lists, and only in the set's own namespaces", async () => {
  const [a, b] = await sets("a", "b");
  if (a === undefined || b === undefined) throw new Error("there are no sets");
  const label = { "applyset.kubernetes.io/part-of": a.setId };
  const copy = (at: string) => {
    const object = configMap(at);
    return { ...object, metadata: { ...object.metadata, labels: label } };
  };
  await cluster.raw("POST", "/api/v1/namespaces/a/configmaps", { body: copy("a/here") });
  await cluster.raw("POST", "/api/v1/namespaces/b/configmaps", { body: copy("b/elsewhere") });
  const alone = await detectDrift(cluster.client, a);
  const shared = await detectDrift(new SharedLists([a, b], clock).of(cluster.client, cluster.client), a);
  expect(shared.foreign.map(({ id }) => id.name)).toEqual(["here"]);
  expect(shared.foreign).toEqual(alone.foreign);
});

test("a set that asks again, late or after a write reads the current state", async () => {
  const [a, b, c] = await sets("a", "b", "c");
  if (a === undefined || b === undefined || c === undefined) throw new Error("there are no sets");
  const lists = new SharedLists([a, b, c], clock);
  const client = lists.of(cluster.client, cluster.client);
  const isClean = async (inventory: Inventory) => (await detectDrift(client, inventory)).clean;
  expect(await isClean(a)).toBe(true);
  await edit("a");
  await edit("b");
  expect(await isClean(a)).toBe(false);
  // An existing list is fresh enough for a set that asks for the first time.
  expect(await isClean(b)).toBe(true);
  await edit("c");
  const kind = await client.lookup({ group: "", kind: "ConfigMap" });
  if (kind.outcome !== "found") throw new Error("there are no ConfigMaps");
  await client.create(kind.info, configMap("c/another"));
  expect(await isClean(c)).toBe(false);

  const later = new SharedLists([a, b, c], clock);
  const lateClient = later.of(cluster.client, cluster.client);
  await detectDrift(lateClient, a);
  await cluster.raw("DELETE", "/api/v1/namespaces/c/configmaps/two");
  aheadMs += 16_000;
  const { drifted } = await detectDrift(lateClient, c);
  expect(drifted.map(({ id, how }) => `${id.name} ${how}`).sort()).toEqual(["one changed", "two missing"]);
});

test("a definition is read once for all sets", async () => {
  const group = "shared.example.com";
  await cluster.applied("definitions", [definition(group)]);
  const objects = (name: string) => [namespace(name), widget(group, `${name}/w`)];
  const inventories = [await cluster.applied("a", objects("a")), await cluster.applied("b", objects("b"))];
  host.clearRequests();
  const client = new SharedLists(inventories, clock).of(cluster.client, cluster.client);
  for (const inventory of inventories) expect((await detectDrift(client, inventory)).clean).toBe(true);
  expect(asked().filter((request) => request.includes("customresourcedefinitions"))).toHaveLength(1);
  expect(asked().filter((request) => request.endsWith("/widgets"))).toEqual([`GET /apis/${group}/v1/widgets`]);
});

test("a list that is too large for all is requested once, and then each set reads its own objects", async () => {
  const inventories = await sets("a", "b", "c");
  await edit("c");
  const wide: string[] = [];
  const requested = { method: "GET", path: "/api/v1", secret: false };
  const shared: ClusterClient = {
    ...cluster.client,
    lookup: (query) => cluster.client.lookup(query),
    list(kind) {
      wide.push(kind.kind);
      throw new KubeError(requested, { code: "AnswersTooLarge", message: "it is too much", causes: [] });
    },
  };
  const lists = new SharedLists(inventories, clock);
  host.clearRequests();
  const found = [];
  for (const inventory of inventories) found.push(await detectDrift(lists.of(cluster.client, shared), inventory));
  expect(wide.sort()).toEqual(["ConfigMap", "Namespace"]);
  expect(found.map(({ drifted, unread }) => [drifted.map(({ id }) => id.name), unread])).toEqual([
    [[], []],
    [[], []],
    [["one"], []],
  ]);
});

test("sets that do not fit into one URL are listed in two requests, whatever the order of their checks", async () => {
  const inventories = await sets(...Array.from({ length: 45 }, (_, index) => `s${index}`));
  await edit("s3");
  await edit("s44");
  host.clearRequests();
  const client = new SharedLists(inventories, clock).of(cluster.client, cluster.client);
  const drifted: string[] = [];
  for (const inventory of inventories.toReversed()) {
    const report = await detectDrift(client, inventory);
    expect(report.unread).toEqual([]);
    drifted.push(...report.drifted.map(({ id }) => id.namespace));
  }
  expect(drifted).toEqual(["s44", "s3"]);
  const wide = asked().filter((path) => path === "GET /api/v1/configmaps" || path === "GET /api/v1/namespaces");
  expect(wide).toHaveLength(4);
});
