/** Plays the reference run with failing calls, and compares its end with that of a run without failures. */
import assert from "node:assert/strict";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createRandom } from "#local/base/random.ts";
import {
  awaitEnd,
  checkInvariants,
  endStory,
  fewClusters,
  patient,
  playStory,
  type StoryOptions,
} from "#test/support/chaos-story.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { type CallFailure, type FailingCalls, failingCalls } from "#test/support/failing-calls.ts";
import { inTime } from "#test/support/in-time.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";

const story: StoryOptions = { rings: fewClusters, chapters: 2 };
/** Long enough for clients to repeat calls. Short enough for returned messages to be received soon. */
const longSeconds = 120;
const timeoutSeconds = {
  resolve: longSeconds,
  rollout: longSeconds,
  render: longSeconds,
  apply: longSeconds,
  report: longSeconds,
};

export interface ReferenceRun {
  readonly rate: number;
  /** The number of calls of each class. */
  readonly counts: ReadonlyMap<string, number>;
  /** The state when everything is in sync, and the state after the deletion of the group. */
  readonly inSync: NormalForm;
  readonly gone: NormalForm;
}

/**
 * Rolls out two revisions to three clusters, of which the second deletes objects, and then deletes everything. No call
 * fails.
 */
export async function playReference(rate: number): Promise<ReferenceRun> {
  const calls = failingCalls([]);
  const forms: NormalForm[] = [];
  await play(rate, { calls, at: async (world) => void forms.push(await normalForm(world)) });
  const [inSync, gone] = forms as [NormalForm, NormalForm];
  return { rate, counts: new Map(calls.counts()), inSync, gone };
}

/**
 * Plays the same run with failing calls. @returns the failures that happened, because failures change the later calls
 * of a run. @throws Error when an invariant is broken, when the run stands still, or when it ends differently.
 */
export async function playFailing(
  failures: readonly CallFailure[],
  reference: ReferenceRun,
): Promise<readonly CallFailure[]> {
  const calls = failingCalls(failures);
  await play(reference.rate, {
    calls,
    async at(world, moment) {
      const end = await awaitEnd(world, reference[moment], "anything");
      assert.deepEqual(end.form, end.desired, "the end is another than where no call failed");
      checkInvariants(world, story);
    },
  });
  return calls.fired();
}

interface Watch {
  readonly calls: FailingCalls;
  /** Called when everything is in sync, and after the deletion of the group. */
  readonly at: (world: World, moment: "inSync" | "gone") => Promise<void>;
}

/** Plays the run in a world without other failures. */
function play(rate: number, { calls, at }: Watch): Promise<void> {
  return inTime(rate, async (step) => {
    const { disturbGit } = calls;
    const pace = { rate, tickEveryMs: 1000, pollMs: 250 };
    const world = await startWorld({ ...pace, seed: 1, faults: quiet, timeoutSeconds, disturbGit });
    try {
      step("tell the story", world);
      calls.begin(world);
      await playStory(world, patient(story, rate));
      step("look at what is in sync");
      await at(world, "inSync");
      step("end the story");
      await endStory(world, patient(story, rate));
      step("look at what is left");
      await at(world, "gone");
    } finally {
      step("close the world");
      await world.close();
    }
  });
}

const forms = ["reset", "serverError"] as const;
const phases = ["before", "after"] as const;
/**
 * The share of the calls of a class that fail in one run. It is small, so that each failure meets a run that makes
 * progress.
 */
const stride = 24;

/** A list of runs in which, together, every call fails in every way. */
export function everyFailure(reference: ReferenceRun): readonly (readonly CallFailure[])[] {
  return phases.flatMap((when) =>
    forms.flatMap((as) =>
      Array.from({ length: stride }, (_, run) => [
        ...strided(reference, run).map(({ className, number, turn }) => ({
          ...{ className, number, when, as },
          fails: turn % 2 === 0 ? ("attempt" as const) : ("call" as const),
        })),
      ]),
    ),
  );
}

/**
 * This number of runs with failures before the effect, and as many after it. Together, each class fails at least once
 * in both ways.
 */
export function someFailures(reference: ReferenceRun, seed: number, runs: number): readonly (readonly CallFailure[])[] {
  const random = createRandom(seed);
  const classes = [...reference.counts];
  return phases.flatMap((when) => {
    const first = classes.map(([className, count]) => ({
      className,
      number: random.integer(1, Math.ceil(count / 2)),
      run: random.integer(0, runs - 1),
    }));
    return Array.from({ length: runs }, (_, run): CallFailure[] => {
      const as = forms[run % forms.length] ?? "reset";
      const chosen = [
        ...first.filter((each) => each.run === run),
        ...strided(reference, random.integer(0, stride - 1)),
      ];
      return chosen.map(({ className, number }) => ({
        ...{ className, number, when, as },
        fails: random.chance(0.5) ? "attempt" : "call",
      }));
    });
  });
}

/** Every `stride`-th call of each class. The start differs between runs and between classes. */
function strided({ counts }: ReferenceRun, run: number) {
  return [...counts].flatMap(([className, count], index) => {
    const start = (run + index * 7) % stride;
    const length = Math.max(0, Math.ceil((count - start) / stride));
    return Array.from({ length }, (_, turn) => ({ className, number: start + turn * stride + 1, turn: run + turn }));
  });
}
