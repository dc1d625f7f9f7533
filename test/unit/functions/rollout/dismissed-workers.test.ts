/**
 * A slot goes to no other cluster while its worker may write, also when the cluster was unregistered or registered
 * anew. The API servers count the clusters in change by the requests that write, whatever any row says.
 */
import { expect, test } from "vitest";
import { ModelGroup } from "#test/support/planner-model/model-group.ts";
import { type Delivery, PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { type Act, Play } from "#test/support/planner-model/planner-steps.ts";

const undisturbed: Delivery = { pick: 0, outcome: "Ready", lands: "now", rendering: "done", planner: {} };

async function deliverAll(model: PlannerModel, how: Partial<Delivery> = {}): Promise<void> {
  for (let left = 200; left > 0 && (await model.deliver({ ...undisturbed, ...how })); left--);
}

/** Two clusters with a maxConcurrent of one; the worker of the first is in the middle of an apply. */
async function midApply(): Promise<{ model: PlannerModel; play: Play }> {
  const model = new PlannerModel();
  const play = new Play(model, { rings: [0, 0], group: new ModelGroup({ maxConcurrent: 1 }, 1, "one") });
  await play.begin("rolled out");
  await play.act({ do: "revise", rollout: 1 });
  for (let left = 50; left > 0 && model.workers.flights.length === 0; left--)
    await model.deliver({ ...undisturbed, lands: "later" });
  expect(model.workers.flights).toHaveLength(1);
  return { model, play };
}

test.each([
  ["unregistered", "leave"],
  ["registered anew", "anew"],
  ["accepted as another cluster", "accept"],
  ["no longer selected", "deselect"],
] as const)(
  "the slot of a cluster that is in the middle of an apply, and is %s, goes to no other cluster before its worker is done",
  async (_what, act) => {
    const { model, play } = await midApply();
    const [{ cluster } = { cluster: "" }] = model.workers.flights;
    await play.act({ do: act, cluster: Number(cluster.slice(1)) } as Act);
    for (const seconds of [3, 5]) {
      await deliverAll(model);
      model.world.advanceClock(seconds);
      await model.tick("current");
    }
    await model.workers.land(0);
    expect(await model.calm()).toBe(true);
    expect(model.servers.excesses()).toEqual([]);
    expect(model.servers.given()).toMatchObject({ "c00 web.t0": expect.any(Array), "c01 web.t0": expect.any(Array) });
  },
);
