/** The guard of a Sync's objects: how many of them one rollout may prune from a cluster. Pure. */

import { counted, firstOf } from "#shared/base/counted.ts";
import { digestOf, hexOf } from "#shared/base/digest.ts";
import { type ClusterCount, resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { GuardedPrune, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

/** A percentage of fewer objects is no bound: a single one would be too much. */
const fewestForShare = 5;

/** Number of objects that the strictest bound allows. */
function mostPruned(bounds: readonly ClusterCount[], members: number): number {
  const counts = bounds.filter((bound) => typeof bound === "number" || members >= fewestForShare);
  return Math.min(Number.POSITIVE_INFINITY, ...counts.map((bound) => resolveCount(bound, members)));
}

/**
 * @param doomed - every object that would be pruned.
 * @param members - number of objects that the Sync had before.
 * @returns undefined when it is allowed, or was approved.
 */
export function judgePrune(
  { name, desired }: Pick<SyncRow, "name" | "desired">,
  { doomed, members }: { readonly doomed: readonly ObjectId[]; readonly members: number },
): GuardedPrune | undefined {
  const allowed = mostPruned(desired.objectBounds ?? [], members);
  if (doomed.length <= allowed) return undefined;
  const hash = hexOf(digestOf({ kind: "objects", name, objects: doomed.map(objectIdKey).sort() })).slice(0, 16);
  return desired.mayPrune?.includes(hash) === true ? undefined : { count: doomed.length, members, allowed, hash };
}

/** One line for people, with the command that approves it. */
export function guardedPruneText(
  { owner }: Pick<SyncRow, "owner">,
  { count, members, allowed, hash }: GuardedPrune,
  doomed: readonly ObjectId[],
): string {
  const names = firstOf(doomed.map(describeObject), { most: 3, count });
  const verb = `starling guard approve ${owner.name} -n ${owner.namespace} --hash ${hash}`;
  return `${count} of ${counted(members, "object")} would be pruned (${names}), and the guard allows ${allowed}: ${verb}`;
}
