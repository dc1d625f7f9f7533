import { expect, test } from "vitest";
import {
  beginningOf,
  currentCorrelation,
  leadingCorrelation,
  newCorrelation,
  underCorrelation,
} from "#shared/adapters/correlation.ts";

test("a correlation id says which trigger began the work, and when", () => {
  const id = newCorrelation("push", new Date("2026-11-23T06:12:54.321Z"));
  expect(id).toMatch(/^push-20261123T061254Z-[0-9a-f]{8}$/);
  expect(beginningOf(id)).toEqual({ by: "push", at: new Date("2026-11-23T06:12:54.000Z") });
  expect(newCorrelation("push", new Date("2026-11-23T06:12:54.321Z"))).not.toBe(id);
});

test.each(["", "push", "push-20261123T061254Z", "cron-20261123T061254Z-0011aabb", "push-20269923T061254Z-0011aabb"])(
  "%j is not a correlation id of Starling",
  (id) => expect(beginningOf(id)).toBeUndefined(),
);

test.each([
  { ids: [], leads: undefined },
  { ids: [undefined], leads: undefined },
  { ids: ["tick-1", "tick-2"], leads: "tick-2" },
  { ids: ["push-1", "tick-2"], leads: "push-1" },
  { ids: ["push-1", "api-2", undefined, "tick-3"], leads: "api-2" },
])("among the ids $ids, the leading one is $leads", ({ ids, leads }) => expect(leadingCorrelation(ids)).toBe(leads));

test("the current correlation id holds during the work, also for parallel work, and no longer", async () => {
  const seen = (id: string) =>
    underCorrelation(id, async () => {
      await Promise.resolve();
      return currentCorrelation();
    });
  expect(await Promise.all([seen("push-1"), seen("push-2")])).toEqual(["push-1", "push-2"]);
  expect(currentCorrelation()).toBeUndefined();
  // A message without an id keeps the current id.
  expect(underCorrelation("push-1", () => underCorrelation(undefined, currentCorrelation))).toBe("push-1");
});
