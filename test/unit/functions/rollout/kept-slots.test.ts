/** A slot stays with the rollout that it was given for until no worker writes for that rollout any more. */
import { expect, test } from "vitest";
import { begin, lease, revise, rings, worldOf } from "#test/support/planner-story.ts";

test("a slot that is kept for a worker is not used by the next rollout either", async () => {
  const made = await worldOf(["a"], { maxConcurrent: 1, progressDeadline: "60s" });
  await begin(made);
  await made.observe("a", "Verifying", { reason: "NotReady" });
  await lease(made, "a", { fence: 2, seconds: 80 });
  made.advanceClock(60);
  await made.plan();
  expect(made.slots()).toMatchObject([{ releasing: { fence: 2 } }]);
  await revise(made, "bbb");
  expect(made.stageRun("all")).toMatchObject({ rollout: 2, counts: { Waiting: 1 } });
  expect((await made.sync("a"))?.desired).toMatchObject({ attempt: 1, revision: "main@sha1:aaa" });
  made.advanceClock(21);
  await begin(made);
  expect((await made.sync("a"))?.desired).toMatchObject({ attempt: 2, revision: "main@sha1:bbb" });
});

test("a slot of a stage run in progress stays with that stage run when its cluster moves to another stage", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 5 });
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c1");
  await made.plan();
  expect(made.stageRun("rest").counts).toMatchObject({ Assigned: 2 });
  await made.addCluster("r1", "canary");
  await revise(made, "ccc");
  expect(made.stageRun("rest").counts).toMatchObject({ Assigned: 2 });
  expect((await made.sync("r1"))?.desired.revision).toBe("main@sha1:bbb");
  await made.rollOut();
  for (const cluster of ["c1", "r1", "r2"]) expect((await made.sync(cluster))?.desired.revision).toBe("main@sha1:ccc");
});
