/** An attempt that only others can help, or that waits for a finalizer, keeps nothing newer waiting. */
import { describe, expect, test } from "vitest";
import { ana, begin, lease, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const pace = { maxConcurrent: 2, progressDeadline: "1h" } as const;

type Seen = Parameters<PlannerWorld["observe"]>;
const problem = (reason: string) => ({ object: "ConfigMap shop/c", reason, message: "in its own words" });

/** Legend: name; the phase, and what is said, of an attempt that nothing in this rollout can help. */
const doomed: readonly (readonly [string, Seen[1], Seen[2]])[] = [
  ["misses a kind", "Retrying", { reason: "ApplyFailed", problems: [problem("NoMatch")] }],
  ["misses a Namespace", "Retrying", { reason: "ApplyFailed", problems: [problem("NotFound")] }],
  [
    "misses a kind whose API does not answer",
    "Retrying",
    { reason: "ApplyFailed", problems: [problem("KindUnavailable"), problem("NoMatch")] },
  ],
  [
    "waits for what a finalizer holds, and for what goes after that",
    "Applying",
    { reason: "Pruning", problems: [problem("Terminating"), problem("Waiting")] },
  ],
  ["waits until an object is gone that git has again", "Applying", { reason: "Terminating" }],
];

/** Legend: the same of an attempt that goes on by itself. */
const goingOn: readonly (readonly [string, Seen[1], Seen[2]])[] = [
  ["is tried again for another reason", "Retrying", { reason: "ApplyFailed", problems: [problem("InternalError")] }],
  [
    "is tried again for another reason beside a missing kind",
    "Retrying",
    { reason: "ApplyFailed", problems: [problem("NoMatch"), problem("Conflict")] },
  ],
  ["waits for a step", "Applying", { reason: "StepNotReady", problems: [problem("LessReplicas")] }],
  ["had no time to delete all", "Applying", { reason: "OutOfTime" }],
];

describe("an attempt that", () => {
  test.each(doomed)("%s gives way to a newer rollout at once, in its slot", async (_name, phase, said) => {
    const made = await worldOf(["a", "b"], pace);
    await begin(made);
    await made.finish("b");
    await made.observe("a", phase, said);
    await made.plan();
    await revise(made, "bbb");
    expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
    await playOn(made, 4);
    expect(made.stages()).toEqual({ all: "2" });
  });

  test.each(goingOn)("%s is let end", async (_name, phase, said) => {
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

test("a rollout that waited for the attempt follows when that is found doomed", async () => {
  const made = await worldOf(["a"], pace);
  await begin(made);
  await made.observe("a", "Applying", { reason: "OutOfTime" });
  await made.plan();
  await revise(made, "bbb");
  await made.observe("a", phase, said);
  await begin(made);
  expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
});

test("a stage in which others wait for the slot of a doomed attempt takes the newer rollout, where its failure would be one too many", async () => {
  const made = await worldOf(["a", "b", "c"], { ...pace, maxConcurrent: 1, maxFailures: 0 });
  await begin(made);
  await made.observe("a", phase, said);
  await made.plan();
  await revise(made, "bbb");
  expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
});

test("a stage that can bear its failure goes on first: commits that come fast keep nobody waiting for ever", async () => {
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

test("a doomed attempt fails at its deadline all the same, where nothing newer comes", async () => {
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

test("nothing newer goes past a stage that is doomed", async () => {
  const made = await worldOf({ a: "canary", z: "rest" }, { ...rings, ...pace });
  await begin(made);
  await made.observe("a", phase, said);
  await made.plan();
  await revise(made, "bbb");
  expect((await made.sync("a"))?.desired.revision).toBe("main@sha1:bbb");
  expect(await made.sync("z")).toBeUndefined();
});

test("a deletion of a Sync that a finalizer holds keeps a deletion of all no longer than its worker may write", async () => {
  const made = await worldOf(["a"], pace);
  await made.rollOut();
  await made.observe("a", "Applying", { reason: "Pruning", problems: [problem("Terminating")] });
  await lease(made, "a", { fence: 4, seconds: -1 });
  await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
  await playOn(made, 4);
  expect(made.rows("SyncGroup")).toEqual([]);
});

test("later stages get rollouts of which the first bears one doomed attempt, however fast commits come", async () => {
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
  // The second finds the cluster sick: its failure does not count, and is waited for all the same.
  expect(given.size).toBeGreaterThan(2);
  expect((await made.sync("a"))?.desired.revision).not.toBe("main@sha1:aaa");
});
