import { firstEntries } from "#shared/adapters/state-entries.ts";
import { prunesOfChecks } from "#shared/fleet/rollout/guarded-objects.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { GuardState, WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table } from "#shared/ports.ts";

/** More clusters than this ask again after the first ones are approved. */
const mostRead = 100;

/** The prunes that a guard withholds, and that a check found on a cluster without a turn. */
export async function checkedPrunes(
  table: Table,
  owner: Owner,
  guard: GuardState | undefined,
): Promise<readonly WithheldChange[]> {
  const failed = await firstEntries(owner, table, { phase: "Failed", most: mostRead });
  const desired = failed.map(({ cluster, sync }) => keys.sync(cluster, owner.namespace, sync));
  const rows = await table.getMany(desired, { newer: "kept" });
  return prunesOfChecks(
    rows.filter((row) => row.type === "SyncOnCluster"),
    guard,
  );
}
