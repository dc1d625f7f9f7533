import { expect, test } from "vitest";
import { withContent } from "#functions/rollout/ledger.ts";
import type { ContentRow } from "#shared/fleet/rows/rollout-rows.ts";
import { stageOfUnit, unitOf } from "#test/support/unit-rows.ts";

const entry = (number: number) => ({ number, identity: `${number}`, revision: `r${number}`, at: "" });

test("a unit remembers what is not collected yet when more is past, and keeps what a stage is on", () => {
  const stages = [stageOfUnit("canary", { on: 12 }), stageOfUnit("rest", { on: 2 })];
  const ledger = [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map(entry);
  const unit = unitOf(stages, { last: 12, ledger, past: [1] });
  const next = { ...entry(13), createdAt: "" } as unknown as ContentRow;
  const { ledger: kept, ...others } = withContent(unit, next);
  expect(others).toEqual({ last: 13, past: [1, 3] });
  expect(kept.map(({ number }) => number)).toEqual([13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2]);
});
