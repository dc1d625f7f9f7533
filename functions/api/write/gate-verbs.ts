/** The verbs of people about single stage runs and their targets. */
import { labelSelection } from "#functions/api/request/label-selection.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { type Facts, namedStage, type RolloutVerb } from "#functions/api/write/rollout-verb.ts";
import { defined } from "#shared/base/defined.ts";
import type { SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { isPromotable } from "#shared/fleet/rollout/advance.ts";
import { mostGateActs, promotionOf, skipOf } from "#shared/fleet/rollout/gate-acts.ts";
import { isSameStageRun, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { GateAct, Operations } from "#shared/fleet/rows/object-rows.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";

/**
 * Passes the stage run that the request names, and no other: a request that comes late passes nothing.
 * @throws StarlingError `BadRequest`, `StageRunChanged`, `NotStalled`
 */
export function decidePromote(facts: Facts<"promote">): Operations | undefined {
  const { row, rolloutState, stageRuns, body, act, object } = facts;
  const { stage: name, rollout, snapshot } = body;
  const stage = namedStage(name, { rolloutState, object });
  const ref = { stage: name, rollout, snapshot };
  const { updatingTo } = stage;
  if (updatingTo === undefined || !isSameStageRun(updatingTo, ref)) {
    const now =
      updatingTo === undefined
        ? `updates to nothing, and its current rollout is ${stage.current ?? "none"}`
        : updatingTo.rollout === rollout
          ? `has taken another snapshot of rollout ${rollout}`
          : `updates to rollout ${updatingTo.rollout}`;
    throw refusal("StageRunChanged", `stage ${name} of ${object} ${now}; nothing was promoted`);
  }
  const stageRun = stageRuns.get(stageRunKey(updatingTo));
  if (stageRun === undefined || !isPromotable(stageRun)) {
    const { phase = "Updating", message = "" } = stageRun ?? {};
    const verbs = phase === "Halted" ? "; starling rollout retry gives failed targets another turn" : "";
    throw refusal(
      "NotStalled",
      `rollout ${rollout} is ${phase} in stage ${name}: ${message}; nothing was promoted${verbs}`,
    );
  }
  if (promotionOf(row.operations, ref) !== undefined) return undefined;
  return withGateActs(facts, [{ ...act, verb: "promote", ...ref }]);
}

/**
 * Gives failed targets and catch-ups another turn: of one cluster, of those that a selector matches, or of all.
 * @throws StarlingError `BadRequest`, `NotFailed` for a cluster that has not failed.
 */
export function decideRetry(facts: Facts<"retry">): Operations {
  const { rows, body, act, object } = facts;
  const { cluster } = body;
  const entry = rows.find((row) => isOfType(row, "Fleet"));
  const hasFailed = rows.some(
    (row) => isOfType(row, "CatchUp") || (isOfType(row, "Target") && (row.state === "Failed" || row.takenOut === true)),
  );
  const isSkipped = entry !== undefined && isSkippedNow(facts, entry);
  if (cluster !== undefined && !rows.some((row) => keys.fleet.parse(row) !== undefined))
    throw refusal("BadRequest", `cluster: no cluster ${cluster} is registered`);
  if (cluster !== undefined && !hasFailed && !isSkipped)
    throw refusal("NotFailed", `cluster ${cluster} has not failed in ${object}; nothing is tried again`);
  return withGateActs(facts, [
    { ...act, verb: "retry", ...defined({ cluster, clusters: labelSelection(body.clusters) }) },
  ]);
}

/** A skip keeps it out of a stage run in progress: its target may still wait, or have a slot. */
function isSkippedNow({ row, rolloutState }: Facts<"retry">, cluster: SelectableCluster): boolean {
  if (rolloutState === undefined) return false;
  const runs = rolloutState.stages.flatMap(({ updatingTo }) => updatingTo ?? []);
  return runs.some((run) => skipOf(row.operations, run, { cluster, rolloutState }) !== undefined);
}

/** @throws StarlingError `BadRequest` */
export function withGateActs(
  { row, object }: Pick<Facts<RolloutVerb>, "row" | "object">,
  acts: readonly GateAct[],
): Operations {
  const gates = [...(row.operations.gates ?? []), ...acts];
  if (gates.length > mostGateActs)
    throw refusal("BadRequest", `${object} has ${mostGateActs} acts on the stage runs in progress; it keeps no more`);
  return { ...row.operations, gates };
}
