/**
 * Every step of the planner makes progress or throws. A slot stays small enough for one transaction, whatever people
 * rename.
 */
import { describe, expect, test } from "vitest";
import { requireProgress } from "#functions/rollout/call/plan-owner.ts";
import { readOwner } from "#functions/rollout/read/read-owner.ts";
import { reportUnplanned } from "#functions/rollout/repair/report-unplanned.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { begin, lease, names, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog } from "#test/support/planner-world.ts";

const pace = { maxConcurrent: 2, progressDeadline: "5m" as const };
const templates = (renames: number) => names(20, `r${renames}-t`).map((name) => ({ name, source: "app" }));

async function renameWithoutWorkers(made: PlannerWorld, renames: number): Promise<void> {
  for (let number = 1; number <= renames; number++) {
    await made.setGroup(pace, templates(number));
    await begin(made);
    made.advanceClock(400);
    await made.plan();
  }
}

const applied = (made: PlannerWorld, cluster: string) =>
  made
    .rows<SyncRow>("SyncOnCluster")
    .filter((row) => row.cluster === cluster)
    .map(({ name, desired }) => `${desired.action} ${name}`);
const sizes = (made: PlannerWorld) => made.slots().map(({ attempts }) => Object.keys(attempts).length);

describe("20 templates that are renamed before a worker begins", { timeout: 60_000 }, () => {
  test.each([4, 12])(
    "20 templates that are renamed %d times keep a slot small, and the newest names are applied",
    async (renames) => {
      const made = await worldOf(names(2), pace, templates(0));
      await made.rollOut();
      await renameWithoutWorkers(made, renames);
      expect(sizes(made)).toEqual([50, 50]);
      const newest = templates(renames).map(({ name }) => `apply web.${name}`);
      for (const cluster of names(2)) expect(applied(made, cluster)).toEqual(expect.arrayContaining(newest));
      await made.rollOut();
      for (const cluster of names(2)) expect(applied(made, cluster)).toEqual(newest);
    },
  );

  test("a slot that an older version let grow is made smaller", async () => {
    const made = await worldOf(["c1"], pace, templates(0));
    await made.rollOut();
    await renameWithoutWorkers(made, 4);
    const [slot] = made.slots();
    if (slot === undefined) throw new Error("nothing was given");
    const syncs = made.rows<SyncRow>("SyncOnCluster");
    const attempts = Object.fromEntries(syncs.map(({ name, desired }) => [name, desired.attempt]));
    const grown: SlotRow = { ...slot, attempts, version: slot.version + 1 };
    await made.table.write([{ put: grown }]);
    expect(sizes(made)).toEqual([100]);
    await made.plan();
    expect(sizes(made)).toEqual([50]);
    await made.rollOut();
    expect(applied(made, "c1")).toEqual(templates(4).map(({ name }) => `apply web.${name}`));
  });

  test("a slot of which a part is done is kept until no worker can write the paused part", async () => {
    const made = await worldOf(["c1"], pace, templates(0));
    await made.rollOut();
    await renameWithoutWorkers(made, 4);
    await lease(made, "c1", { fence: 3, seconds: 40 });
    await made.finish("c1");
    await made.plan();
    expect(made.slots()).toMatchObject([{ releasing: { fence: 3 } }]);
    made.advanceClock(41);
    await made.rollOut();
    expect(applied(made, "c1")).toEqual(templates(4).map(({ name }) => `apply web.${name}`));
  });
});

describe("a step of the planner that changes nothing", () => {
  async function stuck(): Promise<StarlingError> {
    const made = await worldOf(["c1"], pace);
    await begin(made);
    const known = await readOwner(owner, made);
    if (known === undefined) throw new Error("the group is gone");
    const transaction = new Transaction(known, made.now);
    // A write of the same jobs counts as progress when the slot is smaller.
    transaction.edit({ jobs: [...known.rolloutState.jobs] });
    const [slot] = made.slots();
    const remaining = { slot, counts: [1, 0, 0, 0] };
    expect(() =>
      requireProgress({ step: "settleSlots", transaction }, remaining, { slot, counts: [0, 0, 0, 0] }),
    ).not.toThrow();
    try {
      requireProgress({ step: "settleSlots", transaction }, remaining, remaining);
    } catch (error) {
      if (error instanceof StarlingError) return error;
    }
    throw new Error("it was taken for progress");
  }

  test("a step that changes nothing throws an error that names the step and the row", async () => {
    const { code, message } = await stuck();
    expect({ code, message }).toEqual({
      code: "NoProgress",
      message:
        "the planner's step settleSlots changes nothing for web: row ROLL#shop#SyncGroup#web SLOT#c1 (attempts: 1); it is tried again, ever later",
    });
  });

  test("a group whose step changes nothing reports it, and is tried again at growing intervals", async () => {
    const made = await worldOf(["c1"], pace);
    await begin(made);
    const error = await stuck();
    const ports = { ...made, clock: { now: () => made.now }, log: silentLog, installation: "test" };
    const key = keys.object(owner.namespace, owner.kind, owner.name);
    for (const [dispatches, seconds] of [
      [0, 30],
      [1, 60],
      [4, 480],
      [9, 900],
    ] as const) {
      const row = await made.group();
      await made.table.write([{ put: { ...row, ...key, dispatches, version: row.version + 1 } }]);
      await reportUnplanned(owner, error, { ...ports, ids: { unique: () => "" } });
      const { status, dueKey = "" } = await made.group();
      expect(status.conditions).toMatchObject([{ status: "False", reason: "NoProgress", message: error.message }]);
      expect(dueAtOf(dueKey), `after ${dispatches}`).toBe(later(made.now, seconds));
    }
  });
});
