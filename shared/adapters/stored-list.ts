import { storedText } from "#shared/adapters/stored-text.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { BlobStore } from "#shared/ports.ts";

/** A list that is stored under a key with its digest. @throws StarlingError `BlobNotFound`, `BlobCorrupt` */
export async function storedList<Item>(blobs: Pick<BlobStore, "get">, key: string): Promise<readonly Item[]> {
  return JSON.parse(await storedText(blobs, key, blobKeys.members));
}

/**
 * Targets of a stage run by their orders, read from its pages.
 * @throws StarlingError `BlobNotFound`, `BlobCorrupt`
 */
export async function readSnapshot(
  stageRun: Pick<StageRunRow, "pages" | "size" | "rollout" | "stage">,
  orders: readonly number[],
  lists: { read(key: string): Promise<readonly SnapshotTarget[]> },
): Promise<ReadonlyMap<number, SnapshotTarget>> {
  const found = new Map<number, SnapshotTarget>();
  for (const [index, { key, first }] of stageRun.pages.entries()) {
    const end = stageRun.pages[index + 1]?.first ?? stageRun.size;
    const desired = orders.filter((order) => order >= first && order < end);
    if (desired.length === 0) continue;
    const page = await lists.read(key);
    for (const order of desired) {
      const target = page[order - first];
      if (target === undefined)
        throw new Error(`the snapshot of stage run ${stageRun.rollout}#${stageRun.stage} has no target ${order}`);
      found.set(order, target);
    }
  }
  return found;
}
