/** A template that is dropped, put back, given back and dropped again while one content goes through its stage. */
import { describe, expect, test } from "vitest";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { ana, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const both = [...web, { name: "data", source: "app" }];
const pace = { maxConcurrent: 4 };
const data = async (made: PlannerWorld) => (await made.sync("a", "web.data"))?.desired;
const rollouts = (made: PlannerWorld) => made.rows<RolloutRow>("Rollout").map(({ number }) => number);

/** `a` is through with a content that drops `data`, and has it again, as its stage has it. */
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

/** As one leaves it that died between taking a removal back and saying so: nothing tells that anybody has it. */
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

describe("what was given back and is dropped again is deleted", () => {
  test("by a content of its own, once its stage is through, and then no more follow", async () => {
    const made = await restored();
    await drop(made);
    await playOn(made, 20);
    expect(await data(made)).toBeUndefined();
    expect(made.stages()).toEqual({ all: "3" });
    await rest(made);
    expect(rollouts(made).at(-1)).toBe(3);
    expect(made.rolloutState().templates).toEqual(["app"]);
  });

  test("where it is dropped again when its stage is through, and nothing else was taken yet", async () => {
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

  test("where nothing tells that it was given back, once everything is at rest", async () => {
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

describe("a template of which a Sync is there still", () => {
  test("is not forgotten, and no content follows another for it, where no content comes to its cluster", async () => {
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
    "goes with its group by %s, although its unit has forgotten it",
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
