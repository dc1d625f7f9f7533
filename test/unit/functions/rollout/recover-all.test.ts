/** After a lost table one `recover --all` is enough, also for clusters that the new table has not assigned yet. */
import { expect, test } from "vitest";
import { accepted } from "#shared/fleet/rows/lineage.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { ana, begin, names, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";
import { observedOf } from "#test/support/sync-rows.ts";

const remembered = { attempt: 9, fence: 30, token: "of-lost-rows" };
const both = [
  { name: "app", source: "app" },
  { name: "base", source: "app" },
];
const clusters = names(3);

/** The cluster remembers an assignment of the lost rows. */
async function refuse(made: PlannerWorld, cluster: string, name: string, more: { owner?: string } = {}): Promise<void> {
  const row = await made.sync(cluster, name);
  if (row === undefined) throw new Error("nothing was assigned");
  const { attempt } = row.desired;
  const at = made.now.toISOString();
  const said = { attempt, phase: "Failed" as const, reason: "ClusterAhead", startedAt: at, since: at, at };
  const observed = { ...observedOf(said), remembered: { ...remembered, ...more } };
  const put: SyncRow = { ...row, observed, version: row.version + 1 };
  await made.table.write([{ put }]);
}

/** A worker refuses a cluster whose records its rows do not know; it accepts the token that `accepted` leaves. */
async function work(made: PlannerWorld): Promise<void> {
  for (const { cluster, attempts, releasing } of made.slots()) {
    if (releasing !== undefined) continue;
    for (const name of Object.keys(attempts)) {
      const row = await made.sync(cluster, name);
      if (row?.desired.earlier?.includes(remembered.token) === true) await made.observe(cluster, "Ready", { name });
      else await refuse(made, cluster, name);
    }
  }
  await made.plan();
}

/** Writes what the API writes for the Syncs that are refused now, and for the group. */
async function recover(made: PlannerWorld, scope: { all?: true }): Promise<void> {
  const act = ana(made.now);
  for (const row of made.rows<SyncRow>("SyncOnCluster")) {
    if (row.observed?.remembered === undefined) continue;
    const put: SyncRow = { ...row, ...accepted(row, act), version: row.version + 1 };
    await made.table.write([{ put: { ...put, stateSk: `Orphaned#${row.cluster}#${row.name}` } }]);
  }
  await made.operate({ recovered: { ...act, ...scope } });
}

async function lostTable(): Promise<PlannerWorld> {
  const made = await worldOf(clusters, { maxConcurrent: 1 }, both);
  await begin(made);
  await work(made);
  expect((await made.group()).status.state).toBe("Halted");
  expect(new Set(made.rows<SyncRow>("SyncOnCluster").map(({ cluster }) => cluster)).size).toBe(1);
  return made;
}

async function playOn(made: PlannerWorld): Promise<void> {
  for (let round = 0; round < 20; round++) {
    made.advanceClock(1);
    await begin(made);
    await work(made);
  }
}

test("one recover of all clusters restores every cluster, although the group halted at the first one", async () => {
  const made = await lostTable();
  await recover(made, { all: true });
  await playOn(made);
  const syncs = made.rows<SyncRow>("SyncOnCluster");
  expect(syncs.map(({ cluster, observed }) => `${cluster} ${observed?.phase}`)).toEqual(
    clusters.flatMap((cluster) => [`${cluster} Ready`, `${cluster} Ready`]),
  );
  for (const { desired, recovered } of syncs) {
    expect(desired.attempt).toBeGreaterThan(remembered.attempt);
    expect(recovered).toMatchObject({ by: "ana", remembered });
  }
  expect(made.stageRuns().filter(({ phase }) => phase === "Halted")).toEqual([]);
  expect(made.stageRun("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 3, Failed: 0 } });
});

test("a recover of named clusters affects only these", async () => {
  const made = await lostTable();
  await recover(made, {});
  await playOn(made);
  expect((await made.group()).status.state).toBe("Halted");
});

test("a recover lets a Sync go on once: when another table takes it again, the worker refuses it again", async () => {
  const made = await lostTable();
  await recover(made, { all: true });
  await playOn(made);
  await made.setSource("bbb");
  await begin(made);
  const [slot] = made.slots();
  if (slot === undefined) throw new Error("nothing was given");
  await refuse(made, slot.cluster, "web.app");
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ phase: "Halted", counts: { Failed: 1 } });
});

test("a recover does not take over a cluster that belongs to another owner", async () => {
  const made = await lostTable();
  await recover(made, { all: true });
  made.advanceClock(1);
  await begin(made);
  await work(made);
  const [slot] = made.slots();
  if (slot === undefined) throw new Error("nothing was given");
  await refuse(made, slot.cluster, "web.app", { owner: "another-installation" });
  await made.plan();
  expect(made.stageRun("all")).toMatchObject({ phase: "Halted", counts: { Failed: 1 } });
});
