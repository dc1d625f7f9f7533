/**
 * A group's reads of the fleet's directory: it reads the entries that changed, and reads all entries only when it
 * cannot know which.
 */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { type Counts, countedTable } from "#test/support/counted-table.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { names, web } from "#test/support/planner-story.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const ofRing = (ring: string) => ({ selector: { matchLabels: { ring } } });

/** A group of one cluster, `own`, that has its rollout, beside clusters of others. */
async function smallGroup(others: number): Promise<PlannerWorld> {
  const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 1000 }), blobs: new MemoryBlobStore() });
  for (const name of names(others)) await made.addCluster(name, "other");
  await made.addCluster("own", "own");
  await made.setSource("aaa");
  await made.setGroup({}, web, ofRing("own"));
  await made.rollOut();
  await rest(made);
  return made;
}

async function rest(made: PlannerWorld): Promise<void> {
  made.advanceClock(3600);
  await made.plan();
}

async function rowsReadBy(made: PlannerWorld): Promise<number> {
  return (await costOfCall(made)).rowsRead;
}

async function costOfCall(made: PlannerWorld): Promise<Counts> {
  const { table, counts } = countedTable(made.table);
  await made.plan(table);
  return counts;
}

/** By what changes: the cost of the call after it. */
async function costsOfChangesElsewhere(made: PlannerWorld): Promise<ReadonlyMap<string, Counts>> {
  const changes: readonly (readonly [string, () => Promise<void>])[] = [
    ["a label changes", () => made.addCluster("c003", "another")],
    ["a cluster is registered", () => made.addCluster("fresh", "other")],
    ["a cluster is removed", () => made.removeCluster("c004")],
  ];
  const idle = await costOfCall(made);
  const costs = new Map<string, Counts>();
  for (const [what, change] of changes) {
    await change();
    costs.set(what, await costOfCall(made));
    expect(await costOfCall(made), "the members include the change").toEqual(idle);
  }
  return costs;
}

async function selected(made: PlannerWorld): Promise<readonly string[]> {
  const { members = "" } = made.rolloutState();
  const bytes = await made.blobs.get(members);
  return (JSON.parse(Buffer.from(bytes).toString()) as { readonly cluster: string }[]).map(({ cluster }) => cluster);
}

describe("a group of one cluster among many", () => {
  test("a call costs the same among 10,000 clusters as among 10 when something changes on another one", {
    timeout: 60_000,
  }, async () => {
    const few = await costsOfChangesElsewhere(await smallGroup(10));
    const many = await costsOfChangesElsewhere(await smallGroup(10_000));
    expect(many).toEqual(few);
    for (const { rowsRead } of many.values()) expect(rowsRead).toBeLessThan(80);
  });

  test("the group writes a new list of members only when its members change", async () => {
    const made = await smallGroup(10);
    const { members, membersVersion } = made.rolloutState();
    await made.addCluster("c003", "another");
    await made.removeCluster("c004");
    await made.plan();
    expect(made.rolloutState()).toMatchObject({ members, membersVersion });
    await made.addCluster("c003", "own");
    await made.plan();
    expect(made.rolloutState().membersVersion).toBe(membersVersion + 1);
    expect(await selected(made)).toEqual(["c003", "own"]);
  });

  test("the group reads all entries once when more changed than was noted, and misses no member", async () => {
    const made = await smallGroup(1000);
    for (const name of names(1000).filter((_, index) => index % 2 === 0)) await made.addCluster(name, "own");
    expect(await rowsReadBy(made)).toBeGreaterThan(1000);
    expect(await selected(made)).toHaveLength(501);
  });

  test("the group reads all entries when an older version writes an entry without noting its name", async () => {
    const made = await smallGroup(100);
    const put: FleetRow = { ...(await entryOf(made, "c003")), labels: { ring: "own" } };
    await made.table.write([{ put }, fleetVersionUpdate("c003")]);
    await made.addCluster("c004", "own");
    await made.plan();
    expect(await selected(made)).toEqual(["c003", "c004", "own"]);
  });

  test("the group reads all entries when the directory was restored from a backup", async () => {
    const made = await smallGroup(100);
    const before = made.rows<FleetRow>("FleetVersion");
    await made.addCluster("own", "other");
    await made.plan();
    expect(await selected(made)).toEqual([]);
    // Only the directory is restored: its rows are as they were, and the group's rows are not.
    const entry = { ...(await entryOf(made, "own")), labels: { ring: "own" } };
    await made.table.write([{ put: entry }, ...before.map((put) => ({ put }))]);
    await made.plan();
    expect(await selected(made)).toEqual(["own"]);
  });
});

test("a group of few clusters reads only their entries when the values of any cluster may have changed", async () => {
  const reads: number[] = [];
  for (const others of [10, 1000]) {
    const made = await smallGroup(others);
    const idle = await rowsReadBy(made);
    await made.table.write([
      { update: keys.fleetVersion(16), set: { type: "FleetVersion", schema: 2 }, add: { version: 1 } },
    ]);
    reads.push((await rowsReadBy(made)) - idle);
  }
  expect(reads[1]).toBe(reads[0]);
});

test("simultaneous writers of one part of the directory lose no change", async () => {
  const made = await smallGroup(40);
  await Promise.all(names(40).map((name) => made.addCluster(name, "own")));
  await made.plan();
  expect(await selected(made)).toEqual([...names(40), "own"]);
});

async function entryOf({ table }: PlannerWorld, name: string): Promise<FleetRow> {
  const row = await table.get(keys.fleet(name));
  if (row === undefined) throw new Error(`${name} is not registered`);
  return row;
}

const cluster = fc.constantFrom(...names(12));
const act = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("put" as const), cluster, ring: fc.constantFrom("own", "other") }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("remove" as const), cluster }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unnamed" as const), cluster }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("select" as const), ring: fc.constantFrom("own", "other") }) },
  { weight: 3, arbitrary: fc.constant({ do: "check" as const }) },
);

test.each(propertySeeds)(
  "after any sequence of changes, the members are the clusters that the selector matches (STARLING_PROPERTY_SEED=%i)",
  async (seed) => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 60 }), async (acts) => {
        const made = await smallGroup(12);
        let ring = "own";
        for (const one of [...acts, { do: "check" as const }]) {
          if (one.do === "put") await made.addCluster(one.cluster, one.ring);
          if (one.do === "remove") await made.removeCluster(one.cluster);
          if (one.do === "unnamed")
            await made.table.write([{ delete: keys.fleet(one.cluster) }, fleetVersionUpdate(one.cluster)]);
          if (one.do === "select") {
            ring = one.ring;
            await made.setGroup({}, web, ofRing(ring));
          }
          if (one.do !== "check") continue;
          await made.plan();
          const desired = made.rows<FleetRow>("Fleet").filter(({ labels }) => labels.ring === ring);
          expect(await selected(made)).toEqual(desired.map(({ name }) => name).sort());
        }
      }),
      { seed, numRuns: propertyRuns(60) },
    );
  },
);
