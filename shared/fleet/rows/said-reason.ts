import type { Condition, SubjectState } from "#shared/fleet/rows/object-rows.ts";
import type { LegPhase, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { ObjectTrouble, Phase } from "#shared/fleet/rows/sync-row.ts";
import { type AnyReason, type Reason, type ToldReason, toldReason } from "#shared/kube/reasons.ts";

/** A state, given as the reason for what follows from it: docs/seeing.md has these. */
export type StateReason = Phase | SubjectState | TargetState | LegPhase;

export type SaidReason = AnyReason | StateReason;

export type SaidTrouble = ObjectTrouble & { readonly reason: SaidReason };

/** `DeadlineExceeded: Deployment shop/web is not ready`: of what has one text for its reason and the rest. */
export function because(reason: Reason, text: string): string {
  return `${reason}: ${text}`;
}

/** As the row has it. */
export function toldCondition<T extends { readonly reason: string }>(
  condition: T,
): T & { readonly reason: ToldReason } {
  return { ...condition, reason: toldReason(condition.reason) };
}

/** A condition as it is made; in rows there may be words of other versions. */
export type SaidCondition = Omit<Condition, "since" | "reason"> & { readonly reason: SaidReason };
