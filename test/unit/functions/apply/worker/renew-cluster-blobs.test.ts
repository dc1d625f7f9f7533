/**
 * Blobs in a bucket whose lifecycle removes old ones: the worker keeps those that a cluster's rows name, and no others
 * stay.
 */
import { describe, expect, test } from "vitest";
import { saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import { renewClusterBlobs } from "#functions/apply/worker/renew-cluster-blobs.ts";
import { storedText } from "#shared/adapters/stored-text.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { blobLifeDays } from "#shared/fleet/blob-life.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { emptyInventory } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { silentLog } from "#test/support/planner-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const hour = 3_600_000;
const day = 24 * hour;
const silent = new KubeError(
  { method: "GET", path: "/api/v1/namespaces/kube-system", secret: false },
  { message: "connection refused", causes: [], code: "ECONNREFUSED" },
);

/** A cluster that does not answer, with Syncs in different states. */
class World {
  readonly blobs = new MemoryBlobStore(() => this.now());
  readonly worker = new WorkerWorld(
    {
      async connect() {
        throw silent;
      },
      distrust() {},
    },
    this.blobs,
  );

  now(): Date {
    return this.worker.clock.now();
  }

  async begin(): Promise<this> {
    const status = { uid: "uid-of-kube-system", conditions: [] };
    const cluster: ClusterRow = { ...clusterRow(), status, createdAt: this.now().toISOString() };
    await this.worker.table.write([{ put: cluster }]);
    await this.add("ready", {});
    await this.add("forgotten", { desired: { action: "orphan", attempt: 2 } });
    await this.add("failed", { observed: { phase: "Failed" } });
    return this;
  }

  async add(template: string, more: Parameters<typeof syncRowOf>[1]): Promise<void> {
    const row = syncRowOf("c1", { observed: {}, template, ...more });
    const inventory = await saveInventory({ row, ports: { blobs: this.blobs } as never }, emptyInventory(template));
    const { observed } = row;
    if (observed === undefined || inventory === undefined) throw new Error("nothing was stored");
    const clusterUid = "uid-of-kube-system";
    const stored: SyncRow = { ...row, observed: { ...observed, inventory, clusterUid } };
    await this.worker.table.write([{ put: stored }]);
  }

  async pass(days: number): Promise<void> {
    for (let passed = 0; passed < days; passed += 1) {
      this.worker.aheadMs += day;
      this.blobs.expire(blobLifeDays);
      // The tick sends a message when the cluster is due.
      const { dueKey } = await this.cluster();
      const isDue = dueKey === undefined || dueAtOf(dueKey) <= this.now().toISOString();
      if (isDue) await this.worker.work();
    }
  }

  async cluster(): Promise<ClusterRow> {
    const row = await this.worker.table.get(keys.cluster("c1"));
    if (row === undefined) throw new Error("the cluster is gone");
    return row;
  }

  rows(): readonly SyncRow[] {
    return this.worker.table.all().filter((row) => row.type === "SyncOnCluster") as unknown as readonly SyncRow[];
  }

  async renew(ports: Partial<Parameters<typeof renewClusterBlobs>[1]> = {}): Promise<ClusterRow | undefined> {
    const { table, sender } = this.worker;
    const found = { cluster: await this.cluster(), syncs: this.rows(), readAt: this.now() };
    return renewClusterBlobs(found, { table, sender, blobs: this.blobs, log: silentLog, ...ports });
  }

  /** Checks that the inventories to which the rows refer are stored, unchanged. */
  async checkNeeded(): Promise<void> {
    for (const { observed } of this.rows()) {
      const keyOf = (digest: string) => blobKeys.inventory("c1", digest);
      await storedText(this.blobs, keyOf(observed?.inventory ?? ""), keyOf);
    }
  }
}

describe("the inventories of a cluster", { timeout: 60_000 }, () => {
  test("the worker keeps inventories stored for as long as a row names them, although the cluster never answers", async () => {
    const world = await new World().begin();
    const before = world.blobs.keys();
    expect(before).toHaveLength(3);
    for (let period = 0; period < 10; period++) {
      await world.pass(20);
      await world.checkNeeded();
    }
    expect(world.blobs.keys()).toEqual(before);
  });

  test("inventories expire when no row names them any more", async () => {
    const world = await new World().begin();
    for (let period = 0; period < 6; period++) {
      for (const template of ["ready", "failed"]) {
        const inventory = emptyInventory(`${template} ${period}`);
        const row = world.rows().find(({ name }) => name === `web.${template}`);
        if (row?.observed === undefined) throw new Error("it is gone");
        const digest = await saveInventory({ row, ports: { blobs: world.blobs } as never }, inventory);
        const next = { ...row, observed: { ...row.observed, inventory: digest }, version: row.version + 1 };
        await world.worker.table.write([{ put: next as SyncRow, when: { version: row.version } }]);
      }
      await world.pass(30);
      await world.checkNeeded();
    }
    await world.pass(60);
    expect(world.blobs.keys()).toHaveLength(3);
  });

  test("the next run stores the inventories again when a run dies at any of its calls", async () => {
    for (const when of ["before", "after"] as const) {
      for (let at = 1, hasDied = true; hasDied; at++) {
        const world = await new World().begin();
        world.worker.aheadMs += 25 * day;
        let calls = 0;
        const isLast = () => ++calls === at;
        const overwrite = async (key: string, bytes: Uint8Array) => {
          const dies = isLast();
          if (!dies || when === "after") await world.blobs.overwrite(key, bytes);
          if (dies) throw new Error("dead");
        };
        const blobs = {
          get: world.blobs.get.bind(world.blobs),
          renew: world.blobs.renew.bind(world.blobs),
          overwrite,
        };
        const { table } = new DisturbedPorts({ table: world.worker.table, sender: world.worker.sender }, {});
        const write: typeof table.write = async (writes) => {
          const dies = isLast();
          if (!dies || when === "after") await table.write(writes);
          if (dies) throw new Error("dead");
        };
        await world.renew({ blobs, table: { ...table, write } });
        hasDied = calls >= at;
        await world.renew();
        world.worker.aheadMs += 59 * day;
        world.blobs.expire(blobLifeDays);
        await world.checkNeeded();
        expect(at).toBeLessThan(10);
      }
    }
  });

  test("a lost inventory does not stop the worker, and a denied one is stored again later", async () => {
    const world = await new World().begin();
    const [lost = "", ...others] = world.blobs.keys();
    world.blobs.lose(lost);
    world.worker.aheadMs += 25 * day;
    const denied = new StarlingError("may not be read", { code: "BlobDenied", retry: "transient" });
    const before = await world.cluster();
    const store = { renew: async () => {}, overwrite: async () => {} };
    const get = async () => {
      throw denied;
    };
    expect(await world.renew({ blobs: { ...store, get } })).toEqual(before);
    expect(await world.cluster()).toEqual(before);
    await world.renew();
    expect((await world.cluster()).status.blobsAt?.slice(0, 10)).toBe(world.now().toISOString().slice(0, 10));
    expect(world.blobs.keys()).toEqual(others);
  });

  test("inventories are not read before they are due, except after a person accepted what the cluster remembers", async () => {
    const world = await new World().begin();
    world.worker.aheadMs += 10 * day;
    const before = await world.cluster();
    expect(await world.renew()).toEqual(before);
    const [row] = world.rows();
    if (row === undefined) throw new Error("it is gone");
    const remembered = { attempt: 1, fence: 1 };
    const recovered = { by: "ana", at: world.now().toISOString(), remembered };
    await world.worker.table.write([{ put: { ...row, recovered, version: 2 } as SyncRow, when: { version: 1 } }]);
    world.worker.aheadMs += 1000;
    const after = await world.renew();
    expect(after?.version).toBe(before.version + 1);
    expect(await world.renew()).toEqual(after);
  });

  test("an inventory that was accepted after the rows were read does not count as stored", async () => {
    const world = await new World().begin();
    world.worker.aheadMs += 25 * day;
    const [row] = world.rows();
    if (row === undefined) throw new Error("it is gone");
    const { table } = new DisturbedPorts({ table: world.worker.table, sender: world.worker.sender }, {});
    let reads = 0;
    const query: typeof table.query = async (asked) => {
      const page = await table.query(asked);
      if (page.next !== undefined || ++reads > 1) return page;
      // A person accepts right after the worker has read the last row.
      world.worker.aheadMs += 1000;
      const recovered = { by: "ana", at: world.now().toISOString(), remembered: { attempt: 1, fence: 1 } };
      const accepted = { ...row, recovered, version: row.version + 1 } as SyncRow;
      await world.worker.table.write([{ put: accepted, when: { version: row.version } }]);
      world.worker.aheadMs += 1000;
      return page;
    };
    await world.worker.work({ table: { ...table, query } });
    const recovered = world.rows().find(({ sk }) => sk === row.sk)?.recovered;
    const { blobsAt = "" } = (await world.cluster()).status;
    expect(reads).toBeGreaterThan(0);
    expect(recovered?.at).toBeDefined();
    expect(blobsAt < (recovered?.at ?? "")).toBe(true);
  });
});

describe("the renderings to which a cluster refers", { timeout: 60_000 }, () => {
  const digestOf = (name: string) => `sha256:${name}`;
  const keyOf = (name: string) => blobKeys.rendering(digestOf(name));

  async function worldWith(...rows: readonly SyncRow[]): Promise<World> {
    const world = await new World().begin();
    for (const row of rows) await world.worker.table.write([{ put: row }]);
    return world;
  }

  const remembered = (name: string) => ({ attempt: 1, fence: 1, renderDigest: digestOf(name) });
  const applied = (name: string, attempt: number, unsettled: readonly string[] = []) => ({
    renderDigest: digestOf(name),
    revision: "main@sha1:aaa",
    attempt,
    at: "2026-11-21T08:00:00.000Z",
    unsettled: unsettled.map(digestOf),
  });
  const desired = { renderDigest: digestOf("desired") };

  type More = Parameters<typeof syncRowOf>[1] & Pick<SyncRow, "recovered">;

  test.each<[string, More, readonly string[]]>([
    ["the desired rendering", { desired: desired }, ["desired"]],
    [
      "the rendering that the cluster has, and those that may be left there",
      { desired: { ...desired, attempt: 2 }, observed: { applied: applied("held", 1, ["left"]) } },
      ["desired", "held", "left"],
    ],
    [
      "the rendering that was desired before the Sync's deletion",
      {
        desired: {
          action: "delete",
          renderDigest: undefined,
          instead: { ...desired, revision: "r", rollout: 1 },
        } as never,
      },
      ["desired"],
    ],
    [
      "the renderings that were tried",
      { desired: { ...desired, tried: ["a", "b"].map(digestOf) } },
      ["desired", "a", "b"],
    ],
    [
      "no rendering that was tried before the last apply",
      { desired: { ...desired, attempt: 2, tried: ["a"].map(digestOf) }, observed: { applied: applied("desired", 2) } },
      ["desired"],
    ],
    [
      "the rendering that the cluster remembers from lost rows",
      { desired: desired, observed: { remembered: remembered("others") } },
      ["desired", "others"],
    ],
    [
      "the accepted rendering from lost rows until the next apply",
      { desired: desired, recovered: { by: "ana", at: "2026-11-20T08:00:00.000Z", remembered: remembered("others") } },
      ["desired", "others"],
    ],
    [
      "the rendering that the cluster has of a forgotten Sync",
      { desired: { action: "orphan", renderDigest: undefined } as never, observed: { applied: applied("held", 1) } },
      ["held"],
    ],
  ])("the worker keeps %s", async (_what, { recovered, ...more }, names) => {
    const row = syncRowOf("c1", { template: "app", ...more });
    const world = await worldWith({ ...row, ...defined({ recovered }) });
    for (const name of [...names, "nobody's"]) await world.blobs.overwrite(keyOf(name), Buffer.from(name));
    for (let period = 0; period < 10; period++) {
      world.worker.aheadMs += 22 * day;
      world.blobs.expire(blobLifeDays);
      await world.renew();
    }
    expect(world.blobs.keys().filter((key) => key.startsWith("renderings/"))).toEqual(names.map(keyOf));
  });

  test("a rendering that many clusters have is stored again by the first of them within half a day", async () => {
    const world = await worldWith(syncRowOf("c1", { template: "app", desired: desired }));
    await world.blobs.overwrite(keyOf("desired"), Buffer.from("desired"));
    world.worker.aheadMs += 25 * day;
    const renewed: (readonly [string, Date])[] = [];
    const renew = async (key: string, before: Date) => void renewed.push([key, before]);
    await world.renew({ blobs: { get: world.blobs.get.bind(world.blobs), overwrite: async () => {}, renew } });
    expect(renewed.map(([key]) => key)).toContain(keyOf("desired"));
    expect(renewed.map(([, before]) => Math.round((world.now().getTime() - before.getTime()) / hour))).toEqual([
      12, 12,
    ]);
  });

  test("the worker asks once for each rendering by its input, so that the rendering's row stays", async () => {
    const app = { input: "sha256:in", source: "app", revision: "main@sha1:aaa" };
    const instead = { input: "sha256:before", source: "app", revision: "main@sha1:bbb", rollout: 1 };
    const world = await worldWith(
      syncRowOf("c1", { template: "a", desired: { ...desired, ...app } }),
      syncRowOf("c1", { template: "b", desired: { ...desired, ...app } }),
      syncRowOf("c1", { template: "c", desired: { action: "delete", instead } }),
      syncRowOf("c1", { template: "d", desired: { action: "orphan" } }),
    );
    const source = { namespace: "shop", name: "app" };
    expect(world.worker.sender.take()).toEqual([]);
    await world.renew();
    expect(world.worker.sender.take()).toEqual([]);
    world.worker.aheadMs += 25 * day;
    await world.renew();
    expect(world.worker.sender.take()).toEqual([
      { to: "render", input: "sha256:in", source: { ...source, revision: "main@sha1:aaa" } },
      { to: "render", input: "sha256:before", source: { ...source, revision: "main@sha1:bbb" } },
    ]);
    await world.renew();
    expect(world.worker.sender.take()).toEqual([]);
  });

  test("the first version that stores blobs again does so at once, whatever the version before recorded", async () => {
    const world = await worldWith(syncRowOf("c1", { template: "app", desired: desired }));
    world.worker.aheadMs += 25 * day;
    const { version, ...before } = await world.cluster();
    const status = { ...before.status, renewedAt: world.now().toISOString() };
    const noted: ClusterRow = { ...before, status, version: version + 1 };
    await world.worker.table.write([{ put: noted, when: { version } }]);
    const after = await world.renew();
    expect(after?.status.blobsAt?.slice(0, 10)).toBe(world.now().toISOString().slice(0, 10));
    expect(after?.status).not.toHaveProperty("renewedAt");
  });
});
