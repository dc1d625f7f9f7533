import { expect, test } from "vitest";
import { PlannerModel } from "#test/support/planner-model/planner-model.ts";

/** A call of the planner makes fewer calls to its ports than this. */
const calls = 40;

test("the model's watch of the planner accepts a cluster that is unregistered in the middle of a call", async () => {
  for (const outcome of ["Verifying", "Ready", "Failed"] as const) {
    for (let at = 1; at <= calls; at++) {
      const model = new PlannerModel();
      for (const name of ["c1", "c2"]) await model.setCluster(name, { ring: "r0", fleet: "web", uid: name });
      await model.revise("commit1", "content1");
      await model.setGroup({ maxConcurrent: "100%" }, [{ name: "app", source: "app" }]);
      model.queue = [];
      await model.plan({});
      await model.world.renderAll();
      await model.plan({});
      await model.workers.begin("c1", outcome);
      await model.workers.land(0);
      await model.plan({ midst: [{ at, act: () => model.unregister("c1") }] });
      await model.plan({});
      expect(model.world.stageRun("all").size).toBe(2);
    }
  }
});
