/** The reference run in which calls fail, one after the other, and whether it ended as the one in which none did. */
import assert from "node:assert/strict";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { createRandom } from "#local/base/random.ts";
import {
  awaitEnd,
  checkInvariants,
  endStory,
  fewClusters,
  patient,
  type StoryOptions,
  tellStory,
} from "#test/support/chaos-story.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { type CallFailure, type FailingCalls, failingCalls } from "#test/support/failing-calls.ts";
import { inTime } from "#test/support/in-time.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";

const story: StoryOptions = { rings: fewClusters, chapters: 2 };
/** Long enough for clients that try again, and short enough for what returns to a queue to be soon taken from it. */
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
  /** How many calls of each class it made. */
  readonly counts: ReadonlyMap<string, number>;
  /** When all is in sync, and when the group is gone. */
  readonly inSync: NormalForm;
  readonly gone: NormalForm;
}

/** Two revisions go to three clusters, the second deletes; then everything is deleted. Nothing fails. */
export async function playReference(rate: number): Promise<ReferenceRun> {
  const calls = failingCalls([]);
  const forms: NormalForm[] = [];
  await play(rate, { calls, at: async (world) => void forms.push(await normalForm(world)) });
  const [inSync, gone] = forms as [NormalForm, NormalForm];
  return { rate, counts: new Map(calls.counts()), inSync, gone };
}

/**
 * The same run, in which these calls fail.
 * @returns those that were made: a run in which calls fail makes others.
 * @throws Error when an invariant is broken, when nothing goes on, or when it ends otherwise.
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
  /** Called where all is in sync, and where the group is gone. */
  readonly at: (world: World, moment: "inSync" | "gone") => Promise<void>;
}

/** In a world in which nothing fails but the calls that are to. */
function play(rate: number, { calls, at }: Watch): Promise<void> {
  return inTime(rate, async (step) => {
    const { disturbGit } = calls;
    const pace = { rate, tickEveryMs: 1000, pollMs: 250 };
    const world = await startWorld({ ...pace, seed: 1, faults: quiet, timeoutSeconds, disturbGit });
    try {
      step("tell the story", world);
      calls.begin(world);
      await tellStory(world, patient(story, rate));
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
/** Of the calls of a class, one in so many fails in one run: few enough for each failure to meet a run that goes on. */
const stride = 24;

/** Runs in which together every call fails in every way. */
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

/** So many runs before the effect and after it, in which together each class fails at least once in either way. */
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

/** Every `stride`-th call of each class, from another one in each run, and from others in other classes. */
function strided({ counts }: ReferenceRun, run: number) {
  return [...counts].flatMap(([className, count], index) => {
    const start = (run + index * 7) % stride;
    const length = Math.max(0, Math.ceil((count - start) / stride));
    return Array.from({ length }, (_, turn) => ({ className, number: start + turn * stride + 1, turn: run + turn }));
  });
}
