import { expect, test } from "vitest";
import { runConcurrently } from "#shared/base/run-concurrently.ts";

test("every item is processed once, and never more than the limit at a time", async () => {
  const done: number[] = [];
  let running = 0;
  let most = 0;
  await runConcurrently(
    Array.from({ length: 40 }, (_each, index) => index),
    7,
    async (item) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      done.push(item);
    },
  );
  expect(done.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_each, index) => index));
  expect(most).toBe(7);
});

test("no item starts after a failure, and the run fails with it", async () => {
  const started: number[] = [];
  const work = async (item: number) => {
    started.push(item);
    await new Promise((resolve) => setImmediate(resolve));
    if (item === 1) throw new Error("second");
  };
  await expect(runConcurrently([0, 1, 2, 3, 4, 5, 6], 2, work)).rejects.toThrow("second");
  await new Promise((resolve) => setImmediate(resolve));
  expect(started.length).toBeLessThan(5);
});

test("the run fails with the first failure when all started items have ended", async () => {
  const ended: string[] = [];
  const slow = Promise.withResolvers<void>();
  const running = runConcurrently(["slow", "first", "second", "never begun"], 3, async (item) => {
    if (item === "slow") await slow.promise;
    ended.push(item);
    if (item !== "slow") throw new Error(item);
  }).catch((error: unknown) => ended.push(String(error)));
  await new Promise((resolve) => setImmediate(resolve));
  expect(ended).toEqual(["first", "second"]);
  slow.resolve();
  await running;
  expect(ended).toEqual(["first", "second", "slow", "Error: first"]);
});

test("a run of no items ends at once", async () => {
  await expect(runConcurrently([], 3, () => Promise.reject(new Error("never")))).resolves.toBeUndefined();
});
