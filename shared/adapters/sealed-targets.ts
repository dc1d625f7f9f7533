import type { LegRow, SealedTarget } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Targets of a leg by their orders, from the blobs that hold them.
 * @throws StarlingError `BlobNotFound`, `BlobCorrupt`
 */
export async function readSealed(
  leg: Pick<LegRow, "pages" | "size" | "content" | "stage">,
  orders: readonly number[],
  lists: { read(key: string): Promise<readonly SealedTarget[]> },
): Promise<ReadonlyMap<number, SealedTarget>> {
  const found = new Map<number, SealedTarget>();
  for (const [index, { key, first }] of leg.pages.entries()) {
    const end = leg.pages[index + 1]?.first ?? leg.size;
    const wanted = orders.filter((order) => order >= first && order < end);
    if (wanted.length === 0) continue;
    const page = await lists.read(key);
    for (const order of wanted) {
      const target = page[order - first];
      if (target === undefined) throw new Error(`the list of ${leg.content}#${leg.stage} has no target ${order}`);
      found.set(order, target);
    }
  }
  return found;
}
