import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { quiet } from "#local/aws/fault-options.ts";
import { createRandom } from "#local/aws/random.ts";
import { expectSameEnd, storyBound, tellStory } from "#test/support/chaos-story.ts";
import { type DeathPoint, planDeaths } from "#test/support/death-plan.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { type MortalSandboxes, mortalSandboxes } from "#test/support/mortal-sandboxes.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";

/** A failing run is repeated with the seed it printed. */
const seed = Number(process.env.STARLING_E2E_SEED ?? Date.now() % 1_000_000);
/** Every call instead of a spread of them. */
const everyCall = process.env.STARLING_E2E_EVERY_CALL !== undefined;
const patienceSeconds = everyCall ? 600 : 120;
const rate = 20;
/** Short leases, so that a death costs seconds. */
const timeoutSeconds = { apply: 60, rollout: 40, report: 40, resolve: 60, render: 60 };

let quietEnd: NormalForm;
/** The most calls that one invocation of a function makes on a quiet day. */
const longest = new Map<string, number>();
let world: World | undefined;
let mortal: MortalSandboxes | undefined;

beforeAll(async () => {
  console.log(`deaths: STARLING_E2E_SEED=${seed}`);
  const counting = mortalSandboxes();
  counting.onEnd(({ functionName, calls }) => {
    longest.set(functionName, Math.max(calls, longest.get(functionName) ?? 0));
  });
  const calm = await startWorld({ rate, sandboxes: counting.sandboxes });
  await tellStory(calm);
  quietEnd = await normalForm(calm);
  await calm.close();
  counting.stop();
  console.log("deaths: calls of the longest invocations", Object.fromEntries(longest));
});

afterEach(async () => {
  await world?.close();
  mortal?.stop();
  world = undefined;
});

/** Every call up to the longest invocation's, or a spread of so many. */
function pointsOf(functionName: string, spread: number): DeathPoint[] {
  const random = createRandom(seed);
  const calls = Array.from({ length: longest.get(functionName) ?? 0 }, (_, index) => index + 1);
  const points = calls.flatMap((call): DeathPoint[] => [
    { call, death: "before" },
    { call, death: "after" },
  ]);
  const shuffled = points.map((point) => ({ point, at: random.integer(0, 1e9) })).sort((a, b) => a.at - b.at);
  return shuffled.slice(0, everyCall ? points.length : spread).map(({ point }) => point);
}

describe("the end is the same when a sandbox dies between any two calls of", () => {
  test.each([
    ["apply", 24],
    ["rollout", 16],
    ["render", 6],
    ["resolve", 8],
    ["report", 8],
    ["tick", 10],
  ] as const)("%s", async (functionName, spread) => {
    mortal = mortalSandboxes();
    const points = pointsOf(functionName, spread);
    const plan = planDeaths(mortal, functionName, points);
    world = await startWorld({ seed, rate, timeoutSeconds, sandboxes: mortal.sandboxes });
    await tellStory(world, { patienceSeconds });
    mortal.judgeBy(undefined);
    world.machine.proxy.setFaults(quiet);
    await expectSameEnd(world, quietEnd);
    expect(world.monitor.most().length).toBeLessThanOrEqual(storyBound);
    expect(world.monitor.unasked()).toEqual([]);
    console.log(`${functionName}: died ${mortal.deaths().length} times; never reached ${JSON.stringify(plan.left())}`);
    expect(mortal.deaths().length).toBeGreaterThanOrEqual(Math.min(points.length, 4));
  });
});
