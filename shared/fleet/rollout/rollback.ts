/** The plan of a rollback: its stages, and the rollouts that it rejects. Pure. */

import { coveredBy, newestTaken, rollbackTarget, takenAfter } from "#shared/fleet/rollout/order.ts";
import { isRejected } from "#shared/fleet/rollout/rejection.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";

type State = Pick<RolloutStateRow, "stages" | "ledger" | "rejected">;

export interface RollbackPlan {
  readonly to: number;
  readonly revision: string;
  /** Names of the stages that go back, and the number of their clusters. */
  readonly stages: readonly { readonly name: string; readonly members: number }[];
  /** Rollouts that no cluster gets any more. */
  readonly rejects: readonly number[];
}

/** Why a rollback cannot be made, and of which field; or what it does. */
export type RollbackAnswer =
  | { readonly ok: true; readonly plan: RollbackPlan }
  | { readonly ok: false; readonly message: string };

/** @param asked - the rollout to go back to; without it, the one before the newest. */
export function rollbackPlan(rolloutState: State, asked: number | undefined): RollbackAnswer {
  const { ledger } = rolloutState;
  const newest = ledger.find(({ number }) => number === newestTaken(rolloutState));
  if (newest === undefined) return no("nothing was rolled out yet");
  if (asked === undefined && newest.rollback !== undefined)
    return no(`rollout ${newest.number} is a rollback to ${newest.rollback}; name an older one: --to N`);
  const to = asked ?? rollbackTarget(rolloutState);
  const known = ledger.map(({ number }) => number).join(", ");
  if (to === undefined) return no(`no stage had a rollout before ${newest.number} that it could get again`);
  const entry = ledger.find(({ number }) => number === to);
  if (entry === undefined) return no(`rollout ${to} is not kept; these are: ${known}`);
  if (entry.rollback !== undefined)
    return no(`rollout ${to} is a rollback; go back to the rollout that it went to: --to ${entry.rollback}`);
  if (isRejected(rolloutState, to)) return no(`rollout ${to} is rejected; unreject it first, or name another: --to N`);
  const stages = coveredBy(rolloutState, to).map(({ name, members }) => ({ name, members }));
  if (stages.length === 0) return no(`no stage has had rollout ${to} and has, or updates to, anything newer`);
  return { ok: true, plan: { to, revision: entry.revision, stages, rejects: takenAfter(rolloutState, to) } };
}

function no(message: string): RollbackAnswer {
  return { ok: false, message };
}
