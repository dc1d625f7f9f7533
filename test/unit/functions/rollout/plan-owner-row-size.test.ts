import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

test("a group whose plan makes a row too large reports it, and the planner does not try for ever", async () => {
  const world = new PlannerWorld();
  await world.addCluster("c1", "rest");
  await world.setSource("aaa");
  await world.setGroup({});
  await world.rollOut();
  const said = { rollout: 1, stages: [{ name: "all", current: 1 }], revision: "main@sha1:aaa", clusters: { ready: 1 } };
  const rolloutState = world.rolloutState();
  world.sender.take();
  const group = await world.group();
  // The rollout state holds each stage, with its counts.
  const stages = Array.from({ length: 4_000 }, (_, index) => ({ name: `${"s".repeat(50)}${index}` }));
  const large: SyncGroupRow = { ...group, spec: { ...group.spec, rollout: { ...group.spec.rollout, stages } } };
  await world.table.write([{ put: large }]);

  await world.plan();
  const stored = await world.table.get(keys.object(owner.namespace, "SyncGroup", owner.name));
  expect(stored?.status).toMatchObject({
    state: "Waiting",
    observedGeneration: group.generation,
    ...said,
    conditions: [
      {
        type: "Ready",
        status: "False",
        reason: "RowTooLarge",
        message: expect.stringMatching(/^row ROLL#.* stages \(/),
      },
    ],
  });
  expect(world.rows("RolloutState")).toEqual([rolloutState]);
  expect(world.sender.take()).toEqual([]);

  const before = world.table.all();
  await world.plan();
  expect(world.table.all()).toEqual(before);

  await world.setGroup({});
  await world.plan();
  expect(world.rolloutState().version).toBeGreaterThan(rolloutState.version);
});
