/** Syncs that a cluster should have and that were never assigned: they have no row, and are counted all the same. */
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { isDisabledFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type DesiredRendering, whyBehind } from "#shared/fleet/sync/sync-state.ts";

/** Names of the Syncs that an owner's spec gives a cluster; none while the owner is being deleted. */
export function syncsFor(row: OwnerRow, cluster: FleetRow): readonly string[] {
  const { clusters, templates } = relationOf(row);
  if (row.operations.deletion !== undefined || !selects(clusters, cluster)) return [];
  const { type: kind, namespace, name } = row;
  return templates
    .filter((template) => !isDisabledFor(template, cluster))
    .map((template) => syncName({ namespace, kind, name }, template.name));
}

/** The known facts about a cluster that lacks a Sync of an owner. */
export interface LackingFacts {
  readonly owner: OwnerRow;
  /** The rollout that its stage updates to, otherwise the current one; absent when no rollout has reached the stage. */
  readonly rollout?: RolloutRow | undefined;
  readonly place?: DesiredRendering["place"];
  /** Its result in the stage run that last went through its stage. */
  readonly target?: TargetRow | undefined;
  /** Its catch-up that failed, or did not reach it. */
  readonly failed?: CatchUpRow | undefined;
  readonly away?: CatchUpRow | undefined;
}

export interface LackingState {
  readonly state: "Failed" | "Unreachable" | "Waiting";
  readonly reason: string;
  readonly since: string;
}

/**
 * The state of a Sync that a cluster should have and that was never assigned there: it is never shown as good.
 * @returns undefined when only stages before its own have the template: it is not desired there yet.
 */
export function lackingState(sync: string, facts: LackingFacts): LackingState | undefined {
  const { owner, rollout, target, failed, away } = facts;
  const { name, type: kind, namespace } = owner;
  const named = (template: string) => syncName({ namespace, kind, name }, template) === sync;
  if (rollout !== undefined && !rollout.plan.templates.some((template) => named(template.name))) return undefined;
  if (failed !== undefined) return { state: "Failed", reason: failed.reason ?? "", since: failed.since };
  if (away !== undefined) return { state: "Unreachable", reason: away.reason ?? "", since: away.since };
  if (target?.state === "Failed" || target?.state === "Unreachable")
    return { state: target.state, reason: target.reason, since: target.endedAt };
  return { state: "Waiting", reason: waitingReason(facts), since: rollout?.createdAt ?? owner.createdAt };
}

function waitingReason({ owner, rollout, place }: LackingFacts): string {
  if (owner.operations.suspended !== undefined) return "it is suspended";
  if (rollout !== undefined) return whyBehind({ place });
  const ready = owner.status.conditions.find(({ type }) => type === "Ready");
  return ready === undefined || ready.status === "True" ? "nothing was rolled out to it yet" : ready.message;
}
