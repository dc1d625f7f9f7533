import { afterEach, expect, test } from "vitest";
import { type Invocation, lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { type Schedule, startSchedule } from "#local/aws/lambda/scheduler.ts";

const schedules: Schedule[] = [];
afterEach(async () => {
  for (const schedule of schedules.splice(0)) {
    schedule.kill();
    await schedule.stop();
  }
});

function schedule(handler: () => unknown, everyMs: number): { schedule: Schedule; outcomes: Invocation[] } {
  const outcomes: Invocation[] = [];
  const started = startSchedule({
    lambda: lambdaFunction({ functionName: "tick", timeoutSeconds: 5, newSandbox: () => sharedSandbox(handler) }),
    everyMs,
    onInvocation: (outcome) => outcomes.push(outcome),
  });
  schedules.push(started);
  return { schedule: started, outcomes };
}

test("scheduled runs never overlap, and errors do not end the schedule", async () => {
  let running = 0;
  let most = 0;
  let runs = 0;
  schedule(async () => {
    running += 1;
    runs += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running -= 1;
    throw new Error("boom");
  }, 5);
  await expect.poll(() => runs, { timeout: 5000 }).toBeGreaterThan(3);
  expect(most).toBe(1);
});

test("two runs that are started by hand overlap", async () => {
  const gate = Promise.withResolvers<void>();
  let running = 0;
  const { schedule: fired } = schedule(async () => {
    running += 1;
    if (running === 2) gate.resolve();
    await gate.promise;
    return running;
  }, 3_600_000);
  const outcomes = await Promise.all([fired.fire(), fired.fire()]);
  expect(outcomes).toMatchObject([
    { outcome: "returned", result: 2 },
    { outcome: "returned", result: 2 },
  ]);
});

test("a schedule does not wait for a killed run, starts nothing while paused, and continues after resume", async () => {
  let runs = 0;
  const { schedule: paused, outcomes } = schedule(() => {
    runs += 1;
    return runs === 1 ? new Promise(() => {}) : undefined;
  }, 5);
  await expect.poll(() => runs, { timeout: 5000 }).toBe(1);
  paused.pause();
  paused.kill();
  await expect.poll(() => outcomes, { timeout: 5000 }).toMatchObject([{ outcome: "killed" }]);
  paused.resume();
  await expect.poll(() => runs, { timeout: 5000 }).toBeGreaterThan(1);
  await paused.stop();
});
