/** Asks the guard of a Sync's objects before anything of an attempt is pruned. */

import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { placesIn } from "#functions/apply/steps/rendering-places.ts";
import { findRendering } from "#functions/apply/steps/sync-blobs.ts";
import { defined } from "#shared/base/defined.ts";
import type { GuardedPrune } from "#shared/fleet/rows/sync-row.ts";
import { guardedPruneText, judgePrune } from "#shared/fleet/sync/prune-guard.ts";
import type { PruneSetRequest } from "#shared/kube/engine/prune-set.ts";
import type { InventoryEntry, Progress } from "#shared/kube/inventory.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { everyObject } from "#shared/source/rendering.ts";

export interface PruneGuard {
  /** Absent without a guard, and after it let the attempt's prune through in an earlier run. */
  readonly ask?: PruneSetRequest["guard"];
  /** The guard has let the attempt's prune through. */
  hasPassed(): boolean;
  /** The prune that it withholds. */
  found(): Pick<OperationResult, "guardedPrune">;
}

interface Pruned {
  readonly entries: readonly InventoryEntry[];
  /** `objectIdKey` of each desired object. */
  readonly kept: ReadonlySet<string>;
  readonly progress: Progress;
}

export function pruneGuardOf(context: Pick<OperationContext, "row" | "ports">, pruned: Pruned): PruneGuard {
  const { row } = context;
  if (row.desired.objectBounds === undefined || pruned.progress.pruning === true)
    return { hasPassed: () => pruned.progress.pruning === true, found: () => ({}) };
  let passed = false;
  let withheld: GuardedPrune | undefined;
  return {
    async ask(doomed) {
      withheld = judgePrune(row, { doomed, members: await membersBefore(context, doomed, pruned) });
      passed = withheld === undefined && doomed.length > 0;
      return withheld && guardedPruneText(row, withheld, doomed);
    },
    hasPassed: () => passed,
    found: () => defined({ guardedPrune: withheld }),
  };
}

/**
 * Number of objects that the Sync had before the attempt: objects that are new count for nothing, or a renaming of all
 * would be a half. After a first attempt that was never whole, every object counts. When the last rendering is lost,
 * only the doomed ones do.
 */
async function membersBefore(
  { row, ports }: Pick<OperationContext, "row" | "ports">,
  doomed: readonly ObjectId[],
  { entries, kept }: Pruned,
): Promise<number> {
  const gone = new Set(doomed.map(objectIdKey));
  const stay = entries.filter(({ id, hook }) => hook === undefined && kept.has(objectIdKey(id)));
  const applied = row.observed?.applied?.renderDigest;
  if (applied === undefined) return gone.size + stay.length;
  const rendering = await findRendering(applied, ports.blobs);
  const before = rendering && placesIn(everyObject(rendering), row.desired.apply.defaultNamespace);
  return gone.size + stay.filter(({ id }) => before?.has(objectIdKey(id)) === true).length;
}
