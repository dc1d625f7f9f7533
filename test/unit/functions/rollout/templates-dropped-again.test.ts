/**
 * A template that is dropped, added again, restored on a cluster and dropped again while one rollout goes through its
 * stage.
 */
import { describe, expect, test } from "vitest";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { ana, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const both = [...web, { name: "data", source: "app" }];
const pace = { maxConcurrent: 4 };
const data = async (made: PlannerWorld) => (await made.sync("a", "web.data"))?.desired;
const rollouts = (made: PlannerWorld) => made.rows<RolloutRow>("Rollout").map(({ number }) => number);

/** `a` is done with a rollout that drops `data`, and has `data` again from the stage's current rollout. */
async function restored(): Promise<PlannerWorld> {
  const made = await worldOf(["a", "b", "c"], pace, both);
  await made.rollOut();
  await made.setGroup(pace, web);
  await revise(made, "bbb");
  await made.finish("a");
  await made.plan();
  expect(await data(made)).toBeUndefined();
  await made.setGroup(pace, both);
  await made.plan(made.table, []);
  await made.finish("a");
  await made.plan(made.table, ["a"]);
  expect(await data(made)).toMatchObject({ action: "apply", rollout: 1 });
  return made;
}

async function drop(made: PlannerWorld): Promise<void> {
  await made.setGroup(pace, web);
  await made.plan(made.table, []);
}

/**
 * A planner that dies after restoring a Sync and before recording it leaves these rows: no row says that a cluster has
 * it.
 */
async function pendingReports(): Promise<PlannerWorld> {
  const made = await restored();
  const { putBack: _putBack, ...stageRun } = made.stageRun("all");
  await made.table.write([
    { put: { ...stageRun, version: stageRun.version + 1 }, when: { version: stageRun.version } },
  ]);
  await drop(made);
  expect(made.stageRun("all").putBack).toBeUndefined();
  return made;
}

async function rest(made: PlannerWorld): Promise<void> {
  for (let check = 0; check < 6; check++) {
    made.advanceClock(700);
    await made.plan();
  }
}

async function deleteGroup(made: PlannerWorld, cascade: "delete" | "orphan"): Promise<void> {
  await made.operate({ deletion: { ...ana(made.now), cascade } });
  for (let round = 0; round < 20 && made.rows("SyncGroup").length > 0; round++) {
    await made.plan();
    for (const { cluster, releasing } of made.slots()) if (releasing === undefined) await made.finish(cluster);
  }
  expect(made.rows("SyncGroup")).toEqual([]);
}

describe("a Sync that was restored and whose template is dropped again", () => {
  test("a restored Sync is deleted by one more rollout after its stage has passed, and no further rollouts follow", async () => {
    const made = await restored();
    await drop(made);
    await playOn(made, 20);
    expect(await data(made)).toBeUndefined();
    expect(made.stages()).toEqual({ all: "3" });
    await rest(made);
    expect(rollouts(made).at(-1)).toBe(3);
    expect(made.rolloutState().templates).toEqual(["app"]);
  });

  test("a restored Sync is deleted when its template is dropped after the stage has passed and before a newer rollout", async () => {
    const made = await restored();
    await made.operate({ suspended: ana(made.now) });
    await playOn(made, 20);
    expect(made.stages()).toEqual({ all: "2" });
    expect(await data(made)).toMatchObject({ action: "apply" });
    await drop(made);
    await made.operate({ resumed: ana(made.now) });
    await made.plan();
    expect(made.stages()).toEqual({ all: "2 (3)" });
    await playOn(made, 20);
    expect(await data(made)).toBeUndefined();
    expect(made.stages()).toEqual({ all: "3" });
  });

  test("a restored Sync that no row records is deleted once everything is idle", async () => {
    const made = await pendingReports();
    await playOn(made, 20);
    await rest(made);
    await playOn(made, 20);
    expect(await data(made)).toBeUndefined();
    await rest(made);
    expect(made.stages()).toEqual({ all: "3" });
    expect(made.rolloutState().templates).toEqual(["app"]);
  });
});

describe("a dropped template with a Sync that still exists", () => {
  test("the group keeps the template and starts no further rollouts when none would reach the Sync's cluster", async () => {
    const made = await pendingReports();
    const { pk, sk } = (await made.sync("a", "web.data")) as SyncRow;
    const row = (await made.sync("a", "web.data")) as SyncRow;
    const stray = { ...row, version: 1, cluster: "z", pk: pk.replace(/a$/, "z"), sk };
    expect(stray.pk).not.toBe(pk);
    await made.table.write([
      { delete: { pk, sk } },
      { put: { ...stray, stateSk: row.stateSk?.replace("#a#", "#z#") } as SyncRow },
    ]);
    await playOn(made, 20);
    await rest(made);
    expect(made.stages()).toEqual({ all: "2" });
    expect(made.rolloutState().templates).toEqual(["app", "data"]);
  });

  test.each(["delete", "orphan"] as const)(
    "a deletion by %s includes the Sync, although the rollout state has forgotten its template",
    async (cascade) => {
      const made = await pendingReports();
      await playOn(made, 1);
      await made.operate({ suspended: ana(made.now) });
      await playOn(made, 20);
      expect(await data(made)).toMatchObject({ action: "apply" });
      const rolloutState = made.rolloutState();
      const put = { ...rolloutState, templates: ["app"], version: rolloutState.version + 1 };
      await made.table.write([{ put, when: { version: rolloutState.version } }]);
      await deleteGroup(made, cascade);
      if (cascade === "delete") expect(await data(made)).toBeUndefined();
      else expect(await data(made)).toMatchObject({ action: "orphan" });
    },
  );
});
