import { expect, test } from "vitest";
import {
  type ClusterCount,
  clusterCountSchema,
  durationSeconds,
  resolveCount,
} from "#shared/fleet/kinds/quantities.ts";

test.each([
  ["0s", 0],
  ["30s", 30],
  ["5m", 300],
  ["1h30m", 5400],
  ["1h1m1s", 3661],
  ["90m", 5400],
  ["", undefined],
  ["5", undefined],
  ["5 m", undefined],
  ["30s5m", undefined],
  ["-5m", undefined],
  ["1.5h", undefined],
  ["1d", undefined],
  ["5M", undefined],
])("the duration %j is %s seconds", (text, seconds) => {
  expect(durationSeconds(text)).toBe(seconds);
});

test.each<[ClusterCount, number, number]>([
  [0, 100, 0],
  [7, 3, 7],
  ["0%", 100, 0],
  ["10%", 100, 10],
  ["10%", 19, 1],
  ["10%", 9, 0],
  ["99%", 1, 0],
  ["100%", 12, 12],
  ["33%", 0, 0],
  ["7%", 300, 21],
])("the count %j of %i clusters is %i, because percentages round down", (count, total, expected) => {
  expect(resolveCount(count, total)).toBe(expected);
});

test.each([0, 1, 500, "0%", "9%", "10%", "100%"])("the value %j is a count of clusters", (count) => {
  expect(clusterCountSchema.safeParse(count).success).toBe(true);
});

test.each([-1, 1.5, "101%", "010%", "10", "%", "-1%", "1.5%", null, true])(
  "the value %j is not a count of clusters",
  (count) => {
    expect(clusterCountSchema.safeParse(count).success).toBe(false);
  },
);
