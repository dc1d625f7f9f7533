/** The two records of a set: its parent object in the cluster, and its inventory in the store. */

import { identityFinding } from "#functions/apply/steps/identity-finding.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { rebuildInventory } from "#functions/apply/steps/rebuild-inventory.ts";
import { loadInventory } from "#functions/apply/steps/sync-blobs.ts";
import { defined } from "#shared/base/defined.ts";
import { type StarlingError, unlessLost } from "#shared/base/errors.ts";
import { syncFields } from "#shared/fleet/log-fields.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { ensureParent, type ParentReads, type ParentResult } from "#shared/kube/engine/ensure-parent.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import type { GroupKind } from "#shared/kube/object-id.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";

const maxNamed = 3;

export interface Recalled {
  /** True when the inventory was lost and its row has none: the next save stores it, whatever its digest. */
  readonly context: OperationContext;
  readonly inventory: Inventory;
  /** For the result of the operation: empty unless the inventory was rebuilt. */
  readonly reported: Pick<OperationResult, "rebuilt" | "foreign" | "clusterUid">;
}

/**
 * Reads the inventory of a Sync. A lost or changed inventory is rebuilt from the members in the cluster, if the cluster
 * is the expected one. It is stored only when the operation saves it.
 * @returns the finding when another cluster answers.
 */
export async function recallInventory(context: OperationContext): Promise<Recalled | OperationResult> {
  const { row, claim, ports } = context;
  const inventory = loadInventory(row, setIdOf(claim), ports.blobs);
  return unlessLost(
    inventory.then((found) => ({ context, inventory: found, reported: {} })),
    (lost) => rebuilt(context, lost),
  );
}

/** The result of an operation, with the report about its inventory once that is saved. */
export function reportedWith({ reported }: Recalled, result: OperationResult): OperationResult {
  return result.inventory === undefined ? result : { ...reported, ...result };
}

async function rebuilt(context: OperationContext, why: StarlingError): Promise<Recalled | OperationResult> {
  const { row, ports } = context;
  const identity = await identityFinding(context);
  if (!("uid" in identity)) return identity;
  const { inventory, foreign, unread } = await rebuildInventory(context);
  const members = inventory.entries.filter(({ uid }) => uid !== "").length;
  const unproven = foreign.filter(({ member }) => member).length;
  const unlisted =
    unread.length === 0
      ? ""
      : `; ${unread.slice(0, maxNamed).join(", ")}${unread.length > maxNamed ? " and others" : ""} may not be listed`;
  const message = `the inventory was lost (${why.message}) and is rebuilt from ${members} members in the cluster; ${unproven} others carry its marks and are in no known rendering${unlisted}`;
  const reported = { at: ports.clock.now().toISOString(), reason: why.code, message, members, foreign: unproven };
  ports.log.warn("an inventory was rebuilt", { ...syncFields(row), ...reported });
  return {
    context: { ...context, row: withoutInventory(row) },
    inventory,
    reported: { rebuilt: reported, foreign, clusterUid: identity.uid },
  };
}

function withoutInventory({ observed, ...row }: SyncRow): SyncRow {
  if (observed === undefined) return row;
  const { inventory: _lost, ...kept } = observed;
  return { ...row, observed: kept };
}

interface Beginning {
  readonly reads?: ParentReads;
  readonly installing?: boolean;
}

/** Begins an attempt in the cluster; see `ensureParent`. */
export function claimParent(
  context: OperationContext,
  groupKinds: readonly GroupKind[],
  beginning: Beginning = {},
): Promise<ParentResult> {
  const { client, claim, clusterUid, row } = context;
  const applied = row.observed?.applied;
  const { keptThrough } = row.desired;
  const settledThrough = applied?.attempt ?? keptThrough;
  // The kinds of unrecorded members tell where to search for them.
  const foreign = (row.observed?.foreign ?? []).filter(({ member }) => member).map(({ id }) => id);
  return ensureParent(client, {
    claim,
    groupKinds: [...groupKinds, ...foreign],
    ...beginning,
    ...defined({ expectedClusterUid: clusterUid, keptThrough }),
    ...(settledThrough === undefined ? {} : { settledThrough, unsettled: applied?.unsettled }),
  });
}
