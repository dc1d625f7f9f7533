import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { type FaultOptions, hostile, quiet } from "#local/aws/fault-options.ts";
import { createRandom } from "#local/aws/random.ts";
import { expectSameEnd, storyBound, tellStory } from "#test/support/chaos-story.ts";
import { startWorld, type World, type WorldOptions } from "#test/support/e2e-world.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";

/** A failing run is repeated with the seed it printed. */
const seed = Number(process.env.STARLING_E2E_SEED ?? Date.now() % 1_000_000);
const patienceSeconds = 120;

let quietEnd: NormalForm;
let world: World | undefined;

async function open(options: WorldOptions = {}): Promise<World> {
  world = await startWorld({ seed, ...options });
  return world;
}

/** The same end as on a quiet day, and never too many clusters changing on the way. */
async function expectQuietEnd(made: World): Promise<void> {
  made.machine.proxy.setFaults(quiet);
  await expectSameEnd(made, quietEnd);
  expect(made.monitor.most().length).toBeLessThanOrEqual(storyBound);
  expect(made.monitor.unasked()).toEqual([]);
}

beforeAll(async () => {
  console.log(`chaos: STARLING_E2E_SEED=${seed}`);
  const calm = await startWorld();
  await tellStory(calm);
  quietEnd = await normalForm(calm);
  await calm.close();
});

afterEach(async () => {
  await world?.close();
  world = undefined;
});

test("a second quiet run ends the same", async () => {
  const made = await open();
  await tellStory(made);
  await expectQuietEnd(made);
  expect(made.monitor.most().length).toBe(storyBound);
});

const weathers: Readonly<Record<string, FaultOptions>> = {
  "queues that lose messages": { ...quiet, sqs: { ...quiet.sqs, lose: 0.15 } },
  "queues that repeat messages": { ...quiet, sqs: { ...quiet.sqs, duplicate: 0.6 } },
  "queues that delay and reorder messages": {
    ...quiet,
    sqs: { ...quiet.sqs, delay: 0.3, maxDelaySeconds: 2, reorder: 0.5, maxReorderMs: 500 },
  },
  "a table that conflicts, throttles, lags and leaves work undone": {
    ...quiet,
    dynamodb: {
      ...quiet.dynamodb,
      transactionConflict: 0.15,
      throttle: 0.1,
      unprocessed: 0.4,
      indexLagMs: 500,
      resetBefore: 0.02,
      resetAfter: 0.02,
    },
  },
  "everything at once": hostile,
};

describe("the end is the same with", () => {
  test.each(Object.entries(weathers))("%s", async (_name, faults) => {
    const made = await open({ faults });
    await tellStory(made, { patienceSeconds });
    await expectQuietEnd(made);
  });

  test("every queue purged at random moments", async () => {
    const random = createRandom(seed);
    const made = await open();
    const over = new AbortController();
    const purging = (async () => {
      while (!over.signal.aborted) {
        await sleep(random.integer(100, 1500));
        await made.machine.purgeQueues();
      }
    })();
    await tellStory(made, { patienceSeconds });
    over.abort();
    await purging;
    await expectQuietEnd(made);
  });

  test("two ticks, two planners and two workers at once", async () => {
    const made = await open({ copies: 2, faults: { ...quiet, sqs: { ...quiet.sqs, duplicate: 1 } } });
    const over = new AbortController();
    const ticking = (async () => {
      while (!over.signal.aborted) {
        await Promise.all([made.machine.tick(), made.machine.tick()]);
        await sleep(50);
      }
    })();
    await tellStory(made, { patienceSeconds });
    over.abort();
    await ticking;
    await expectQuietEnd(made);
  });
});
