/**
 * The cost of a target is the same in a large fleet as in a small one. Rows and requests are counted, for several
 * shapes.
 */
import { describe, expect, test } from "vitest";
import type { Table } from "#shared/ports.ts";
import { type GroupShape, PlannedGroup } from "#test/bench/planned-group.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

interface Cost {
  requests: number;
  rowsRead: number;
  syncsRead: number;
  rowsWritten: number;
}

const nothing: Cost = { requests: 0, rowsRead: 0, syncsRead: 0, rowsWritten: 0 };
/** DynamoDB takes so many in one request. */
const batchGetKeys = 100;

async function costOf(clusters: number, shape: Omit<GroupShape, "name">) {
  const cost: Cost = { ...nothing };
  let isCounted = false;
  const stored = new MemoryTable({ pageItems: 1000 });
  const blobs = new MemoryBlobStore();
  const count = (change: Partial<Cost>) => {
    if (!isCounted) return;
    for (const [name, by] of Object.entries(change)) cost[name as keyof Cost] += by;
  };
  const table: Table = {
    get(key) {
      count({ requests: 1, rowsRead: 1 });
      return stored.get(key);
    },
    async getMany(keys, reading) {
      const rows = await stored.getMany(keys, reading);
      const syncsRead = rows.filter(({ type }) => type === "SyncOnCluster").length;
      count({ requests: Math.ceil(keys.length / batchGetKeys), rowsRead: keys.length, syncsRead });
      return rows;
    },
    async query(query) {
      const page = await stored.query({ ...query, after: query.after ?? "full:" });
      count({ requests: 1, rowsRead: page.items.length });
      return page;
    },
    async queryIndex(query) {
      const page = await stored.queryIndex({ ...query, after: query.after ?? "full:" });
      count({ requests: 1, rowsRead: page.items.length });
      return page;
    },
    update(write) {
      count({ requests: 1, rowsWritten: 1 });
      return stored.update(write);
    },
    write(writes) {
      count({ requests: 1, rowsWritten: writes.length });
      return stored.write(writes);
    },
  };
  const group = new PlannedGroup({ name: "web", ...shape }, { table, blobs });
  const call = async (named?: ReadonlySet<string>) => {
    isCounted = true;
    await group.call(named);
    isCounted = false;
  };
  await group.create(Array.from({ length: clusters }, (_, index) => `c-${index}`));
  await group.rollOut("one", call);
  const first = { ...cost };
  Object.assign(cost, nothing);
  await group.rollOut("two", call);
  const updatingTo = { ...cost };
  group.anHourLater();
  await call();
  Object.assign(cost, nothing);
  group.anHourLater();
  await call();
  return { first, updatingTo, idle: cost };
}

const [small, large] = [100, 300];
const shapes = [
  { templates: 1, maxConcurrent: "10%" },
  { templates: 1, maxConcurrent: "100%" },
  { templates: 5, maxConcurrent: "10%" },
  { templates: 5, maxConcurrent: "100%" },
] as const;

describe.each(shapes)("$templates templates, $maxConcurrent at once", { timeout: 60_000 }, (shape) => {
  test("a target costs as many requests in a large fleet as in a small one, and an idle call costs the same", async () => {
    const few = await costOf(small, shape);
    const many = await costOf(large, shape);
    for (const name of ["requests", "rowsRead", "rowsWritten"] as const)
      expect(many.updatingTo[name] / large, name).toBeLessThanOrEqual((1.1 * few.updatingTo[name]) / small);
    expect(many.idle).toEqual(few.idle);
    // Clusters do not catch up before a first rollout has passed: the first stage runs have every cluster.
    expect(many.first.requests).toBeLessThanOrEqual(1.1 * many.updatingTo.requests);
    // A Sync is read when the planner asks for its rendering, when it gives the slot, and when it sees that the attempt
    // is done. A few more are read whose turn comes in the next step.
    expect(many.updatingTo.syncsRead / large / shape.templates).toBeLessThan(3.5);
  });
});

describe("gates", { timeout: 60_000 }, () => {
  const approval = { approval: { by: ["arn:aws:iam::*:role/sre"] } };
  const cost = (clusters: number, gates: object) =>
    costOf(clusters, { templates: 1, maxConcurrent: "100%", rollout: { stages: [{ name: "all", ...gates }] } });

  test("an approval costs the same in every fleet, and a bake at most two requests for each cluster that it checks", async () => {
    const further = async (clusters: number, gates: object) => {
      const [without, gated] = [await cost(clusters, {}), await cost(clusters, gates)];
      return gated.updatingTo.requests - without.updatingTo.requests;
    };
    // One more call when the plan is there, and one when it is approved.
    const approved = await further(small, { before: [approval] });
    expect(approved).toBeLessThanOrEqual(11);
    expect(await further(large, { before: [approval] })).toBe(approved);
    const both = { before: [approval], after: [{ bake: "30m" }] };
    for (const clusters of [small, large])
      expect((await further(clusters, both)) - approved, `${clusters} clusters`).toBeLessThanOrEqual(2 * clusters);
  });
});
