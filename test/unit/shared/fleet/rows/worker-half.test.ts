import { expect, test } from "vitest";
import type { Deaths, Held } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import { observedOf, syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const held: Held = { name: "all", by: "arn:aws:iam::1:role/a", reason: "sale", attempt: 1, since: at, at };
const deaths: Deaths = { desired: "sha256:aaa", at, alone: 1 };
const bare = syncRowOf("c1");

test("facts that the worker no longer reports are removed from the row", () => {
  const full = { ...bare, observed: observedOf({}), held, deaths };
  const none = withWorkerHalf(full, { observed: undefined, held: undefined, deaths: undefined });
  expect(Object.keys(none)).toEqual(Object.keys(bare));
  expect(none).toEqual(bare);
});

test("the worker's facts replace the worker's half of the row, and the other halves stay", () => {
  const half = { observed: observedOf({ phase: "Failed" }), held, deaths };
  expect(withWorkerHalf({ ...bare, observed: observedOf({}) }, half)).toEqual({ ...bare, ...half });
});
