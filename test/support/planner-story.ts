import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { Crash, DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

/** The start of stories about the planner. */

export const ana = (at: Date) => ({ by: "ana", at: at.toISOString() });

export const names = (count: number, prefix = "c"): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${String(index).padStart(3, "0")}`);

export const web = [{ name: "app", source: "app" }] as const;

/** A template with a different rendering for each cluster. */
export const ownPaths = [{ name: "app", source: "app", path: "clusters/{{ cluster.name }}" }] as const;

/** `canary` selects the clusters of that ring, and `rest` all others. */
export const rings = {
  stages: [{ name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } }, { name: "rest" }],
};

export type Group = Parameters<PlannerWorld["setGroup"]>;

/** @param clusters - the ring by cluster name, or names of clusters that all have the ring `all`. */
export async function worldOf(
  clusters: readonly string[] | Readonly<Record<string, string>>,
  ...group: Group
): Promise<PlannerWorld> {
  const fleet = Array.isArray(clusters) ? clusters.map((name: string) => [name, "all"]) : Object.entries(clusters);
  const table = new MemoryTable(fleet.length < 90 ? {} : { pageItems: 50 });
  const made = new PlannerWorld({ table, blobs: new MemoryBlobStore() });
  for (const [name = "", ring = ""] of fleet) await made.addCluster(name, ring);
  await made.setSource("aaa");
  await made.setGroup(...group);
  return made;
}

/** The same world once more: nothing that happens in one of them happens in the other. */
export async function copyOf(made: PlannerWorld): Promise<PlannerWorld> {
  const copy = new PlannerWorld({ table: new MemoryTable({ pageItems: 100 }), blobs: made.blobs });
  for (const row of made.table.all()) await copy.table.write([{ put: row }]);
  copy.now = made.now;
  return copy;
}

/** Registers a cluster of a story with the API. Without this, only the planner knows it. */
export async function register(made: PlannerWorld, cluster: string): Promise<void> {
  const entry = await made.table.get(keys.fleet(cluster));
  if (entry === undefined || (await made.table.get(keys.cluster(cluster))) !== undefined) return;
  const { uid, labels, zone } = entry;
  const endpoint = { server: `https://${cluster}.test`, token: { secret: cluster } };
  const spec = { endpoint, ...(zone === undefined ? {} : { access: { zone } }) };
  const row = { uid, labels, spec, name: cluster, annotations: {}, generation: 1, createdAt: made.now.toISOString() };
  const others = { operations: {}, status: { conditions: [] }, schema: rowSchema, version: 1 };
  await made.table.write([{ put: { ...keys.cluster(cluster), type: "Cluster", ...row, ...others } as ClusterRow }]);
}

/** Runs the planner until it waits for a worker. */
export async function begin(made: PlannerWorld): Promise<void> {
  await made.plan();
  await made.renderAll();
  await made.plan();
}

/** Commits another revision and runs the planner until it waits for a worker. */
export async function revise(made: PlannerWorld, commit: string): Promise<void> {
  await made.setSource(commit);
  await begin(made);
}

/** Reports this phase for every cluster that has a slot, then runs the planner. */
export async function allSay(made: PlannerWorld, phase: "Ready" | "Failed" | "Unreachable"): Promise<void> {
  for (const { cluster, releasing } of made.slots()) if (releasing === undefined) await made.finish(cluster, phase);
  await made.plan();
}

/**
 * Makes a worker hold the lease of the cluster for these seconds. A negative number means that the lease has expired.
 */
export async function lease(made: PlannerWorld, cluster: string, held: { fence: number; seconds: number }) {
  const key = keys.lease(cluster);
  const before = await made.table.get(key);
  const version = (before?.version ?? 0) + 1;
  const leaseUntil = later(made.now, held.seconds);
  const row: LeaseRow = {
    ...key,
    type: "Lease",
    schema: rowSchema,
    version,
    fence: held.fence,
    desired: 0,
    owner: "w",
    leaseUntil,
  };
  await made.table.write([{ put: row }]);
}

/** Completes the work of every worker until nothing changes. */
export async function playOn(made: PlannerWorld, rounds = 12): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await begin(made);
    for (const { cluster, releasing } of made.slots()) if (releasing === undefined) await made.finish(cluster);
  }
  await made.plan();
}

/** Wraps a table and counts the requests to it. */
export function counting(table: Table): {
  readonly table: Table;
  /** Counted like DynamoDB: one request has a limited number of keys. */
  readonly requests: () => number;
  readonly read: () => number;
} {
  let [requests, read] = [0, 0];
  const count = (keys: number, asked = 1) => {
    requests += asked;
    read += keys;
  };
  return {
    requests: () => requests,
    read: () => read,
    table: {
      get(key) {
        count(1);
        return table.get(key);
      },
      getMany(keys, reading) {
        count(keys.length, Math.ceil(keys.length / 100));
        return table.getMany(keys, reading);
      },
      async query(query) {
        const page = await table.query(query);
        count(page.items.length);
        return page;
      },
      async queryIndex(query) {
        const page = await table.queryIndex(query);
        count(page.items.length);
        return page;
      },
      write(writes) {
        count(0);
        return table.write(writes);
      },
      update(write) {
        count(0);
        return table.update(write);
      },
    },
  };
}

/** Clusters that have the template, and are to keep it. */
export function having(made: PlannerWorld, template = "app"): readonly string[] {
  const syncs = made.rows<SyncRow>("SyncOnCluster").filter(({ name }) => name === `web.${template}`);
  return syncs.filter(({ desired }) => desired.action === "apply").map(({ cluster }) => cluster);
}

/** The planner's call dies at one of its calls to the table or the queues. @returns false when it made fewer. */
export async function diesAt(made: PlannerWorld, at: number, when: "before" | "after"): Promise<boolean> {
  const { table, sender } = new DisturbedPorts(made, { crash: { at, when } });
  try {
    await made.plan(table, undefined, sender);
    return false;
  } catch (error) {
    if (error instanceof Crash) return true;
    throw error;
  }
}

/**
 * Plays a story in which the planner dies at each call in turn, until it made fewer. @returns the number of deaths.
 * @param begin - the story up to the planner's call.
 */
export async function playDeaths(
  when: "before" | "after",
  begin: () => Promise<PlannerWorld>,
  check: (made: PlannerWorld, where: string) => Promise<void>,
): Promise<number> {
  for (let at = 1; ; at++) {
    const made = await begin();
    const isDead = await diesAt(made, at, when);
    await playOn(made);
    await check(made, `dead ${when} call ${at}`);
    if (!isDead) return at - 1;
  }
}
