/** An attempt that only others can help, or that waits for a finalizer, does not keep a newer rollout waiting. */
import { describe, expect, test } from "vitest";
import { ana, begin, lease, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const pace = { maxConcurrent: 2, progressDeadline: "1h" } as const;

type Seen = Parameters<PlannerWorld["observe"]>;
const problem = (reason: string) => ({ object: "ConfigMap shop/c", reason, message: "in its own words" });

/** Legend: name; the phase and the report of an attempt that nothing in this rollout can help. */
const doomed: readonly (readonly [string, Seen[1], Seen[2]])[] = [
  ["misses a kind", "Retrying", { reason: "ApplyFailed", problems: [problem("NoMatch")] }],
  ["misses a Namespace", "Retrying", { reason: "ApplyFailed", problems: [problem("NotFound")] }],
  [
    "misses a kind whose API does not answer",
    "Retrying",
    { reason: "ApplyFailed", problems: [problem("KindUnavailable"), problem("NoMatch")] },
  ],
  [
    "waits for an object that a finalizer blocks, and for objects that are deleted after it",
    "Applying",
    { reason: "Pruning", problems: [problem("Terminating"), problem("Waiting")] },
  ],
  ["waits for the end of a deletion of an object that git has again", "Applying", { reason: "Terminating" }],
];

/** Legend: name; the phase and the report of an attempt that may still succeed by itself. */
const goingOn: readonly (readonly [string, Seen[1], Seen[2]])[] = [
  ["is tried again for another reason", "Retrying", { reason: "ApplyFailed", problems: [problem("InternalError")] }],
  [
    "is tried again for another reason beside a missing kind",
    "Retrying",
    { reason: "ApplyFailed", problems: [problem("NoMatch"), problem("Conflict")] },
  ],
  ["waits for a step", "Applying", { reason: "StepNotReady", problems: [problem("LessReplicas")] }],
  ["had no time to delete every object", "Applying", { reason: "OutOfTime" }],
];

describe("an attempt in progress", () => {
  test.each(doomed)(
    "an attempt that %s gives way to a newer rollout at once, in its slot",
    async (_name, phase, said) => {
      const made = await worldOf(["a", "b"], pace);
      await begin(made);
      await made.finish("b");
      await made.observe("a", phase, said);
      await made.plan();
      await revise(made, "bbb");
      expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
      await playOn(made, 4);
      expect(made.stages()).toEqual({ all: "2" });
    },
  );

  test.each(goingOn)("an attempt that %s is not interrupted by a newer rollout", async (_name, phase, said) => {
    const made = await worldOf(["a", "b"], pace);
    await begin(made);
    await made.finish("b");
    await made.observe("a", phase, said);
    await made.plan();
    await revise(made, "bbb");
    expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:aaa");
    expect(made.stages()).toEqual({ all: "- (1)" });
  });
});

const [[, phase, said] = ["", "Retrying", {}] as const] = doomed;

test("a newer rollout that waited for an attempt follows when the attempt turns out to be doomed", async () => {
  const made = await worldOf(["a"], pace);
  await begin(made);
  await made.observe("a", "Applying", { reason: "OutOfTime" });
  await made.plan();
  await revise(made, "bbb");
  await made.observe("a", phase, said);
  await begin(made);
  expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
});

test("a stage takes the newer rollout when clusters wait for the slot of a doomed attempt whose failure would exceed the budget", async () => {
  const made = await worldOf(["a", "b", "c"], { ...pace, maxConcurrent: 1, maxFailures: 0 });
  await begin(made);
  await made.observe("a", phase, said);
  await made.plan();
  await revise(made, "bbb");
  expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
});

test("a stage that can bear the failure of a doomed attempt finishes first, so that fast commits keep no cluster waiting for ever", async () => {
  const made = await worldOf(["a", "b", "c"], { ...pace, maxConcurrent: 1, maxFailures: 1 });
  await begin(made);
  await made.observe("a", phase, said);
  await made.plan();
  await revise(made, "bbb");
  expect(made.stages()).toEqual({ all: "- (1)" });
  made.advanceClock(3_600);
  await begin(made);
  expect(await made.sync("b")).toMatchObject({ desired: { revision: "main@sha1:aaa" } });
});

test("a doomed attempt fails at its deadline when no newer rollout follows", async () => {
  const made = await worldOf({ a: "canary", z: "rest" }, { ...rings, ...pace });
  await begin(made);
  await made.observe("a", phase, said);
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "a" }]);
  made.advanceClock(3_600);
  await begin(made);
  expect(made.stageRun("canary")).toMatchObject({ phase: "Halted", counts: { Failed: 1 } });
  expect(await made.sync("z")).toBeUndefined();
});

test("a newer rollout goes no further than a stage with a doomed attempt", async () => {
  const made = await worldOf({ a: "canary", z: "rest" }, { ...rings, ...pace });
  await begin(made);
  await made.observe("a", phase, said);
  await made.plan();
  await revise(made, "bbb");
  expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
  expect(await made.sync("z")).toBeUndefined();
});

test("a Sync's deletion that a finalizer blocks delays the group's deletion no longer than its worker may write", async () => {
  const made = await worldOf(["a"], pace);
  await made.rollOut();
  await made.observe("a", "Applying", { reason: "Pruning", problems: [problem("Terminating")] });
  await lease(made, "a", { fence: 4, seconds: -1 });
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
  await playOn(made, 4);
  expect(made.rows("SyncGroup")).toEqual([]);
});

test("later stages get rollouts although the first stage always has one doomed attempt, however fast commits come", async () => {
  const made = await worldOf(
    { a: "canary", b: "canary", z: "rest" },
    { ...rings, ...pace, maxFailures: 1, progressDeadline: "10m" },
  );
  await begin(made);
  const given = new Set<string | undefined>();
  for (const commit of ["bbb", "ccc", "ddd", "eee", "fff", "ggg", "hhh", "iii"]) {
    for (const { cluster } of made.slots()) if (cluster !== "a") await made.finish(cluster);
    const sync = await made.sync("a");
    if (sync?.observed?.attempt !== sync?.desired.attempt) await made.observe("a", phase, said);
    await made.plan();
    made.advanceClock(300);
    await revise(made, commit);
    given.add((await made.sync("z"))?.desired.revision);
  }
  // The second rollout finds the cluster unhealthy: its failure does not count, and the stage waits for it all the
  // same.
  expect(given.size).toBeGreaterThan(2);
  expect((await made.sync("a"))?.desired.revision).not.toBe("main@sha1:aaa");
});
