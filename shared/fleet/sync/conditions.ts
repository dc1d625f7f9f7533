/** Conditions of a Sync on a cluster, in the words of Kubernetes. */

import { foreignText } from "#shared/base/foreign-text.ts";
import type { Condition } from "#shared/fleet/rows/object-rows.ts";
import { reportedCondition, type StatedCondition, type StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import {
  isAway,
  type ObjectProblem,
  type Observed,
  type Paused,
  type Phase,
  type SyncRow,
} from "#shared/fleet/rows/sync-row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";

/** Length limit for texts of a cluster. */
export const maxMessage = 1_000;

/** The result of one check. */
interface Found {
  readonly phase: Phase;
  readonly reason: StatedReason;
  readonly message: string;
  readonly leftAlone: readonly ObjectProblem[];
  readonly applied?: Observed["applied"];
  readonly drift?: Observed["drift"];
  /** The cluster was compared with what was applied. */
  readonly inspected?: true;
  /** Why not everything could be compared. */
  readonly notCompared?: string;
}

type Checked = Pick<SyncRow, "desired" | "observed">;

export function syncConditions(row: Checked, found: Found, now: string): Condition[] {
  const { phase, reason, message } = found;
  const ready = phase === "Ready" ? "True" : phase === "Unreachable" ? "Unknown" : "False";
  const updatingTo = phase === "Applying" || phase === "Verifying" || phase === "Retrying";
  const desired: StatedCondition[] = [
    { type: "Ready", status: ready, reason, message },
    { type: "Reconciling", status: updatingTo ? "True" : "False", reason: updatingTo ? phase : "Settled", message: "" },
    { type: "Stalled", status: phase === "Failed" ? "True" : "False", reason, message: "" },
    { type: "Drifted", ...driftOf(row, found) },
  ];
  return desired.map((condition) => {
    const old = row.observed?.conditions.find(({ type }) => type === condition.type);
    return { ...condition, since: old?.status === condition.status ? old.since : now };
  });
}

/**
 * The conditions of a Sync whose attempt the planner has ended as failed: it is stalled from then on, and not only when
 * its worker reports that.
 */
export function pausedConditions(
  row: Pick<SyncRow, "desired" | "observed" | "paused">,
  conditions: readonly Condition[],
): readonly Condition[] {
  const { paused, observed } = row;
  if (paused?.zone !== undefined) {
    const isKnown = isAway(row) || syncStateOf(row) !== "Unreachable";
    return isKnown ? conditions : zoneConditions(paused, conditions);
  }
  if (paused === undefined || observed?.phase === "Failed" || syncStateOf(row) !== "Failed") return conditions;
  const since = paused.at;
  return conditions.map((condition) => {
    const { type, status } = condition;
    if (type === "Stalled" && status !== "True") return { ...condition, status: "True", reason: "Paused", since };
    if (type === "Reconciling" && status !== "False")
      return { ...condition, status: "False", reason: "Settled", since };
    return condition;
  });
}

/** Nobody knows whether the Sync is ready before a worker of the zone has reported about its cluster again. */
function zoneConditions({ at: since, reason: text }: Paused, conditions: readonly Condition[]): readonly Condition[] {
  const reason: StatedReason = "ZoneDown";
  return conditions.map((condition): Condition => {
    const { type, status } = condition;
    if (type === "Ready") return { type, status: "Unknown", reason, message: text.replace(`${reason}: `, ""), since };
    if (type === "Reconciling" && status !== "False")
      return { ...condition, status: "False", reason: "Settled", since };
    return condition;
  });
}

/** The state that the last comparison found. */
export function isDrifted(observed: Observed | undefined): boolean {
  return driftBefore(observed)?.status === "True";
}

/** An object that could not be compared may have drifted; drift that was found stays until a comparison shows otherwise. */
function driftOf(row: Checked, found: Found): Pick<StatedCondition, "status" | "reason" | "message"> {
  const { drift, notCompared } = found;
  const [left] = found.leftAlone;
  if (left !== undefined) {
    const message = foreignText(`${left.object}: ${left.message}`, maxMessage);
    return { status: "True", reason: "CorrectionsUndone", message };
  }
  if (drift !== undefined && drift.objects > 0 && !drift.corrected)
    return { status: "True", reason: "DriftDetected", message: "" };
  if (!holdsRendering(row, found)) return { status: "Unknown", reason: "NotApplied", message: "" };
  const { action, apply } = row.desired;
  if (action === "apply" && apply.drift === "off")
    return { status: "Unknown", reason: "NotCompared", message: "spec.apply.drift is off" };
  const known = hasCompared(found) ? undefined : knownDrift(row);
  if (known !== undefined) return reportedCondition(known);
  if (notCompared === undefined) return { status: "False", reason: "InSync", message: "" };
  return { status: "Unknown", reason: "NotCompared", message: foreignText(notCompared, maxMessage) };
}

/** Everything that was applied is unchanged. */
function hasCompared({ inspected, applied, drift }: Found): boolean {
  return inspected === true || applied !== undefined || drift !== undefined;
}

/** Conditions of the same attempt. */
function knownDrift({ desired, observed }: Checked): Condition | undefined {
  const known = observed?.attempt === desired.attempt ? driftBefore(observed) : undefined;
  return known?.reason === "NotApplied" ? undefined : known;
}

function driftBefore(observed: Observed | undefined): Condition | undefined {
  return observed?.conditions.find(({ type }) => type === "Drifted");
}

/** Whether the desired rendering was applied completely, now or earlier; a deletion has nothing that could drift. */
function holdsRendering({ desired, observed }: Checked, { applied = observed?.applied }: Found): boolean {
  return desired.action !== "apply" || applied?.renderDigest === desired.renderDigest;
}
