import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { deleteParent } from "#shared/kube/engine/ensure-parent.ts";
import { isCutOff, isOutOfTime } from "#shared/kube/engine/own-deadline.ts";
import { type PruneResult, type PruneSetRequest, pruneSet } from "#shared/kube/engine/prune-set.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";
import type { SyncClaim } from "#shared/kube/parent-object.ts";

export interface DeleteSetRequest {
  readonly inventory: Inventory;
  /** Members that the inventory does not know, and whose deletion a user accepted, by their uid. */
  readonly accepted?: PruneSetRequest["candidates"];
  /** Objects of attempted renderings that the inventory does not know; see `PruneSetRequest.unrecorded`. */
  readonly unrecorded: readonly ObjectId[];
  /** See `PruneSetRequest.heldFor`. The parent stays while any object is held, because it names the owner. */
  readonly heldFor?: ReadonlyMap<string, string>;
  /** The parent stays while unrecorded members exist, because it names their owner. */
  readonly parent?: "keep";
  readonly claim: SyncClaim;
  readonly clock: Clock;
  readonly deadline: Date;
}

/**
 * Deletes a whole Sync: its members in the order of deletion, and then its parent object. Call it again without the
 * settled objects in the inventory until the outcome is `done`.
 * @throws KubeError when the cluster as a whole does not answer or refuses access.
 */
export async function deleteSet(client: ClusterClient, request: DeleteSetRequest): Promise<PruneResult> {
  const { inventory, accepted = [], unrecorded, heldFor, parent, claim, clock, deadline } = request;
  const result = await pruneSet(client, {
    setId: inventory.setId,
    candidates: [...inventory.entries, ...accepted],
    unrecorded,
    ...defined({ heldFor }),
    keepUids: new Set(),
    claim,
    clock,
    deadline,
  });
  if (result.outcome !== "done" || parent === "keep") return result;
  if (result.held.length > 0) return { ...result, outcome: "waiting" };
  if (isOutOfTime(request)) return unfinished(result);
  try {
    await deleteParent(client, claim);
    return result;
  } catch (error) {
    if (isCutOff(error, request)) return unfinished(result);
    throw error;
  }
}

/** Everything is settled except the parent, which the next run deletes. */
function unfinished(result: PruneResult): PruneResult {
  return result.outcome === "refused" ? result : { ...result, outcome: "waiting", timeWasUp: true };
}
