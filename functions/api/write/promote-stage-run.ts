import { refusal } from "#functions/api/request/refusal.ts";
import type { Facts } from "#functions/api/write/rollout-verb.ts";
import { isPromotable } from "#shared/fleet/rollout/advance.ts";
import { mostGateActs, promotionOf } from "#shared/fleet/rollout/gate-acts.ts";
import { isSameStageRun, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { GateAct, Operations } from "#shared/fleet/rows/object-rows.ts";

/**
 * Passes the stage run that the request names, and no other: a request that comes late passes nothing.
 * @throws StarlingError `BadRequest`, `StageRunChanged`, `NotStalled`
 */
export function decidePromote(facts: Facts<"promote">): Operations | undefined {
  const { row, rolloutState, stageRuns, body, act, object } = facts;
  const { stage: name, rollout, snapshot } = body;
  const stages = rolloutState?.stages ?? [];
  const stage = stages.find((one) => one.name === name);
  if (stage === undefined) {
    const names = stages.map((one) => one.name).join(", ");
    throw refusal("BadRequest", `stage: ${object} has no stage ${name}; it has ${names === "" ? "none yet" : names}`);
  }
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
  if (stageRun === undefined || !isPromotable(stageRun.phase)) {
    const { phase = "Updating", message = "" } = stageRun ?? {};
    const verbs = phase === "Halted" ? "; reconcile gives failed targets another turn" : "";
    throw refusal(
      "NotStalled",
      `rollout ${rollout} is ${phase} in stage ${name}: ${message}; nothing was promoted${verbs}`,
    );
  }
  if (promotionOf(row.operations, ref) !== undefined) return undefined;
  return withGateActs(facts, [{ ...act, verb: "promote", ...ref }]);
}

/** @throws StarlingError `BadRequest` */
function withGateActs({ row, object }: Facts<"promote">, acts: readonly GateAct[]): Operations {
  const gates = [...(row.operations.gates ?? []), ...acts];
  if (gates.length > mostGateActs)
    throw refusal("BadRequest", `${object} has ${mostGateActs} acts on the stage runs in progress; it keeps no more`);
  return { ...row.operations, gates };
}
