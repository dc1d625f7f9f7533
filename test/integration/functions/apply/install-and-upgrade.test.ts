/** A rendering has other objects for an install than for an upgrade. The tests check which objects the cluster gets. */
import { describe, expect, test } from "vitest";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { forgotten } from "#shared/fleet/rows/lineage.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type ManifestObject, valueAt } from "#shared/kube/kube-object.ts";
import type { BlobStore } from "#shared/ports.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { type ClusterWorker, startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { byHand } from "#test/support/kube-call.ts";
import { type Death, playControllers, workUntil } from "#test/support/played-cluster.ts";

const worker = forEachTest(startPatientWorker);
const jobs = "/apis/batch/v1/namespaces/shop/jobs";

function hook(name: string, events: string): ManifestObject {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "m", image: "m:1" }] } };
  const metadata = { name, namespace: "shop", annotations: { "helm.sh/hook": events } };
  return { apiVersion: "batch/v1", kind: "Job", metadata, spec: { template } };
}

const hooks = [hook("install", "pre-install"), hook("upgrade", "pre-upgrade")];

/** The objects of a chart that asks whether it is an install: a Secret only for installs, a setting, and hooks of both. */
function sides(version: string, around: readonly ManifestObject[] = hooks) {
  const both = [namespace("shop"), configMap("shop/app", { version }), ...around];
  return {
    install: [...both, configMap("shop/first"), configMap("shop/mode", { mode: "install" })],
    upgrade: [...both, configMap("shop/later"), configMap("shop/mode", { mode: "upgrade" })],
  };
}

async function assign(w: ClusterWorker, { install, upgrade }: ReturnType<typeof sides>): Promise<void> {
  await w.world.assign("web", install, {}, { upgrade });
}

async function play(w: ClusterWorker): Promise<void> {
  const patch = (path: string, body: JsonObject) => byHand(connectionOf(w), { method: "PATCH", path, body });
  await playControllers(w.host.objects("c1"), patch);
}

function connectionOf(w: ClusterWorker) {
  const [connection] = w.host.connections();
  if (connection === undefined) throw new Error("there is no cluster");
  return connection;
}

async function untilReady(w: ClusterWorker): Promise<void> {
  for (let check = 0; check < 40; check++) {
    await w.world.work();
    if ((await w.world.phase("web")) === "Ready") return;
    await play(w);
    w.world.aheadMs += 70_000;
  }
  throw new Error(`it is not Ready: ${JSON.stringify((await w.observed()).message)}`);
}

/** The names of the Sync's objects in the cluster, and how often each hook was made. */
function held(w: ClusterWorker) {
  const made = (name: string) =>
    w.host
      .requests()
      .filter(({ method, path, result }) => method === "PATCH" && path === `${jobs}/${name}` && result === 201).length;
  const mode = w.host.objects("c1").find((object) => valueAt(object, "metadata", "name") === "mode");
  const configs = w.members().filter((name) => name.startsWith("ConfigMap"));
  return { configs, mode: valueAt(mode ?? {}, "data", "mode"), runs: [made("install"), made("upgrade")] };
}

const installed = { configs: ["ConfigMap app", "ConfigMap first", "ConfigMap mode"], mode: "install", runs: [1, 0] };
const upgraded = { configs: ["ConfigMap app", "ConfigMap later", "ConfigMap mode"], mode: "upgrade", runs: [1, 1] };

test("a cluster gets the objects of an install, keeps them while its rendering stays, and then those of an upgrade", async () => {
  const w = worker;
  await assign(w, sides("1"));
  await untilReady(w);
  expect(held(w)).toEqual(installed);

  // Another attempt and a correction of drift do not make an upgrade of the install.
  await assign(w, sides("1"));
  await untilReady(w);
  await byHand(connectionOf(w), {
    method: "PATCH",
    path: "/api/v1/namespaces/shop/configmaps/mode",
    body: { data: { mode: "by hand" } },
  });
  w.world.aheadMs += 700_000;
  await untilReady(w);
  expect(held(w)).toEqual(installed);

  await assign(w, sides("2"));
  await untilReady(w);
  expect(held(w)).toEqual(upgraded);
  expect(await w.recorded()).toEqual(w.members());

  // A cluster that had an install once gets an upgrade when it joins again.
  await assign(w, sides("1"));
  await untilReady(w);
  expect(held(w)).toEqual({ ...upgraded, runs: [1, 2] });
});

test.each([
  ["with hooks", hooks, [2, 0]],
  ["without hooks", [], [0, 0]],
] as const)(
  "an install that is not completed is an install with the next rendering, too: %s",
  async (_legend, around, runs) => {
    const w = worker;
    const { install, upgrade } = sides("1", around);
    const broken = { ...configMap("shop/zz"), apiVersion: "none.example/v1", kind: "None" };
    await assign(w, { install: [...install, broken], upgrade: [...upgrade, broken] });
    for (let check = 0; check < 4; check++) {
      await w.world.work();
      await play(w);
      w.world.aheadMs += 70_000;
    }
    expect(held(w).mode).toBe("install");
    await assign(w, sides("2", around));
    await untilReady(w);
    expect(held(w)).toEqual({ ...installed, runs });
  },
);

/** Forgets the Sync, as the planner does when a Cluster is deleted or a group is made anew. The objects stay. */
async function forget({ world }: ClusterWorker): Promise<void> {
  const { observed: _observed, ...row } = (await world.sync("web")) as SyncRow;
  const desired = forgotten(row, world.clock.now().toISOString());
  const next: SyncRow = { ...row, desired, version: row.version + 1 };
  await world.table.write([{ put: next, when: { version: row.version } }]);
  await world.work();
}

describe("a cluster whose rows were forgotten, and that still has its objects", () => {
  test.each([
    ["an install", "the same rendering", ["1"], [1, 1]],
    ["an install", "the next one", ["1", "2"], [1, 1]],
    ["an upgrade", "the same rendering", ["1", "2"], [1, 1]],
    ["an upgrade", "the next one", ["1", "2", "3"], [1, 2]],
  ] as const)("the cluster is upgraded after %s, with %s", async (legend, which, versions, runs) => {
    const w = worker;
    const before = legend === "an install" ? versions.slice(0, 1) : versions.slice(0, 2);
    for (const version of before) {
      await assign(w, sides(version));
      await untilReady(w);
    }
    await forget(w);
    const [last = ""] = (which === "the same rendering" ? before : versions).slice(-1);
    await assign(w, sides(last));
    await untilReady(w);
    expect(held(w)).toMatchObject({ mode: "upgrade", runs });
    expect(held(w).configs).toContain("ConfigMap later");
    expect(await w.recorded()).toEqual(expect.arrayContaining(["ConfigMap later", "ConfigMap mode"]));
  });

  test("another cluster of that name, which has none of the objects, gets an install", async () => {
    const w = worker;
    await assign(w, sides("1"));
    await untilReady(w);
    await forget(w);
    const parent = "/api/v1/namespaces/starling-system/configmaps/tests.web";
    await byHand(connectionOf(w), { method: "DELETE", path: parent });
    await assign(w, sides("2"));
    await untilReady(w);
    expect(held(w)).toMatchObject({ mode: "install", runs: [2, 0] });
  });
});

test("the worker still knows that a chart was installed when the inventory is lost", async () => {
  const w = worker;
  await assign(w, sides("1"));
  await untilReady(w);
  const inventory = (await w.observed()).inventory ?? "";
  await w.world.blobs.overwrite(blobKeys.inventory("c1", inventory), Buffer.from("{}"));
  w.world.aheadMs += 700_000;
  await w.world.work({ blobs: unread(w.world.blobs) });
  expect((await w.observed()).rebuilt).toMatchObject({ foreign: 0 });
  await untilReady(w);
  expect(held(w)).toEqual(installed);
});

/** The same store, for a worker that has read nothing from it. */
function unread(blobs: BlobStore): BlobStore {
  return new Proxy(blobs, {
    get: (inner, name) => (Reflect.get(inner, name) as (...args: unknown[]) => unknown).bind(inner),
  });
}

describe("a worker that dies at any write", () => {
  test.each([
    ["before", "makes one install and no upgrade", diesInstalling],
    ["after", "makes one install and no upgrade", diesInstalling],
    ["before", "makes no install for objects that exist already", diesRejoining],
    ["after", "makes no install for objects that exist already", diesRejoining],
  ] as const)(
    "a worker that dies %s a write takes effect %s",
    async (when, _legend, dies) => {
      let deaths = 0;
      for (let at = 1; ; at++) {
        const w = await startPatientWorker();
        try {
          if (!(await dies({ at, when }, w))) break;
          deaths += 1;
        } finally {
          await w.stop();
        }
      }
      expect(deaths).toBeGreaterThan(12);
    },
    300_000,
  );

  /** @returns whether the worker died, because it made that many writes. */
  async function diesInstalling(death: Death, w: ClusterWorker): Promise<boolean> {
    await assign(w, sides("1"));
    const hasDied = await dies(death, w);
    await untilReady(w);
    expect({ death, ...held(w) }).toEqual({ death, ...installed });
    await assign(w, sides("2"));
    await untilReady(w);
    expect({ death, ...held(w) }).toEqual({ death, ...upgraded });
    return hasDied;
  }

  async function diesRejoining(death: Death, w: ClusterWorker): Promise<boolean> {
    await assign(w, sides("1"));
    await untilReady(w);
    await forget(w);
    await assign(w, sides("2"));
    const hasDied = await dies(death, w);
    await untilReady(w);
    expect({ death, ...held(w) }).toMatchObject({ death, mode: "upgrade", runs: [1, 1] });
    return hasDied;
  }

  async function dies(death: Death, w: ClusterWorker): Promise<boolean> {
    const kube = new KubeConnection(w.endpoint, w.world.clock);
    const connector = { connect: async () => kube.client({ deadlineMs: Date.now() + 600_000 }), distrust() {} };
    let left = death.at;
    let hasDied = false;
    for (let check = 0; check < 40 && !hasDied && (await w.world.phase("web")) !== "Ready"; check++) {
      let seen = 0;
      hasDied = await workUntil(w.world, connector, { at: left, when: death.when, heard: (count) => (seen = count) });
      left -= seen;
      await play(w);
      w.world.aheadMs += 70_000;
    }
    kube.close();
    return hasDied;
  }
});
