import { expect, test } from "vitest";
import { pacedClock } from "#local/base/paced-clock.ts";

test("a clock counts little of the time in which its process gets nowhere", () => {
  const clock = pacedClock(10);
  const before = clock.now().getTime();
  const busyUntil = performance.now() + 200;
  while (performance.now() < busyUntil);
  const passedMs = clock.now().getTime() - before;
  expect(passedMs).toBeGreaterThan(0);
  expect(passedMs).toBeLessThanOrEqual(260);
});

test("a clock runs at its rate while its process is idle, and never back", async () => {
  const clock = pacedClock(1000);
  const readings = [clock.now().getTime()];
  while ((readings.at(-1) ?? 0) - (readings[0] ?? 0) < 100_000) {
    await new Promise(setImmediate);
    readings.push(clock.now().getTime());
  }
  expect(readings).toEqual(readings.toSorted((a, b) => a - b));
});

test("whoever sleeps on a clock sleeps for so much of its time, however fast it runs", async () => {
  const clock = pacedClock(1000);
  const before = clock.now().getTime();
  await clock.sleep(100_000);
  expect(clock.now().getTime() - before).toBeGreaterThanOrEqual(100_000);
});
