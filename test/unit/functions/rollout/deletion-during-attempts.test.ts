/**
 * A deletion does not wait for attempts that began before it: such an attempt may never end, and its objects are to be
 * deleted anyway.
 */
import { expect, test } from "vitest";
import { readOwner } from "#functions/rollout/read/read-owner.ts";
import { slotWaits } from "#shared/fleet/waits/slot-waits.ts";
import { ana, begin, lease, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";
import { owner } from "#test/support/planner-world.ts";

const remove = (made: PlannerWorld) => made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });

test.each(["Applying", "Retrying", "Verifying"] as const)(
  "a deletion pauses an attempt that is %s at once, in any stage, and does not wait for its deadline",
  async (phase) => {
    const made = await worldOf({ a: "canary", z: "rest" }, { ...rings, maxConcurrent: 1, progressDeadline: "1h" });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("a");
    await made.plan();
    expect(made.slots()).toMatchObject([{ cluster: "z" }]);
    await made.observe("z", phase);
    await remove(made);
    await begin(made);
    expect(made.slots()).toMatchObject([{ cluster: "a", rollout: 3 }]);
    expect((await made.sync("z"))?.paused).toMatchObject({ reason: "everything of it is to be deleted" });
    await playOn(made, 4);
    expect(made.rows("SyncGroup")).toEqual([]);
  },
);

test("a deletion gives the slot of a paused attempt to no other cluster before its worker can no longer write", async () => {
  const made = await worldOf({ a: "canary", z: "rest" }, { ...rings, maxConcurrent: 1, progressDeadline: "1h" });
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("a");
  await made.plan();
  await made.observe("z", "Applying");
  await lease(made, "z", { fence: 4, seconds: 40 });
  await remove(made);
  await begin(made);
  expect(made.slots()).toMatchObject([{ cluster: "z", releasing: { fence: 4 } }]);
  made.advanceClock(41);
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "a", rollout: 3 }]);
});

test("a wait for a slot in a deletion advises to orphan: the pace of a group in deletion can no longer be changed", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
  await made.rollOut();
  await remove(made);
  await begin(made);
  const known = await readOwner(owner, made);
  if (known === undefined) throw new Error("the group is gone");
  const freezeState = { ok: true, freezeState: known.freezeState } as const;
  const facts = {
    ...known,
    desired: undefined,
    freezeState,
    now: made.now,
    slots: made.slots(),
    syncs: new Map(),
    leases: new Map(),
  };
  const waits = slotWaits({ ...facts, failedCatchUps: [] });
  expect(waits.map(({ clear }) => clear)).toEqual([[{ verb: "orphan" }]]);
});
