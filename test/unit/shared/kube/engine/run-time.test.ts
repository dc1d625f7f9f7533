import { expect, test } from "vitest";
import { RunTime } from "#shared/kube/engine/run-time.ts";

function runOf(leftMs: number) {
  let at = 1_000_000;
  const run = new RunTime({ clock: { now: () => new Date(at) }, deadline: new Date(at + leftMs) });
  const piece = (ms: number) =>
    run.measured(async () => {
      at += ms;
    });
  return { run, piece };
}

test("the time of a run is up when the next piece might not fit", async () => {
  const { run, piece } = runOf(1_000);
  expect(run.isUp()).toBe(false);
  await piece(499);
  expect(run.isUp()).toBe(false);
  await piece(2);
  // Another piece of 499 ms would just end in time, but it counts as not fitting any more.
  expect(run.isUp()).toBe(true);
});

test("no piece starts at the very end, even if no piece has taken any time so far", () => {
  expect(runOf(0).run.isUp()).toBe(true);
  expect(runOf(1).run.isUp()).toBe(false);
});

test("the slowest piece counts, also one that failed", async () => {
  const { run, piece } = runOf(1_000);
  const slow = run.measured(async () => {
    await piece(300);
    throw new Error("it took its time");
  });
  await expect(slow).rejects.toThrow("it took its time");
  await piece(300);
  expect(run.isUp()).toBe(false);
  await piece(101);
  expect(run.isUp()).toBe(true);
});
