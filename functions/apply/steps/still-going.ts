import type { OperationContext } from "#functions/apply/steps/operation.ts";
import type { StatedProblem } from "#shared/fleet/rows/stated-reason.ts";
import { beingDeleted } from "#shared/kube/engine/held-by.ts";
import { isCutOff } from "#shared/kube/engine/own-deadline.ts";
import { readDoomed } from "#shared/kube/engine/read-doomed.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { isBeingDeleted } from "#shared/kube/kube-object.ts";
import { describeObject, objectIdKey } from "#shared/kube/object-id.ts";

interface Question {
  readonly inventory: Inventory;
  /** `objectIdKey` of each desired object. */
  readonly kept: ReadonlySet<string>;
}

/**
 * Objects that an earlier apply began to delete and that still exist, with the holders of their finalizers. @throws
 * KubeError as `readDoomed` does.
 */
export async function stillGoing(
  { row, client, ports, deadline }: OperationContext,
  { inventory, kept }: Question,
): Promise<readonly StatedProblem[]> {
  const own = { clock: ports.clock, deadline };
  const ids = inventory.entries.map(({ id }) => id).filter((id) => !kept.has(objectIdKey(id)));
  if (ids.length === 0 || !row.desired.apply.prune) return [];
  try {
    const { liveOf } = await readDoomed(client, { setId: inventory.setId, ids, ...own });
    return ids.flatMap((id) => {
      const live = liveOf.get(objectIdKey(id));
      if (live === undefined || !isBeingDeleted(live)) return [];
      return [{ object: describeObject(id), reason: "Terminating" as const, message: beingDeleted(live) }];
    });
  } catch (error) {
    if (isCutOff(error, own)) return [];
    throw error;
  }
}
