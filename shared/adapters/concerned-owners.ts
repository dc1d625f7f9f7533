import { allItems } from "#shared/base/all-pages.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";

/** The most rows of owners in memory at once. Each can have 400 KB. */
const ownersRead = 200;

/** One message for each planned owner in the directory. */
export async function everyOwner(table: Table): Promise<readonly Message[]> {
  return (await readOwners(table)).map((owner) => ({ to: "rollout", owner, clusters: [] }));
}

export async function readOwners(table: Table): Promise<readonly Owner[]> {
  const range = ranges.owners();
  const entries = allItems((start) => table.query({ ...range, newer: "kept", ...start }));
  return (await Array.fromAsync(entries)).flatMap((entry) => keys.owner.parse(entry) ?? []);
}

/**
 * One message to every owner that selects one of these clusters, in their old or new form. An owner in deletion is
 * concerned by every cluster, and so is an owner whose row cannot be read.
 * @param named - clusters whose slots the planner checks.
 */
export async function ownersTaking(
  clusters: readonly SelectableCluster[],
  table: Table,
  named: readonly string[] = [],
): Promise<readonly Message[]> {
  const messages: Message[] = [];
  for (const part of inParts(await readOwners(table), ownersRead)) {
    const found = await table.getMany(part.map(rowOf), { newer: "kept" });
    const rows = new Map(found.map((row) => [keyText(row), row]));
    for (const owner of part) {
      const row = rows.get(keyText(rowOf(owner)));
      if (row === undefined || (!isNewer(row) && !concerns(row, clusters))) continue;
      messages.push({ to: "rollout", owner, clusters: [...named] });
    }
  }
  return messages;
}

function rowOf({ namespace, kind, name }: Owner): RowKeyOf<Owner["kind"]> {
  return keys.object(namespace, kind, name);
}

function concerns(row: OwnerRow, clusters: readonly SelectableCluster[]): boolean {
  const selection = row.type === "Sync" ? { names: [row.spec.cluster] } : row.spec.clusters;
  return row.operations.deletion !== undefined || clusters.some((cluster) => selects(selection, cluster));
}
