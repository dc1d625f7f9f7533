import fc from "fast-check";
import { expect, test } from "vitest";
import { subjectInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import type { LegRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { groupRow, leg, stage, threeContents } from "#test/unit/cli/format/overview-fixture.ts";
import { unitRow, unitStage } from "#test/unit/functions/api/row-fixture.ts";

function shown(stages: readonly UnitStage[], legs: readonly LegRow[] = [], unit = {}) {
  const { versions, bare } = subjectInFleet(groupRow(), {
    unit: unitRow(stages, unit),
    legs: new Map(legs.map((one) => [legKey(one), one])),
  });
  return {
    versions: versions.map(({ number, clusters, stages: on }) => `${number}: ${clusters} ${on.join("+")}`),
    bare,
  };
}

test("of a stage that something goes through, those that it came to are on it and the others on what was before", () => {
  const { legs, stages } = threeContents(
    { canary: 10, early: 20, rest: 70 },
    { Succeeded: 5, Unchanged: 2, Failed: 1, Waiting: 12 },
  );
  expect(shown(stages, legs)).toEqual({ versions: ["119: 10 canary", "118: 7 early", "117: 83 early+rest"], bare: 0 });
});

test("the newest is told though no cluster is on it yet, and those that have nothing are counted", () => {
  const first = leg(1, "all", { counts: { Waiting: 3 } });
  expect(shown([unitStage(first, { members: 3 })], [first])).toEqual({ versions: ["1: 0 "], bare: 3 });
});

test("a unit of another object of the same name says nothing", () => {
  expect(shown([stage("all", { members: 3, on: 1 })], [], { uid: "another" })).toEqual({ versions: [], bare: 0 });
});

test("whatever stages are on and go through, the clusters of all versions are all members", () => {
  const number = fc.integer({ min: 1, max: 6 });
  const stages = fc.array(
    fc.record({
      members: fc.nat(50),
      on: fc.option(number, { nil: undefined }),
      moving: fc.option(fc.record({ content: number, done: fc.nat(60), unchanged: fc.nat(60) }), { nil: undefined }),
    }),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(stages, (given) => {
      const legs: LegRow[] = [];
      const unit = given.map(({ members, on, moving }, at): UnitStage => {
        const made = stage(`s${at}`, { members, ...(on === undefined ? {} : { on }) });
        if (moving === undefined) return made;
        const one = leg(moving.content, `s${at}`, { counts: { Succeeded: moving.done, Unchanged: moving.unchanged } });
        legs.push(one);
        return { ...made, moving: { content: one.content, stage: one.stage, seal: one.seal } };
      });
      const { versions, bare } = subjectInFleet(groupRow(), {
        unit: unitRow(unit),
        legs: new Map(legs.map((one) => [legKey(one), one])),
      });
      const told = versions.reduce((sum, { clusters }) => sum + clusters, bare);
      expect(told).toBe(given.reduce((sum, { members }) => sum + members, 0));
    }),
  );
});
