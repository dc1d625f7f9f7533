/** The record of an earlier run of the same attempt; the inventory has it while the attempt needs more than one run. */

import { defined } from "#shared/base/defined.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { rankOf, ranks } from "#shared/kube/apply-order.ts";
import type { ApplySetResult } from "#shared/kube/engine/apply-set.ts";
import type { Inventory, Progress } from "#shared/kube/inventory.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

/** Empty when the record is about another attempt or rendering. */
export function progressOf({ progress }: Inventory, { desired }: Pick<SyncRow, "desired">): Progress {
  const { attempt, renderDigest } = desired;
  if (progress?.attempt === attempt && progress.renderDigest === renderDigest) return progress;
  return { attempt, ...defined({ renderDigest }), applied: [], settled: [] };
}

export function progressAfter(
  before: Progress,
  { result, settled = [] }: { readonly result?: ApplySetResult; readonly settled?: readonly ObjectId[] },
): Progress {
  const applied = (result?.objects ?? []).filter(isDone).map(({ id }) => objectIdKey(id));
  return {
    ...before,
    applied: [...new Set([...before.applied, ...applied])].sort(),
    settled: [...new Set([...before.settled, ...settled.map(objectIdKey)])].sort(),
  };
}

/** An object that others depend on is applied again until it is seen in the cluster; hooks have their own record. */
function isDone(object: ApplySetResult["objects"][number]): boolean {
  if (!("health" in object) || object.entry.hook !== undefined) return false;
  return rankOf(object.id) > ranks.definition || object.health.status === "Current";
}

/** Objects that were never recorded, and that no earlier run settled. */
export function unsettledIds(ids: readonly ObjectId[], { settled }: Progress): readonly ObjectId[] {
  const known = new Set(settled);
  return ids.filter((id) => !known.has(objectIdKey(id)));
}
