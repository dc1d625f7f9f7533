import { beforeEach, expect, test } from "vitest";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { knownZones, type ZonesOf } from "#shared/adapters/known-zones.ts";
import { fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const clusters = ["c1", "c2", "c3", "c4", "c5"];
let table: MemoryTable;
/** The entries that were read since the last look, and the reads of versions. */
let entries: string[];
let versions: number;
let before: { readonly entries: () => Promise<void>; readonly versions: () => Promise<void> };
let zonesOf: ZonesOf;
let seconds: number;

beforeEach(async () => {
  table = new MemoryTable({ pageItems: 100 });
  [entries, versions, seconds] = [[], 0, 0];
  before = { entries: async () => {}, versions: async () => {} };
  const reads: Pick<Table, "getMany" | "query"> = {
    getMany: async (desired, reading) => {
      entries.push(...desired.map(({ sk }) => sk));
      await before.entries();
      return table.getMany(desired, reading);
    },
    query: async (query) => {
      if (query.after === undefined) versions += 1;
      await before.versions();
      return table.query(query);
    },
  };
  zonesOf = knownZones({ table: reads, clock: { now: () => new Date(1_000 * seconds) } });
  for (const name of clusters) await putInto(name, name === "c1" ? undefined : "spoke");
});

async function putInto(name: string, zone: string | undefined): Promise<void> {
  const spec = { ...clusterRow().spec, ...(zone === undefined ? {} : { access: { zone } }) };
  await writeWithFleet(table, [{ put: fleetRow({ ...clusterRow(spec), ...keys.cluster(name), name }) }]);
}

/** The zones that a tick finds, a minute after the one before, with what it read. */
async function tick(...names: readonly string[]) {
  seconds += 60;
  [entries, versions] = [[], 0];
  const found = await Promise.all(names.map(async (name) => (await zonesOf([name])).get(name)));
  return { found, entries, versions };
}

test("a tick reads the versions of the directory once, and each entry only in the first tick", async () => {
  const found = ["home", "spoke", "spoke", "spoke", "spoke"];
  expect(await tick(...clusters)).toEqual({ found, entries: clusters, versions: 1 });
  expect(await tick(...clusters)).toEqual({ found, entries: [], versions: 1 });
});

test("a cluster that moved is found in its new zone, and no other entry is read", async () => {
  await tick(...clusters);
  await putInto("c3", "fixed");
  await putInto("c1", "spoke");
  expect(await tick(...clusters)).toEqual({
    found: ["spoke", "spoke", "fixed", "spoke", "spoke"],
    entries: ["c1", "c3"],
    versions: 1,
  });
});

test("a cluster without an entry belongs to home until it gets one", async () => {
  await writeWithFleet(table, [{ delete: keys.fleet("c2") }]);
  expect(await tick("c2", "c9")).toMatchObject({ found: ["home", "home"] });
  await putInto("c9", "spoke");
  expect(await tick("c2", "c9")).toMatchObject({ found: ["home", "spoke"], entries: ["c9"] });
});

test("every entry is read again after a write that names no cluster, and after one of a newer version", async () => {
  await tick(...clusters);
  await table.write([fleetVersionUpdate("c2")]);
  expect(await tick(...clusters)).toMatchObject({ entries: clusters });
  expect(await tick(...clusters)).toMatchObject({ entries: [] });
  const row = (await table.get(fleetVersionUpdate("c2").update)) ?? expect.fail("there is no version");
  await table.write([{ put: { ...row, schema: newestRowSchema + 1 } }]);
  expect(await tick(...clusters)).toMatchObject({ entries: clusters });
  expect(await tick(...clusters)).toMatchObject({ entries: clusters });
});

test("a move between the read of the versions and that of the entry is found by the next tick", async () => {
  let moves = true;
  before = {
    ...before,
    entries: async () => {
      if (moves) await putInto("c2", "fixed");
      moves = false;
    },
  };
  expect(await tick("c2")).toMatchObject({ found: ["fixed"] });
  await putInto("c2", "spoke");
  expect(await tick("c2")).toMatchObject({ found: ["spoke"] });
  // The answer of the table was on its way while the cluster moved.
  let late = true;
  const answered = table.getMany.bind(table);
  table.getMany = (async (...asked: Parameters<typeof answered>) => {
    const answer = await answered(...asked);
    if (late && asked[0].some(({ pk }) => pk === "FLEET")) {
      late = false;
      await putInto("c4", "fixed");
    }
    return answer;
  }) as typeof table.getMany;
  expect(await tick("c4")).toMatchObject({ found: ["spoke"] });
  expect(await tick("c4")).toMatchObject({ found: ["fixed"] });
});

test("a read of the versions that fails is tried again by the next call", async () => {
  await tick(...clusters);
  await putInto("c5", "fixed");
  before = { ...before, versions: () => Promise.reject(new Error("throttled")) };
  await expect(tick("c5")).rejects.toThrow("throttled");
  before = { ...before, versions: async () => {} };
  expect((await zonesOf(["c5"])).get("c5")).toBe("fixed");
});
