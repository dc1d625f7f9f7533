import { expect, test } from "vitest";
import { type RolloutPhase, rolloutPhase } from "#shared/fleet/api/rollout-phase.ts";
import type { StageRecord, StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { stageRunRow } from "#test/unit/functions/api/row-fixture.ts";

/** `canary:119 early:117>118`: the current rollout of each stage, and the one it updates to. */
function stagesOf(text: string): readonly StageRecord[] {
  return text.split(" ").map((word) => {
    const [name = "", place = ""] = word.split(":");
    const [current = "", updatingTo = ""] = place.split(">");
    return {
      name,
      members: 1,
      changing: 0,
      failedCatchUps: 0,
      ...(current === "" ? {} : { current: Number(current) }),
      ...(updatingTo === "" ? {} : { updatingTo: { rollout: Number(updatingTo), stage: name, snapshot: 0 } }),
    };
  });
}

/** `canary:Passed early:Updating`: the rollout's own stage runs. */
function stageRunsOf(text: string) {
  const words = text === "" ? [] : text.split(" ");
  return words.map((word) => {
    const [stage = "", phase = ""] = word.split(":");
    return stageRunRow({ rollout: 118, stage }, [], {
      phase: phase as StageRunPhase,
      reason: phase,
      message: `${stage} is ${phase}`,
    });
  });
}

test.each<[string, string, RolloutPhase, string]>([
  // A stage updates to it.
  ["canary:117>118 early:117 rest:117", "canary:Updating", "Rolling", "canary is Updating"],
  ["canary:118 early:117>118 rest:117", "canary:Passed early:Updating", "Rolling", "early is Updating"],
  ["canary:119 early:117>118 rest:117", "canary:Passed early:Updating", "Rolling", "early is Updating"],
  // It stands still in a stage.
  ["canary:117>118 early:117 rest:117", "canary:Halted", "Halted", "canary is Halted"],
  ["canary:117>118 early:117 rest:117", "canary:NothingVerified", "Stalled", "canary is NothingVerified"],
  [
    "canary:118 early:118 rest:117>118",
    "canary:Passed rest:TooManyUnreachable",
    "Stalled",
    "rest is TooManyUnreachable",
  ],
  // The rollout state was read before its stage run passed.
  ["canary:117>118 rest:117", "canary:Passed", "Rolling", "canary is Passed"],
  // The worse one of two stage runs that stand still counts.
  ["canary:117>118 early:117>118 rest:117", "canary:NothingVerified early:Halted", "Halted", "early is Halted"],
  // A stage has yet to take it.
  ["canary:118 early:117 rest:117", "canary:Passed", "Waiting", "stage early takes it next"],
  [
    "canary:118 early:116>117 rest:116",
    "canary:Passed",
    "Waiting",
    "stage early takes it when rollout 117 has ended there",
  ],
  ["canary:119>120 early:118 rest:117", "canary:Passed early:Passed", "Waiting", "stage rest takes it next"],
  ["canary:118 rest:", "canary:Passed", "Waiting", "stage rest takes it next"],
  // The last stage passed it, however long ago.
  ["canary:118 early:118 rest:118", "canary:Passed early:Passed rest:Passed", "Complete", "rest is Passed"],
  ["canary:120 early:120 rest:120", "canary:Passed early:Passed rest:Passed", "Complete", "rest is Passed"],
  ["all:118", "all:Passed", "Complete", "all is Passed"],
  // No stage can take it any more.
  ["canary:117>119 early:117 rest:117", "canary:Superseded", "Superseded", "canary is Superseded"],
  ["canary:119 early:117 rest:117", "canary:Passed", "Superseded", "stage early takes a newer rollout instead"],
  ["canary:119 early:117>119 rest:117", "canary:Passed early:Superseded", "Superseded", "early is Superseded"],
  [
    "canary:120 early:119 rest:117>119",
    "canary:Passed early:Passed rest:Superseded",
    "Superseded",
    "rest is Superseded",
  ],
  // A stage run of a removed stage does not count.
  ["canary:118 rest:119", "canary:Passed early:Updating", "Superseded", "stage rest takes a newer rollout instead"],
])("rollout 118 in the stages %s, with the stage runs %s, is %s", (stages, stageRuns, phase, message) => {
  expect(rolloutPhase(118, stagesOf(stages), stageRunsOf(stageRuns))).toMatchObject({ phase, message });
});
