/** A deletion does not wait for what was begun before it: an attempt may never be done, and everything of it is to go. */
import { expect, test } from "vitest";
import { readOwner } from "#functions/rollout/read-owner.ts";
import { slotWaits } from "#shared/fleet/waits/slot-waits.ts";
import { ana, begin, lease, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";
import { owner } from "#test/support/planner-world.ts";

const remove = (made: PlannerWorld) => made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });

test.each(["Applying", "Retrying", "Verifying"] as const)(
  "an attempt that is %s gives way at once, in whichever stage, and not at its deadline",
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

test("and nobody else has its slot before its worker can no longer write", async () => {
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

test("a wait for a slot names what helps: the pace of what is being deleted cannot be changed any more", async () => {
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
