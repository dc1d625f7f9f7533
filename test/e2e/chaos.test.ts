/**
 * One story under many faults: although messages and answers are lost, late or doubled and sandboxes die, clusters, rows and
 * deletions end as without faults, and never are more clusters changing than the bound allows.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { callLine, type RecordedCall } from "#local/aws/proxy/call-recorder.ts";
import { type FaultOptions, hostile, quiet } from "#local/aws/wire/fault-options.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { createRandom } from "#local/base/random.ts";
import { awaitFullSlots } from "#test/support/await-full-slots.ts";
import { awaitEnd, fewClusters, playStory, type StoryOptions, storyBound } from "#test/support/chaos-story.ts";
import { type DeathPoint, planDeaths } from "#test/support/death-plan.ts";
import { startWorld, type World, type WorldOptions } from "#test/support/e2e-world.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";
import { meanwhile } from "#test/support/meanwhile.ts";
import { type MortalSandboxes, mortalSandboxes } from "#test/support/mortal-sandboxes.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";
import { refusedCalls } from "#test/support/policy-guard.ts";
import { runSeed } from "#test/support/run-seed.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const seed = runSeed();
/** Plays each fault by itself, and a death at every call instead of a sample of calls. */
const long = process.env.STARLING_E2E_LONG !== undefined;
const patienceSeconds = long ? 900 : 120;
const rate = 20;
/** Timeouts in the functions' seconds. Clients that repeat throttled calls wait in real time, although the clock runs faster. */
const patientTimeouts = { rollout: 300, report: 300, render: 300, resolve: 300, apply: 300 };
/** Shorter than the first watchdog, so that a death costs one. A worker's lease is short by itself. */
const shortClaims = { apply: 300, rollout: 28, report: 28, resolve: 28, render: 28 };

/** Much more than the clocks of a cloud differ. */
const mostOffMs = 3000;
const sqs = { ...quiet.sqs, maxDelaySeconds: 2, maxReorderMs: 300 };
const always: Readonly<Record<string, FaultOptions>> = {
  "queues that lose, repeat, delay and reorder messages": {
    ...quiet,
    sqs: { ...sqs, lose: 0.05, duplicate: 0.3, delay: 0.15, reorder: 0.5 },
  },
  "a table that conflicts, throttles, lags and leaves work undone": {
    ...quiet,
    dynamodb: { ...hostile.dynamodb, transactionConflict: 0.1, throttle: 0.015, unprocessed: 0.4, indexLagMs: 400 },
  },
};
const oneByOne: Readonly<Record<string, FaultOptions>> = {
  "the weather of no fault": quiet,
  "everything at once": hostile,
  "lost messages": { ...quiet, sqs: { ...sqs, lose: 0.15 } },
  "repeated messages": { ...quiet, sqs: { ...sqs, duplicate: 0.8 } },
  "delayed messages": { ...quiet, sqs: { ...sqs, delay: 0.5 } },
  "reordered messages": { ...quiet, sqs: { ...sqs, reorder: 0.8 } },
  "conflicts of transactions": { ...quiet, dynamodb: { ...quiet.dynamodb, transactionConflict: 0.3 } },
  throttles: { ...quiet, dynamodb: { ...quiet.dynamodb, throttle: 0.2 } },
  "indexes that lag": { ...quiet, dynamodb: { ...quiet.dynamodb, indexLagMs: 3000 } },
  "pages that end early": { ...quiet, dynamodb: { ...quiet.dynamodb, shortPage: 0.7 } },
  "batches left undone": { ...quiet, dynamodb: { ...quiet.dynamodb, unprocessed: 0.7 } },
  "broken connections": {
    dynamodb: { ...quiet.dynamodb, resetBefore: 0.05, resetAfter: 0.05 },
    sqs: { ...quiet.sqs, resetBefore: 0.05, resetAfter: 0.05 },
    s3: { ...quiet.s3, resetBefore: 0.1, resetAfter: 0.1, slowDown: 0.1, conditionalConflict: 0.2 },
    lambda: { ...quiet.lambda, resetBefore: 0.1, resetAfter: 0.1, throttle: 0.1 },
  },
};

/**
 * Faults that were planned for a service and did not happen. Faults with a chance below `leastChance` are left out. The
 * story makes hundreds of messages and thousands of calls to the table, so all others must happen.
 */
function neverHappened(faults: FaultOptions, injected: Readonly<Record<string, number>>): readonly string[] {
  const counted = { dynamodb: faults.dynamodb, sqs: faults.sqs } as const;
  return Object.entries(counted).flatMap(([service, chances]) =>
    Object.entries(chances)
      .filter(([name, chance]) => chance >= leastChance && !/^max|Ms$/.test(name))
      .map(([name]) => `${service}:${name}`)
      .filter((fault) => injected[fault] === undefined),
  );
}
const leastChance = 0.05;

describe.each(storyTargets)("on $name", (fleet) => {
  /** Faults between the functions and AWS do not depend on the API server, so real ones only get the deaths of workers. */
  const everything = long || fleet === embeddedFleet;
  const story: StoryOptions = { patienceSeconds, ...(fleet === embeddedFleet ? {} : { rings: fewClusters }) };
  /** One slot of the bound is reserved for the first ring, whose only cluster changes before the others. */
  const atOnce = storyBound(story) - 1;
  let quietEnd: NormalForm;
  /** The most calls that one invocation of a function makes without faults. */
  const longest = new Map<string, number>();
  /** The calls of the functions to AWS under all faults. Their roles have to grant all of them. */
  const asked = new Map<string, RecordedCall>();
  let world: World | undefined;
  let mortal: MortalSandboxes | undefined;

  async function open(options: WorldOptions = {}): Promise<World> {
    world = await startWorld({ seed, rate, faults: quiet, target: fleet, timeoutSeconds: patientTimeouts, ...options });
    return world;
  }

  async function expectQuietEnd(made: World, events: "all" | "some"): Promise<void> {
    made.machine.proxy.setFaults(quiet);
    const { form, desired } = await awaitEnd(made, quietEnd, events);
    expect(form).toEqual(desired);
    expect(made.monitor.most().length).toBeLessThanOrEqual(atOnce);
    expect(made.monitor.unasked()).toEqual([]);
  }

  beforeAll(async () => {
    mortal = mortalSandboxes();
    mortal.onEnd(({ functionName, calls }) => {
      longest.set(functionName, Math.max(calls, longest.get(functionName) ?? 0));
    });
    const calm = await open({ sandboxes: mortal.sandboxes });
    awaitFullSlots(calm, "broad", atOnce);
    await playStory(calm, story);
    quietEnd = await calm.waitFor("the last event is told", async () => {
      const form = await normalForm(calm);
      return form.events.some((event) => event.includes("RolloutPassed | web-3: stage broad ")) && form;
    });
    expect(calm.monitor.most()).toHaveLength(atOnce);
    expect(calm.monitor.unasked()).toEqual([]);
    await close();
  });

  async function close(): Promise<void> {
    for (const call of world?.calls() ?? []) asked.set(callLine(call), call);
    await world?.close();
    mortal?.stop();
    world = undefined;
    mortal = undefined;
  }

  afterEach(close);

  afterAll(async () => {
    const { resources } = await synthesizeTemplates();
    expect(refusedCalls([...asked.values()], resources)).toEqual([]);
  });

  describe.runIf(everything)("faults of AWS", () => {
    test.each(Object.entries({ ...always, ...(long ? oneByOne : {}) }))(
      "clusters and rows end as without faults with %s",
      async (_name, faults) => {
        const made = await open({ faults });
        await playStory(made, story);
        // After failed calls a report comes late, when the cluster has already changed again.
        const events = faults.sqs.lose > 0 || faults.dynamodb.throttle > 0 ? "some" : "all";
        expect(neverHappened(faults, made.machine.proxy.injected())).toEqual([]);
        await expectQuietEnd(made, events);
      },
    );

    test("clusters and rows end as without faults with purges of every queue at random moments", async () => {
      const random = createRandom(seed);
      const made = await open();
      await meanwhile(playStory(made, story), async () => {
        await sleep(random.integer(100, 1500));
        await made.machine.purgeQueues();
      });
      await expectQuietEnd(made, "some");
    });

    test("clusters and rows end as without faults with two ticks, planners and workers at once, whose clocks disagree", async () => {
      const random = createRandom(seed);
      const clock = pacedClock(rate);
      const made = await open({
        copies: 2,
        clock,
        faults: { ...quiet, sqs: { ...sqs, duplicate: 0.5 } },
        sandboxes(_name, wire) {
          const offMs = random.integer(-mostOffMs, mostOffMs);
          return wire({ clock: { ...clock, now: () => new Date(clock.now().getTime() + offMs) } });
        },
      });
      await meanwhile(playStory(made, story), async () => {
        await Promise.all([made.machine.tick(), made.machine.tick()]);
        await sleep(200);
      });
      await expectQuietEnd(made, "all");
    });
  });

  /** Points before and after each call of the longest invocation, or a sample of them. */
  function pointsOf(functionName: string, spread: number): DeathPoint[] {
    const random = createRandom(seed);
    const calls = Array.from({ length: longest.get(functionName) ?? 0 }, (_, index) => index + 1);
    const points = calls.flatMap((call): DeathPoint[] => [
      { call, death: "before" },
      { call, death: "after" },
    ]);
    // Every invocation makes a first call, so one death of each function is certain.
    const [first, ...others] = points;
    const shuffled = others.map((point) => ({ point, at: random.integer(0, 1e9) })).sort((a, b) => a.at - b.at);
    const chosen = shuffled.slice(0, long ? points.length : spread - 1).map(({ point }) => point);
    return first === undefined ? [] : [first, ...chosen];
  }

  /**
   * The number of deaths of each function in a sample. The first cluster gets nearly all deaths of workers, because the others
   * wait for it. After more deaths in a row its Sync would pause for hours.
   */
  const spreads: Readonly<Record<string, number>> = {
    apply: 9,
    rollout: 5,
    render: 2,
    resolve: 3,
    report: 3,
    tick: 3,
  };
  const others = Object.keys(spreads).filter((name) => name !== "apply");

  describe("deaths of sandboxes", () => {
    const casts = long ? Object.keys(spreads).map((name) => [name]) : [["apply"], ...(everything ? [others] : [])];
    test.each(casts.map((names) => ({ cast: names.join(", "), names })))(
      "clusters and rows end as without faults when sandboxes of $cast die between two calls",
      async ({ names }) => {
        const mortals = mortalSandboxes();
        mortal = mortals;
        const plans = new Map(names.map((name) => [name, pointsOf(name, spreads[name] ?? 0)]));
        const plan = planDeaths(mortals, plans);
        const made = await open({ timeoutSeconds: shortClaims, sandboxes: mortals.sandboxes });
        // When the first workers all die at the same Sync, that Sync pauses longer after each death: half an hour in total.
        await playStory(made, { ...story, patienceSeconds: 2 * patienceSeconds });
        mortals.judgeBy(undefined);
        await expectQuietEnd(made, "some");
        const deaths = mortals.deaths().map(({ functionName, number, death }) => `${functionName} ${death} ${number}`);
        console.log(`died ${deaths.join(", ")}; never came to ${JSON.stringify(plan.left())}`);
        expect(new Set(mortals.deaths().map(({ functionName }) => functionName))).toEqual(new Set(names));
      },
    );
  });
});
