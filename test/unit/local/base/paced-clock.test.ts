import { expect, test } from "vitest";
import { pacedClock } from "#local/base/paced-clock.ts";

test("a paced clock counts little of the time in which its process is blocked", () => {
  const clock = pacedClock(10);
  const before = clock.now().getTime();
  const busyUntil = performance.now() + 200;
  while (performance.now() < busyUntil);
  const passedMs = clock.now().getTime() - before;
  expect(passedMs).toBeGreaterThan(0);
  expect(passedMs).toBeLessThanOrEqual(260);
});

test("a paced clock runs at its rate while its process is idle, and never goes back", async () => {
  const clock = pacedClock(1000);
  const readings = [clock.now().getTime()];
  while ((readings.at(-1) ?? 0) - (readings[0] ?? 0) < 100_000) {
    await new Promise(setImmediate);
    readings.push(clock.now().getTime());
  }
  expect(readings).toEqual(readings.toSorted((a, b) => a - b));
});

test("a sleep on a paced clock lasts for the given time of that clock, however fast the clock runs", async () => {
  const clock = pacedClock(1000);
  const before = clock.now().getTime();
  await clock.sleep(100_000);
  expect(clock.now().getTime() - before).toBeGreaterThanOrEqual(100_000);
});
