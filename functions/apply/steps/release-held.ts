import type { OperationResult } from "#functions/apply/steps/operation.ts";
import { claimParent, type Recalled } from "#functions/apply/steps/set-records.ts";
import { withheldFromNow } from "#functions/apply/steps/withheld-finding.ts";
import type { GuardedPrune } from "#shared/fleet/rows/sync-row.ts";
import { guardedPruneText, judgePrune } from "#shared/fleet/sync/prune-guard.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { changeInventory, type Inventory } from "#shared/kube/inventory.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

export interface Released {
  readonly inventory: Inventory;
  /** The prune that the guard withholds. */
  readonly asked?: Pick<OperationResult, "phase" | "reason" | "message" | "guardedPrune">;
}

/**
 * Checks again the objects that are held for siblings. An object that a sibling has taken over leaves the inventory,
 * and one that nobody desires any more is pruned. When nothing may be written, a sibling cannot be read, or the guard
 * allows fewer objects, all of them stay.
 */
export async function releaseHeld({ context, inventory }: Recalled): Promise<Released> {
  const { client, claim, ports, deadline, row } = context;
  const candidates = inventory.entries.filter((entry) => entry.heldFor !== undefined);
  if (candidates.length === 0) return { inventory };
  const heldFor = await context.siblings.desiringOrWhy(candidates.map(({ id }) => id));
  if ("reason" in heldFor || (await withheldFromNow(context)) !== undefined) return { inventory };
  const parent = await claimParent(
    context,
    inventory.entries.map(({ id }) => id),
  );
  if (parent.kind === "refused") return { inventory };
  const { setId } = inventory;
  const common = { setId, unrecorded: [], heldFor, keepUids: new Set<string>(), claim, clock: ports.clock, deadline };
  let guardedPrune: GuardedPrune | undefined;
  const guard = async (doomed: readonly ObjectId[]) => {
    guardedPrune = judgePrune(row, { doomed, members: inventory.entries.length });
    return guardedPrune && guardedPruneText(row, guardedPrune, doomed);
  };
  const result = await pruneSet(client, { ...common, candidates, guard });
  if (result.outcome === "refused") {
    if (guardedPrune === undefined) return { inventory };
    const { reason, message } = result;
    return { inventory, asked: { phase: "Failed", reason, message, guardedPrune } };
  }
  const { settled, held } = result;
  return { inventory: changeInventory(inventory, { recorded: held, settled, progress: inventory.progress }) };
}

/** The result of a check, which says so when all that is left to do is a prune that people are asked about. */
export function askedWith({ asked }: Released, result: OperationResult): OperationResult {
  return result.phase === "Ready" ? { ...result, ...asked } : result;
}
