import fc from "fast-check";
import { expect, test } from "vitest";
import { ownerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { groupRow, stage, stageRun, threeRollouts } from "#test/unit/cli/format/overview-fixture.ts";
import { rolloutStateRow, stageRecord } from "#test/unit/functions/api/row-fixture.ts";

function shown(stages: readonly StageRecord[], stageRuns: readonly StageRunRow[] = [], rolloutState = {}) {
  const { versions, bare } = ownerInFleet(groupRow(), {
    rolloutState: rolloutStateRow(stages, rolloutState),
    stageRuns: new Map(stageRuns.map((one) => [stageRunKey(one), one])),
  });
  return {
    versions: versions.map(({ number, clusters, stages: current }) => `${number}: ${clusters} ${current.join("+")}`),
    bare,
  };
}

test("the finished clusters of an updating stage have the new rollout, and the others the rollout before", () => {
  const { stageRuns, stages } = threeRollouts(
    { canary: 10, early: 20, rest: 70 },
    { Succeeded: 5, Unchanged: 2, Failed: 1, Waiting: 12 },
  );
  expect(shown(stages, stageRuns)).toEqual({
    versions: ["119: 10 canary", "118: 7 early", "117: 83 early+rest"],
    bare: 0,
  });
});

test("the newest rollout is listed even without a cluster, and clusters without a rollout are counted", () => {
  const first = stageRun(1, "all", { counts: { Waiting: 3 } });
  expect(shown([stageRecord(first, { members: 3 })], [first])).toEqual({ versions: ["1: 0 "], bare: 3 });
});

test("a rollout state of another object with the same name is ignored", () => {
  expect(shown([stage("all", { members: 3, current: 1 })], [], { uid: "another" })).toEqual({ versions: [], bare: 0 });
});

test("the clusters of all versions add up to all members, for any rollouts of the stages", () => {
  const number = fc.integer({ min: 1, max: 6 });
  const stages = fc.array(
    fc.record({
      members: fc.nat(50),
      current: fc.option(number, { nil: undefined }),
      updatingTo: fc.option(fc.record({ rollout: number, done: fc.nat(60), unchanged: fc.nat(60) }), {
        nil: undefined,
      }),
    }),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(stages, (given) => {
      const stageRuns: StageRunRow[] = [];
      const rolloutState = given.map(({ members, current, updatingTo }, at): StageRecord => {
        const made = stage(`s${at}`, { members, ...(current === undefined ? {} : { current }) });
        if (updatingTo === undefined) return made;
        const one = stageRun(updatingTo.rollout, `s${at}`, {
          counts: { Succeeded: updatingTo.done, Unchanged: updatingTo.unchanged },
        });
        stageRuns.push(one);
        return { ...made, updatingTo: { rollout: one.rollout, stage: one.stage, snapshot: one.snapshot } };
      });
      const { versions, bare } = ownerInFleet(groupRow(), {
        rolloutState: rolloutStateRow(rolloutState),
        stageRuns: new Map(stageRuns.map((one) => [stageRunKey(one), one])),
      });
      const counted = versions.reduce((sum, { clusters }) => sum + clusters, bare);
      expect(counted).toBe(given.reduce((sum, { members }) => sum + members, 0));
    }),
  );
});

test("the clusters that wait for closed windows are counted by window, targets and catch-ups together", () => {
  const hold = (cause: "window" | "freeze", name: string, clusters: readonly number[]) => ({ cause, name, clusters });
  const canary = stageRun(2, "canary", { counts: { Waiting: 3 }, holds: [hold("window", "nights", [0, 1])] });
  const rest = stageRun(1, "rest", {
    counts: { Waiting: 4 },
    holds: [hold("window", "nights", [3]), hold("window", "nights, year-end", [1]), hold("freeze", "f1", [2])],
  });
  const waitsOf = (waiting: number) =>
    ownerInFleet(groupRow(), {
      rolloutState: rolloutStateRow([stageRecord(canary, { members: 3 }), stageRecord(rest, { members: 4 })], {
        catchUps: { waiting, changing: 0, failed: 0 },
        catchUpsHeld: { holds: [{ cause: "window", name: "nights", clusters: 2 }] },
      }),
      stageRuns: new Map([canary, rest].map((one) => [stageRunKey(one), one])),
    }).windowWaits;
  expect(waitsOf(0)).toEqual([
    { window: "nights", clusters: 3 },
    { window: "nights, year-end", clusters: 1 },
  ]);
  expect(waitsOf(2)?.[0]).toEqual({ window: "nights", clusters: 5 });
  const none = ownerInFleet(groupRow(), { rolloutState: rolloutStateRow([]), stageRuns: new Map() });
  expect(none).not.toHaveProperty("windowWaits");
});
