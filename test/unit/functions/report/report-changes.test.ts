import { beforeEach, expect, test } from "vitest";
import { reportChanges } from "#functions/report/report-changes.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import type { ReportMessage } from "#shared/messages.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { owner, silentLog, silentMetrics } from "#test/support/planner-world.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

let table: MemoryTable;
let sender: MemorySender;
let counted: unknown[];
beforeEach(() => {
  table = new MemoryTable();
  sender = new MemorySender();
  counted = [];
});

const metrics = { ...silentMetrics, count: (...said: unknown[]) => void counted.push(said) };
const report = (messages: readonly ReportMessage[], on = table) =>
  reportChanges(messages, { table: on, events: on, sender, metrics, log: silentLog });
const aboutSync = (cluster: string, name = "web.app"): ReportMessage => ({
  to: "report",
  about: { kind: "Sync", cluster, namespace: "shop", name },
});
const events = (on = table) => on.all().filter((row): row is EventRow => row.type === "Event");

test("changed Syncs become events and metrics, and the planner is woken once", async () => {
  await table.write([
    { put: syncRowOf("c1", { observed: { phase: "Ready" } }) },
    { put: syncRowOf("c2", { observed: { phase: "Failed", reason: "Invalid" } }) },
    { put: syncRowOf("c3", { observed: { phase: "Verifying" } }) },
  ]);
  await report([aboutSync("c1"), aboutSync("c2"), aboutSync("c3"), aboutSync("c3")]);
  expect(events().map(({ cluster, reason, severity }) => ({ cluster, reason, severity }))).toEqual(
    expect.arrayContaining([
      { cluster: "c1", reason: "Ready", severity: "info" },
      { cluster: "c2", reason: "Invalid", severity: "error" },
    ]),
  );
  expect(events()).toHaveLength(2);
  expect(counted).toEqual([
    ["SyncPhase", 1, { phase: "Ready" }],
    ["SyncPhase", 1, { phase: "Failed" }],
    ["SyncPhase", 1, { phase: "Verifying" }],
  ]);
  expect(sender.take()).toEqual([{ to: "rollout", owner, clusters: ["c1", "c2", "c3"] }]);
});

test("a repeated report writes nothing new", async () => {
  await table.write([{ put: syncRowOf("c1", { observed: { phase: "Ready" } }) }]);
  await report([aboutSync("c1")]);
  const before = table.all();
  await report([aboutSync("c1"), aboutSync("c1")]);
  expect(table.all()).toEqual(before);
});

test("a report about a deleted row writes and sends nothing", async () => {
  await report([
    aboutSync("gone"),
    { to: "report", about: { kind: "Rollout", owner, stageRun: { rollout: 9, stage: "all", snapshot: 1 } } },
  ]);
  expect(table.all()).toEqual([]);
  expect(sender.take()).toEqual([]);
});

test("a report about a stage run becomes an event and a metric, and does not wake its planner", async () => {
  const stageRun = { rollout: 4, stage: "canary", snapshot: 1 };
  const at = "2026-11-21T08:00:00.000Z";
  const transitions = [{ at, phase: "Halted", reason: "TooManyFailures", message: "1 cluster failed" }];
  const common = { schema: rowSchema, version: 1, type: "StageRun", phase: "Halted" } as const;
  const row = { ...keys.stageRun(owner, stageRun), ...common, ...stageRun, owner, transitions };
  await table.write([{ put: row }]);
  await report([{ to: "report", about: { kind: "Rollout", owner, stageRun } }]);
  expect(events().map(({ reason, message }) => [reason, message])).toEqual([
    ["RolloutHalted", "web-4: 1 cluster failed"],
  ]);
  expect(counted).toEqual([["RolloutPhase", 1, { phase: "Halted" }]]);
  expect(sender.take()).toEqual([]);
});

test("more events than fit into a transaction are all written", async () => {
  const clusters = Array.from({ length: 150 }, (_, index) => `c${index}`);
  for (const cluster of clusters) await table.write([{ put: syncRowOf(cluster, { observed: { phase: "Ready" } }) }]);
  await report(clusters.map((cluster) => aboutSync(cluster)));
  expect(events()).toHaveLength(150);
  expect(sender.take()).toHaveLength(1);
});

test("each group is woken for its own Syncs with the push that they are about, and rows of a newer version are left out", async () => {
  const other = { ...owner, name: "api" };
  await table.write([
    { put: syncRowOf("c1", { observed: { phase: "Ready" } }) },
    { put: { ...syncRowOf("c2", { observed: { phase: "Ready" } }), owner: other } },
    { put: { ...syncRowOf("c3", { observed: { phase: "Ready" } }), schema: newestRowSchema + 1 } },
  ]);
  const reports = ["c1", "c2", "c3"].map((cluster) => ({ ...aboutSync(cluster), correlationId: `push-${cluster}` }));
  await report(reports);
  expect(sender.take()).toEqual([
    { to: "rollout", owner, clusters: ["c1"], correlationId: "push-c1" },
    { to: "rollout", owner: other, clusters: ["c2"], correlationId: "push-c2" },
  ]);
});
