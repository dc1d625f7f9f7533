/** Two steps of the planner are exchanged where the table says that their order has a reason: something goes wrong. */
import { describe, expect, test } from "vitest";
import { type PlannerStep, plannerSteps } from "#functions/rollout/call/planner-steps.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { Write } from "#shared/ports.ts";
import { ana, begin, names, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

type Story = (steps: readonly PlannerStep[]) => Promise<unknown>;

const current = (made: PlannerWorld) => made.rolloutState().stages.map((one) => one.current);

/** By the two steps: a story, its outcome, and the outcome when the steps are exchanged. */
const stories: Readonly<Record<string, readonly [Story, outcome: unknown, exchanged: unknown]>> = {
  "rejectRollouts before settleSlots": [
    async (steps) => {
      const made = await worldOf(["a"], {});
      await begin(made);
      const row = await made.group();
      const operations = { rejections: [{ ...ana(made.now), number: 1, rollout: 1, do: "reject" as const }] };
      const put: SyncGroupRow = { ...row, operations, version: row.version + 1 };
      await made.table.write([{ put, when: { version: row.version } }]);
      made.steps = steps;
      await made.plan();
      return made.slots().length;
    },
    0,
    1,
  ],
  "wakeResumed before settleSlots": [
    async (steps) => {
      const made = await worldOf(["a", "b"], { maxConcurrent: 2, progressDeadline: "20s" });
      await begin(made);
      for (const name of ["a", "b"]) await made.observe(name, "Applying");
      await made.plan();
      await made.operate({ suspended: ana(made.now) });
      await made.plan();
      made.advanceClock(100);
      await made.operate({ resumed: ana(made.now) });
      made.steps = steps;
      await made.plan(made.table, ["a"]);
      return made.rolloutState().deadline;
    },
    "2026-11-21T08:02:00.000Z",
    undefined,
  ],
  "runJob before refreshMembers": [
    async (steps) => {
      const made = await worldOf(["a"], { maxConcurrent: 1 });
      await made.rollOut();
      for (const name of names(100)) await made.addCluster(name, "all");
      made.steps = steps;
      // The call's time ends after one page.
      const hurried = async (writes: readonly Write[]) => {
        made.advanceClock(60);
        await made.table.write(writes);
      };
      const slow = new Proxy(made.table, {
        get: (table, name) => (name === "write" ? hurried : Reflect.get(table, name).bind(table)),
      });
      for (let check = 0; check < 4; check++) {
        await made.addCluster(`late${check}`, "all");
        await made.plan(slow);
      }
      return made.rolloutState().jobs.length;
    },
    1,
    4,
  ],
  "endStageRuns before startNextStageRun": [
    async (steps) => {
      const made = await worldOf(["a"], {});
      await begin(made);
      await made.finish("a");
      await made.setSource("bbb");
      made.steps = steps;
      await made.plan();
      return current(made);
    },
    [1],
    [undefined],
  ],
  "takeBackFailed before startNextStageRun": [
    async (steps) => {
      const made = await worldOf(["a"], { onFailure: "rollback" });
      await made.rollOut();
      await made.setSource("bbb");
      await begin(made);
      await made.finish("a", "Failed");
      await made.setSource("ccc");
      made.steps = steps;
      await made.plan();
      return made.rolloutState().rejected?.map(({ rollout }) => rollout);
    },
    [2],
    undefined,
  ],
  "startNextStageRun before fillSlots": [
    async (steps) => {
      const made = await worldOf(["a"], {});
      await made.plan();
      await made.operate({ suspended: ana(made.now) });
      await made.renderAll();
      await made.setSource("bbb");
      await made.plan();
      made.advanceClock(1);
      await made.operate({ resumed: ana(made.now) });
      made.steps = steps;
      await made.plan();
      return (await made.sync("a"))?.desired.revision;
    },
    undefined,
    "main@sha1:aaa",
  ],
  "fillSlots before followReconcile": [
    async (steps) => {
      const made = await worldOf(["a", "b"], { maxConcurrent: "100%", maxFailures: 1 });
      await begin(made);
      await made.finish("a", "Failed");
      await made.finish("b");
      await made.plan();
      made.advanceClock(5);
      made.steps = steps;
      await made.operate({ reconcile: ana(made.now) });
      await made.plan();
      for (const name of ["a", "b"]) await made.observe(name, "Ready");
      made.advanceClock(5);
      await made.plan();
      return (await made.group()).status.state;
    },
    "Complete",
    "Degraded",
  ],
};

const reasons = plannerSteps.flatMap(({ name, before = {} }) =>
  Object.keys(before).map((later) => `${name} before ${later}`),
);

test("each order that has a reason has a story", () => {
  expect(Object.keys(stories)).toEqual(reasons);
});

describe.each(Object.entries(stories))("%s", (order, [story, outcome, exchanged]) => {
  const [one = "", other = ""] = order.split(" before ");
  const at = (name: string) => plannerSteps.findIndex((step) => step.name === name);

  test(`the table has ${order}, and the story ends well`, async () => {
    expect(at(one)).toBeLessThan(at(other));
    expect(await story(plannerSteps)).toEqual(outcome);
  });

  test(`the story goes wrong when ${one} and ${other} are exchanged`, async () => {
    const [first, last] = [plannerSteps[at(one)], plannerSteps[at(other)]];
    if (first === undefined || last === undefined) throw new Error("a step of that name");
    expect(await story(plannerSteps.with(at(one), last).with(at(other), first))).toEqual(exchanged);
  });
});
