import { describe, expect, test } from "vitest";
import { wakeUp } from "#functions/rollout/write/assign.ts";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { begin, names, web, worldOf } from "#test/support/planner-story.ts";

const now = new Date("2026-11-21T08:00:00.000Z");

describe("the message that wakes a worker", () => {
  test.each([
    ["the message has no delay where the worker may begin at once", undefined, {}],
    ["the message has no delay where the start time has passed", "2026-11-21T07:59:59.000Z", { delaySeconds: 0 }],
    ["the message has a delay until the start time, rounded up", "2026-11-21T08:00:10.500Z", { delaySeconds: 11 }],
    ["the message has a delay in whole seconds", "2026-11-21T08:00:10.000Z", { delaySeconds: 10 }],
    ["the delay is at most what a queue allows", "2026-11-21T10:00:00.000Z", { delaySeconds: 900 }],
  ])("%s", (_what, startAt, more) => {
    expect(wakeUp("a", startAt, now)).toEqual([{ to: "apply", cluster: "a", ...more }]);
  });
});

describe("a Sync", () => {
  test("a Sync whose row was lost gets the same uid again, and Syncs of other clusters or templates get others", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 2 }, [...web, { name: "two", source: "app" }]);
    await begin(made);
    expect(made.rows<SyncRow>("SyncOnCluster").map(({ uid }) => uid)).toEqual([
      "bfaf5074-d1d4-6e51-ddca-4e50024e02b9",
      "d7a994dd-c47b-1ebb-c996-fa33efa98966",
      "2b4e5b34-8d90-14bf-4d07-e420464a3199",
      "6b7d664c-6f3e-9dad-4a3e-d61c781c2eef",
    ]);
  });

  test("a Sync becomes due within a minute of its start time, so that a lost message delays it no longer", async () => {
    const made = await worldOf(names(20), { maxConcurrent: "100%", jitter: "15m" });
    await begin(made);
    for (const { desired, dueKey = "", dispatches } of made.rows<SyncRow>("SyncOnCluster")) {
      const { startAt = "" } = desired;
      const at = dueAtOf(dueKey);
      expect(at > startAt && at <= later(new Date(startAt), 60), at).toBe(true);
      expect(dispatches).toBe(1);
    }
  });

  test("a Sync that is assigned with many others does not become due while the others have their turns", async () => {
    const made = await worldOf(names(200), { maxConcurrent: "100%" });
    await begin(made);
    const waits = made
      .rows<SyncRow>("SyncOnCluster")
      .map(({ desired, dueKey = "" }) => (Date.parse(dueAtOf(dueKey)) - Date.parse(desired.assignedAt)) / 1000);
    expect(waits).toHaveLength(200);
    expect(waits.filter((seconds) => seconds === 30)).toHaveLength(101);
    expect(Math.max(...waits)).toBeCloseTo(199 * 0.3);
  });

  test("a Sync becomes due soon when every Sync before it has had its turn and only waits to be ready", async () => {
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

  test("a Sync becomes due after no more turns than there are slots, however many Syncs were assigned lately", async () => {
    const made = await worldOf(names(250), { maxConcurrent: 110 });
    await begin(made);
    for (const { cluster } of made.slots()) await made.finish(cluster);
    await made.plan();
    const fresh = made.rows<SyncRow>("SyncOnCluster").filter(({ observed }) => observed === undefined);
    expect(fresh).toHaveLength(110);
    const waits = fresh.map(({ dueKey = "" }) => (Date.parse(dueAtOf(dueKey)) - made.now.getTime()) / 1000);
    expect(Math.max(...waits)).toBeCloseTo(109 * 0.3);
  });

  test("a Sync that is forgotten is no longer due, and its state says Orphaned", async () => {
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
