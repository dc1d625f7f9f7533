/** Plays one small story in the weather of a seed, in its own world, and compares its end with that of a quiet day. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { createRandom } from "#local/base/random.ts";
import { skewedSandboxes } from "#local/machine/skewed-sandboxes.ts";
import { playBusyDay } from "#test/support/busy-day.ts";
import { pushTheWay, type WayName } from "#test/support/chaos-people.ts";
import {
  awaitEnd,
  checkInvariants,
  fewClusters,
  patient,
  playStory,
  type StoryOptions,
} from "#test/support/chaos-story.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { inTime } from "#test/support/in-time.ts";
import { meanwhile } from "#test/support/meanwhile.ts";
import { mortalSandboxes } from "#test/support/mortal-sandboxes.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";
import { fair, type Weather, weatherOf } from "#test/support/weather.ts";

/** Both cost more processor time than everything else in the story. */
const tickEveryMs = 1000;
const pollMs = 250;
const story: StoryOptions = { rings: fewClusters, chapters: 2 };

/** Long enough for clients that repeat throttled calls. A faster clock does not shorten their waits. */
const patientSeconds = 300;
/** Shorter where sandboxes die, so that their messages return sooner. */
const mortalSeconds = 120;

/** The end of the story on a quiet day, with what people do around its push. */
export async function playQuiet(rate: number, way: WayName = "no verb"): Promise<NormalForm> {
  const world = await startWorld({ faults: quiet, seed: 1, rate, tickEveryMs, pollMs });
  try {
    await playStory(world, pushed(world, way, patient(story, rate)));
    const { rollout: newest } = (await world.group("web")).status;
    const end = await world.waitFor("the last event is told", async () => {
      const form = await normalForm(world);
      return form.events.some((event) => event.includes(`RolloutPassed | web-${newest}: stage broad `)) && form;
    });
    checkInvariants(world, story);
    return end;
  } finally {
    await world.close();
  }
}

/** Plays each quiet day once, when its end is asked for. @param usual - its end when nobody does anything. */
export function quietEnds(rate: number, usual: NormalForm): (way: WayName) => Promise<NormalForm> {
  const played = new Map<WayName, Promise<NormalForm>>([["no verb", Promise.resolve(usual)]]);
  return (way) => {
    const end = played.get(way) ?? playQuiet(rate, way);
    played.set(way, end);
    return end;
  };
}

/** Their events tell what the planner saw when: which clusters had a rollback before their turn, and how many approvals there were. */
const timely: ReadonlySet<WayName> = new Set<WayName>(["approve", "roll back"]);

function pushed(world: World, way: WayName, options: StoryOptions): StoryOptions {
  const { patienceSeconds } = options;
  return {
    ...options,
    pushedBy: (push) => pushTheWay(world, way, { push, appears: "c", goes: "b", patienceSeconds }),
  };
}

interface SeedOptions {
  readonly rate: number;
  readonly quietEnd: (way: WayName) => Promise<NormalForm>;
  /** The verb that people press around the push. */
  readonly way: WayName;
}

/**
 * @throws Error when an invariant is broken, when a cluster gets what people have stopped, when the story stands still,
 * or when its end differs from a quiet day's.
 */
export async function playSeed(seed: number, { rate, quietEnd, way }: SeedOptions): Promise<void> {
  const quietly = await quietEnd(way);
  await inWeather(seed, rate, {
    async play({ world, weather, patience, step }) {
      step(`play the story: ${way}`);
      const options = pushed(world, way, { ...story, ...patience });
      await playStory(world, { ...options, before: () => setClusters(world, weather) });
    },
    async end({ world, weather }) {
      const events = timely.has(way) ? "anything" : eventsIn(weather);
      const { form, desired } = await awaitEnd(world, quietly, events);
      assert.deepEqual(form, desired, `the end is another than on a quiet day: ${way}`);
      checkInvariants(world, story);
    },
  });
}

/** A busy day in the weather of a seed. @throws Error when an invariant is broken; see `busy-witness.ts`. */
export function playBusySeed(seed: number, rate: number): Promise<void> {
  return inWeather(seed, rate, {
    play: ({ world, weather, patience, step }) =>
      playBusyDay(world, { ...patience, step, joined: () => setClusters(world, weather) }),
    end: async () => {},
  });
}

interface Play {
  /** The part of the story with the weather. */
  readonly play: (stage: Stage) => Promise<void>;
  /** The part of the story after the weather. */
  readonly end: (stage: Stage) => Promise<void>;
}

interface Stage {
  readonly world: World;
  readonly weather: Weather;
  readonly patience: Pick<StoryOptions, "patienceSeconds">;
  readonly step: (what: string) => void;
}

function inWeather(seed: number, rate: number, play: Play): Promise<void> {
  return inTime(rate, async (step) => {
    const weather = weatherOf(seed, rate);
    const clock = pacedClock(rate);
    const mortals = mortalSandboxes();
    const random = createRandom(seed);
    if (weather.dies > 0) {
      mortals.judgeBy(() => {
        if (!random.chance(weather.dies)) return undefined;
        return random.chance(0.5) ? "before" : "after";
      });
    }
    const seconds = weather.dies > 0 ? mortalSeconds : patientSeconds;
    let gitFails = weather.gitFails;
    const world = await startWorld({
      seed,
      rate,
      tickEveryMs,
      pollMs,
      clock,
      faults: weather.faults,
      copies: weather.copies,
      timeoutSeconds: { rollout: seconds, report: seconds, render: seconds, resolve: seconds, apply: seconds },
      sandboxes: skewedSandboxes({
        ...{ clock, seed, mostOffMs: weather.mostOffMs },
        ...(weather.dies > 0 ? { sandboxes: mortals.sandboxes } : {}),
      }),
      disturbGit() {
        if (!random.chance(gitFails)) return undefined;
        return {
          when: random.chance(0.5) ? "before" : "after",
          as: random.chance(0.5) ? "reset" : "serverError",
        };
      },
    });
    const patience = patient({}, rate, weather.dies > 0 ? "many" : "none");
    const stage: Stage = { world, weather, patience, step: (what) => step(what, world) };
    try {
      step("play the story", world);
      await meanwhile(play.play(stage), () => purge(world, weather, random));
      step("see the weather end");
      world.machine.proxy.setFaults(fair.faults);
      gitFails = 0;
      mortals.judgeBy(undefined);
      await setClusters(world, { ...weather, ...fair });
      await play.end(stage);
    } finally {
      step("close the world");
      mortals.stop();
      await world.close();
    }
  });
}

function eventsIn({ faults, clusters, dies, purgeEveryMs, gitFails }: Weather): "all" | "some" | "anything" {
  if (Object.keys(clusters).length > 0 || gitFails > 0) return "anything";
  const { lose, silence, expiredCredentials } = faults.sqs;
  const { resetBefore, resetAfter, serverError, slowDown } = faults.s3;
  const refused = resetBefore + resetAfter + serverError + slowDown;
  // Events are lost if they are sent with an expired session, or into a silence longer than the SDK's patience. A late
  // event, after failed calls, may be about a state that the cluster has already left.
  const late = faults.dynamodb.throttle + faults.dynamodb.expiredCredentials;
  return lose + silence + expiredCredentials + late + refused + dies + purgeEveryMs > 0 ? "some" : "all";
}

async function setClusters(world: World, { seed, clusters }: Pick<Weather, "seed" | "clusters">): Promise<void> {
  for (const [index, { name }] of world.fleet.connections().entries()) {
    const faults = Object.keys(clusters).length === 0 ? {} : { ...clusters, seed: seed + index };
    await world.fleet.setFaults?.(name, faults);
  }
}

async function purge(world: World, { purgeEveryMs }: Weather, random: ReturnType<typeof createRandom>): Promise<void> {
  await sleep(purgeEveryMs === 0 ? 1000 : random.integer(100, purgeEveryMs));
  // The purge itself can fail, too.
  if (purgeEveryMs > 0) await world.machine.purgeQueues().catch(() => {});
}
