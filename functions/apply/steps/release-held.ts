import { claimParent, type Recalled } from "#functions/apply/steps/set-records.ts";
import { withheldFromNow } from "#functions/apply/steps/withheld-finding.ts";
import { judgePrune } from "#shared/fleet/sync/prune-guard.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/**
 * Checks again the objects that are held for siblings. An object that a sibling has taken over leaves the inventory,
 * and one that nobody desires any more is pruned. When nothing may be written, a sibling cannot be read, or the guard
 * allows fewer objects, all of them stay.
 */
export async function releaseHeld({ context, inventory }: Recalled): Promise<Inventory> {
  const { client, claim, ports, deadline } = context;
  const candidates = inventory.entries.filter((entry) => entry.heldFor !== undefined);
  if (candidates.length === 0) return inventory;
  const heldFor = await context.siblings.desiringOrWhy(candidates.map(({ id }) => id));
  if ("reason" in heldFor || (await withheldFromNow(context)) !== undefined) return inventory;
  const parent = await claimParent(
    context,
    inventory.entries.map(({ id }) => id),
  );
  if (parent.kind === "refused") return inventory;
  const { setId } = inventory;
  const common = { setId, unrecorded: [], heldFor, keepUids: new Set<string>(), claim, clock: ports.clock, deadline };
  // The prune of the next attempt asks people about them.
  const guard = async (doomed: readonly ObjectId[]) =>
    judgePrune(context.row, { doomed, members: inventory.entries.length }) && "the guard withholds it";
  const result = await pruneSet(client, { ...common, candidates, guard });
  if (result.outcome === "refused") return inventory;
  const { settled, held } = result;
  return changeInventory(inventory, { recorded: held, settled, progress: inventory.progress });
}
