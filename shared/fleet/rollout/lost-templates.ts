/** Templates that a cluster lost by a rollout and that are desired again. Pure. */

import { takenBack } from "#shared/fleet/rollout/assignments.ts";
import { isDisabledFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { ClusterRows, Deciding, Known } from "#shared/fleet/rollout/facts.ts";
import { hadBefore, isAfter } from "#shared/fleet/rollout/order.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutRow, SlotRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isAway, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Names of the templates of its plan. */
export function templateNames({ plan }: Pick<RolloutRow, "plan">): ReadonlySet<string> {
  return new Set(plan.templates.map(({ name }) => name));
}

/** Templates that the spec has now, for any cluster or for this one. */
export function templatesDesired({ row }: Pick<Known, "row">, fleet?: FleetRow): ReadonlySet<string> {
  const templates = row.operations.deletion === undefined ? relationOf(row).templates : [];
  const own = templates.filter((template) => fleet === undefined || !isDisabledFor(template, fleet));
  return new Set(own.map(({ name }) => name));
}

/** The names of their Syncs. */
export function desiredNames(known: Known, fleet?: FleetRow): ReadonlySet<string> {
  return syncNames(known, templatesDesired(known, fleet));
}

/** Names of the desired Syncs that a cluster lost by a rollout, including those that were restored and did not arrive. */
export function lostOf(
  known: Known,
  rollout: RolloutRow,
  { fleet, syncs }: Pick<ClusterRows, "fleet" | "syncs">,
): ReadonlySet<string> {
  const isThere = (sync: SyncRow) => isAfter(sync, rollout.number) || (sync.paused === undefined && !isAway(sync));
  const has = syncs.filter((sync) => sync.desired.action === "apply" && isThere(sync)).map(({ name }) => name);
  return syncNames(known, templateNames(rollout).intersection(templatesDesired(known, fleet))).difference(new Set(has));
}

/**
 * The Syncs that a cluster was losing in a slot that ends without a withdrawal: they are missing afterwards.
 * @returns the rollout that has them; undefined when none of them is desired again.
 */
export function missedIn(
  { known, rolloutState, now }: Deciding,
  slot: Pick<SlotRow, "stage">,
  syncs: readonly SyncRow[],
): number | undefined {
  const desired = desiredNames(known);
  const isMissed = syncs.some((sync) => desired.has(sync.name) && takenBack(sync, now) !== undefined);
  return isMissed ? hadBefore(rolloutState, slot.stage) : undefined;
}

/** Names of the Syncs that a rollout neither assigns nor deletes: they are desired, and come with another one. */
export function desiredLater(known: Known, rollout: RolloutRow): ReadonlySet<string> {
  const taken = templateNames(rollout).union(new Set(rollout.deletes));
  return syncNames(known, templatesDesired(known).difference(taken));
}

export function syncNames({ owner }: Known, templates: Iterable<string>): ReadonlySet<string> {
  return new Set([...templates].map((name) => syncName(owner, name)));
}

/** Templates that a stage has, and that its stage run deletes. */
export function takenBy({ rollout }: StageRunRow, current: number, deciding: Deciding): ReadonlySet<string> {
  return templateNames(deciding.rollout(current)).difference(templateNames(deciding.rollout(rollout)));
}
