/** What a cluster is to have and nothing was ever assigned of: it has no row of its own, and is counted all the same. */
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { isDisabledFor } from "#shared/fleet/rollout/override.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { CatchUpRow, RolloutRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type DesiredRendering, whyBehind } from "#shared/fleet/sync/sync-state.ts";

/** Names of the Syncs that a subject's spec gives a cluster; none while the subject is being deleted. */
export function syncsFor(row: OwnerRow, cluster: FleetRow): readonly string[] {
  const { clusters, templates } = relationOf(row);
  if (row.operations.deletion !== undefined || !selects(clusters, cluster)) return [];
  const { type: kind, namespace, name } = row;
  return templates
    .filter((template) => !isDisabledFor(template, cluster))
    .map((template) => syncName({ namespace, kind, name }, template.name));
}

/** What is known of a cluster that lacks something of a subject. */
export interface LackingFacts {
  readonly owner: OwnerRow;
  /** What its stage moves to, or else is on; absent: nothing came to the stage. */
  readonly rollout?: RolloutRow | undefined;
  readonly place?: DesiredRendering["place"];
  /** How it ended in the leg that went through its stage last. */
  readonly target?: TargetRow | undefined;
  /** Its catch-up that failed, or did not find it. */
  readonly failed?: CatchUpRow | undefined;
  readonly away?: CatchUpRow | undefined;
}

export interface LackingState {
  readonly state: "Failed" | "Unreachable" | "Waiting";
  readonly reason: string;
  readonly since: string;
}

/**
 * The one word for a Sync that is wanted on a cluster and was never assigned there: green is never shown for it.
 * @returns undefined where only stages before its own have the template: it is not wanted there yet.
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
