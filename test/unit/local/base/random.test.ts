import { expect, test } from "vitest";
import { createRandom } from "#local/base/random.ts";

test("the same seed gives the same choices, and another seed gives others", () => {
  const choices = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 64 }, () => random.chance(0.5));
  };
  expect(choices(7)).toEqual(choices(7));
  expect(choices(8)).not.toEqual(choices(7));
});

test("a chance of 0 never happens, a chance of 1 always, and a chance of 0.5 about every second time", () => {
  const random = createRandom(1);
  const happened = (probability: number) =>
    Array.from({ length: 1000 }, () => random.chance(probability)).filter(Boolean).length;
  expect(happened(0)).toBe(0);
  expect(happened(1)).toBe(1000);
  expect(Math.abs(happened(0.5) - 500)).toBeLessThan(100);
});

test("random integers have every value of their range, and no other", () => {
  const random = createRandom(1);
  const seen = new Set(Array.from({ length: 1000 }, () => random.integer(3, 6)));
  expect([...seen].sort()).toEqual([3, 4, 5, 6]);
});
