import { expect, test } from "vitest";
import { withRollout } from "#shared/fleet/rollout/ledger.ts";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf } from "#test/support/rollout-state-rows.ts";

const entry = (number: number) => ({ number, identity: `${number}`, revision: `r${number}`, at: "" });

test("the rollout state keeps old rollouts until they are collected, and keeps the current rollout of every stage", () => {
  const stages = [stageRecordOf("canary", { current: 12 }), stageRecordOf("rest", { current: 2 })];
  const ledger = [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2].map(entry);
  const rolloutState = rolloutStateOf(stages, { last: 12, ledger, past: [1] });
  const next = { ...entry(13), createdAt: "" } as unknown as RolloutRow;
  const { ledger: kept, ...others } = withRollout(rolloutState, next);
  expect(others).toEqual({ last: 13, past: [1, 3] });
  expect(kept.map(({ number }) => number)).toEqual([13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2]);
});
