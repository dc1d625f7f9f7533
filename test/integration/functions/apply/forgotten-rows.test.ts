import { startClusterHost } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { deleteObject } from "#functions/api/write/delete-object.ts";
import type { ClusterConnector } from "#functions/apply/cluster/worker-ports.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { clusterFixture, configMap, endpointOf, namespace } from "#test/support/cluster-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const clusters = forAllTests(() => startClusterHost({ controllers: "off" }));
const cluster = forAllTests(async () => clusterFixture({ endpoint: endpointOf(clusters.addCluster("one")) }));
const other = forAllTests(async () => clusterFixture({ endpoint: endpointOf(clusters.addCluster("other")) }));

/** A world that resolves its cluster anew at every connection. `meanwhile` happens before the first answer. */
async function worldWith(meanwhile: (world: WorkerWorld) => Promise<void>) {
  const answering = { client: cluster.client };
  let once = false;
  const connector: ClusterConnector = {
    async connect() {
      if (!once) {
        once = true;
        await meanwhile(world);
      }
      return answering.client;
    },
    distrust() {},
  };
  const world: WorkerWorld = await new WorkerWorld(connector).begin();
  return { world, answering };
}

async function unregister({ table, blobs, sender, clock }: WorkerWorld): Promise<void> {
  const ports: ApiPorts = {
    table,
    blobs,
    sender,
    clock,
    ids: randomIds,
    log: silentLog,
    installation: "installation-1",
    ...healthyInstallation,
  };
  await deleteObject(ports, {
    reference: { kind: "Cluster", name: "c1" },
    cascade: "orphan",
    confirmed: "confirmed",
    caller: { principal: "ana" },
  });
}

/** Registers the Cluster anew, as the function api does. */
async function registerAnew({ table }: WorkerWorld): Promise<void> {
  const row: ClusterRow = { ...clusterRow(), uid: "uid-c1-anew" };
  await table.write([{ put: row, when: "absent" }]);
}

test("a Cluster that is deleted while its worker applies stays forgotten", async () => {
  const { world } = await worldWith(unregister);
  await world.assign("app", [namespace("gone"), configMap("gone/c")]);
  await world.work().catch(() => undefined);
  const row = await world.sync("app");
  expect(row).toMatchObject({ desired: { action: "orphan", attempt: 2 } });
  expect(row?.observed).toBeUndefined();
  expect(await world.table.get(keys.cluster("c1"))).toBeUndefined();
});

test("a Cluster that is registered anew while a worker applies gets no observation of the earlier Cluster", async () => {
  const { world, answering } = await worldWith(async (begun) => {
    await unregister(begun);
    await registerAnew(begun);
    await begun.assign("anew", [namespace("anew"), configMap("anew/c")]);
  });
  await world.assign("anew", [namespace("anew"), configMap("anew/c")]);
  await world.work().catch(() => undefined);
  const row = await world.sync("anew");
  expect(row?.desired).toMatchObject({ action: "apply", attempt: 3 });
  expect(row?.observed).toBeUndefined();

  // Another cluster has the name now, and in that cluster the object belongs to another tool.
  answering.client = other.client;
  await makeTheirs("anew");
  // The lease of the earlier worker is held until that worker can write no more.
  world.aheadMs += 60_000;
  await world.work();
  expect(await dataOf("anew")).toEqual({ k: "theirs" });
  expect((await world.sync("anew"))?.observed).toMatchObject({ phase: "Failed", reason: "ApplyFailed" });
});

test("objects that stayed in the cluster when their Sync was forgotten are never pruned, whatever is assigned in its place", async () => {
  const { world } = await worldWith(async () => {});
  await world.assign("kept", [namespace("kept"), configMap("kept/a"), configMap("kept/b")]);
  await world.work();
  await unregister(world);
  await registerAnew(world);

  await world.assign("kept", [namespace("kept"), configMap("kept/c")]);
  await world.work();
  expect((await world.sync("kept"))?.observed).toMatchObject({ phase: "Ready" });
  expect(await namesIn("kept")).toEqual(["a", "b", "c"]);

  await world.assign("kept", [namespace("kept"), configMap("kept/d")]);
  await world.work();
  expect(await namesIn("kept")).toEqual(["a", "b", "d"]);
});

test.each([
  ["another cluster", { clusterUid: "another" }],
  ["an unknown cluster", {}],
] as const)("an inventory of %s causes no write to an object", async (_what, about) => {
  const { world, answering } = await worldWith(async () => {});
  const name = `bound-${Object.keys(about).length}`;
  await world.assign(name, [namespace(name), configMap(`${name}/c`)]);
  await world.work();
  const row = await world.sync(name);
  if (row?.observed?.inventory === undefined) throw new Error("it was applied");
  const { clusterUid: _uid, ...observed } = row.observed;
  const put = { ...row, version: row.version + 1, observed: { ...observed, ...about } };
  await world.table.write([{ put }, { put: clusterRow() }]);
  answering.client = other.client;
  await makeTheirs(name);
  await world.assign(name, [namespace(name), configMap(`${name}/c`)]);
  await world.work();
  expect(await dataOf(name)).toEqual({ k: "theirs" });
});

/** Makes the object in the other cluster as an object of another tool. */
async function makeTheirs(inNamespace: string): Promise<void> {
  await other.raw("POST", "/api/v1/namespaces", { body: namespace(inNamespace) });
  const theirs = configMap(`${inNamespace}/c`, { k: "theirs" });
  const labels = { "kustomize.toolkit.fluxcd.io/name": "theirs" };
  const body = { ...theirs, metadata: { ...theirs.metadata, labels } };
  await other.raw("POST", `/api/v1/namespaces/${inNamespace}/configmaps`, { body });
}

async function namesIn(inNamespace: string): Promise<readonly string[]> {
  const { items } = (await cluster.raw("GET", `/api/v1/namespaces/${inNamespace}/configmaps`)) as {
    readonly items: readonly ManifestObject[];
  };
  return items.map(({ metadata }) => metadata.name).filter((name) => name !== "kube-root-ca.crt");
}

async function dataOf(inNamespace: string) {
  return (await other.raw("GET", `/api/v1/namespaces/${inNamespace}/configmaps/c`)).data;
}
