import { expect, test } from "vitest";
import { WeightedCache } from "#functions/apply/steps/weighted-cache.ts";

test("keeps the newest values up to a weight, and none that is heavier alone", () => {
  const cache = new WeightedCache<string>(10);
  const kept = () => ["a", "b", "c", "d"].filter((key) => cache.get(key) !== undefined);
  cache.set("a", "A", 4);
  cache.set("b", "B", 4);
  expect(kept()).toEqual(["a", "b"]);
  cache.set("c", "C", 4);
  expect(kept()).toEqual(["b", "c"]);
  cache.set("b", "B2", 6);
  expect(kept()).toEqual(["b", "c"]);
  expect(cache.get("b")).toBe("B2");
  cache.set("d", "D", 11);
  expect(kept()).toEqual(["b", "c"]);
  cache.set("d", "D", 10);
  expect(kept()).toEqual(["d"]);
  cache.set("d", "too heavy now", 11);
  expect(kept()).toEqual([]);
});
