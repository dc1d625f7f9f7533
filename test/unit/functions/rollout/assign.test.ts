import { describe, expect, test } from "vitest";
import { wakeUp } from "#functions/rollout/assign.ts";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { begin, names, web, worldOf } from "#test/support/planner-story.ts";

const now = new Date("2026-11-21T08:00:00.000Z");

describe("a worker is told", () => {
  test.each([
    ["at once where it may begin", undefined, {}],
    ["at once where it might have begun before", "2026-11-21T07:59:59.000Z", { delaySeconds: 0 }],
    ["not before it may begin", "2026-11-21T08:00:10.500Z", { delaySeconds: 11 }],
    ["to the second", "2026-11-21T08:00:10.000Z", { delaySeconds: 10 }],
    ["as late as a queue keeps it", "2026-11-21T10:00:00.000Z", { delaySeconds: 900 }],
  ])("%s", (_what, startAt, more) => {
    expect(wakeUp("a", startAt, now)).toEqual([{ to: "apply", cluster: "a", ...more }]);
  });
});

describe("a Sync", () => {
  test("has a uid that is the same when its row is lost, and another elsewhere", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, [...web, { name: "two", source: "app" }]);
    await begin(made);
    expect(made.rows<SyncRow>("SyncOnCluster").map(({ uid }) => uid)).toEqual([
      "bfaf5074-d1d4-6e51-ddca-4e50024e02b9",
      "d7a994dd-c47b-1ebb-c996-fa33efa98966",
      "2b4e5b34-8d90-14bf-4d07-e420464a3199",
      "6b7d664c-6f3e-9dad-4a3e-d61c781c2eef",
    ]);
  });

  test("is looked at by itself when its worker was to begin, whatever became of the message", async () => {
    const made = await worldOf(names(20), { maxConcurrent: "100%", jitter: "15m" });
    await begin(made);
    for (const { desired, dueKey = "", dispatches } of made.rows<SyncRow>("SyncOnCluster")) {
      const { startAt = "" } = desired;
      const at = dueAtOf(dueKey);
      expect(at > startAt && at <= later(new Date(startAt), 60), at).toBe(true);
      expect(dispatches).toBe(1);
    }
  });

  test("of many that are assigned at once is not looked at by itself while they have their turns", async () => {
    const made = await worldOf(names(200), { maxConcurrent: "100%" });
    await begin(made);
    const waits = made
      .rows<SyncRow>("SyncOnCluster")
      .map(({ desired, dueKey = "" }) => (Date.parse(dueAtOf(dueKey)) - Date.parse(desired.assignedAt)) / 1000);
    expect(waits).toHaveLength(200);
    expect(waits.filter((seconds) => seconds === 30)).toHaveLength(101);
    expect(Math.max(...waits)).toBeCloseTo(199 * 0.3);
  });

  test("is missed soon where all before it have had their turns, and wait only to be ready", async () => {
    const made = await worldOf(names(250), { maxConcurrent: 200 });
    await begin(made);
    for (const { cluster } of made.slots()) await made.observe(cluster, "Verifying");
    made.advanceClock(60);
    const [first] = made.slots();
    await made.finish(first?.cluster ?? "");
    await made.plan();
    const [fresh] = made.rows<SyncRow>("SyncOnCluster").filter(({ observed }) => observed === undefined);
    expect(dueAtOf(fresh?.dueKey ?? "")).toBe(later(made.now, 30));
  });

  test("waits for no more than have slots, however many were assigned lately", async () => {
    const made = await worldOf(names(250), { maxConcurrent: 110 });
    await begin(made);
    for (const { cluster } of made.slots()) await made.finish(cluster);
    await made.plan();
    const fresh = made.rows<SyncRow>("SyncOnCluster").filter(({ observed }) => observed === undefined);
    expect(fresh).toHaveLength(110);
    const waits = fresh.map(({ dueKey = "" }) => (Date.parse(dueAtOf(dueKey)) - made.now.getTime()) / 1000);
    expect(Math.max(...waits)).toBeCloseTo(109 * 0.3);
  });

  test("that is forgotten is nobody's to look at, and known to be left", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 });
    await made.rollOut();
    expect(await made.sync("b")).toMatchObject({ dueKey: expect.any(String) });
    await made.setGroup({ maxConcurrent: 2 }, web, { names: ["a"] });
    await made.plan();
    const row = await made.sync("b");
    expect(row).toMatchObject({ desired: { action: "orphan" }, stateSk: "Orphaned#b#web.app" });
    expect(row).not.toHaveProperty("dueKey");
    await made.removeCluster("a");
    await made.plan();
    const gone = await made.sync("a");
    expect(gone).toMatchObject({ desired: { action: "orphan" }, stateSk: "Orphaned#a#web.app" });
    expect(gone).not.toHaveProperty("dueKey");
    expect(gone).not.toHaveProperty("observed");
  });
});
