import type { Condition, OwnerState } from "#shared/fleet/rows/object-rows.ts";
import type { StageRunPhase, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { ObjectProblem, Phase } from "#shared/fleet/rows/sync-row.ts";
import { type AnyReason, type Reason, type ReportedReason, reportedReason } from "#shared/kube/reasons.ts";

/** A state, given as the reason for what follows from it: docs/states.md has these. */
export type StateReason = Phase | OwnerState | TargetState | StageRunPhase;

export type StatedReason = AnyReason | StateReason;

export type StatedProblem = ObjectProblem & { readonly reason: StatedReason };

/** A text such as `DeadlineExceeded: Deployment shop/web is not ready`, for fields that hold reason and message in one. */
export function because(reason: Reason, text: string): string {
  return `${reason}: ${text}`;
}

/** A condition of a row; its reason may be a word of another version, and is typed as one. */
export function reportedCondition<T extends { readonly reason: string }>(
  condition: T,
): T & { readonly reason: ReportedReason } {
  return { ...condition, reason: reportedReason(condition.reason) };
}

/** A condition that this version makes. Conditions in rows may have reasons of other versions. */
export type StatedCondition = Omit<Condition, "since" | "reason"> & { readonly reason: StatedReason };
