import { allItems } from "#shared/base/all-pages.ts";
import { type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { IndexEntry, Table } from "#shared/ports.ts";

/** Every Sync of an owner by the state index, only of one phase when it is given. The index may lag a moment behind. */
export async function stateEntries(owner: Owner, table: Table, phase?: string) {
  const range = stateIndex.range(owner, phase);
  const entries = await Array.fromAsync(allItems((start) => table.queryIndex({ ...range, ...start })));
  return entries.flatMap(({ sort }) => stateIndex.parse(sort) ?? []);
}

/** The first Syncs in a phase, by their clusters: at most this many, or all of them. */
export async function firstEntries(
  owner: Owner,
  table: Table,
  { phase, most }: { readonly phase: string; readonly most: number | undefined },
) {
  if (most === undefined) return stateEntries(owner, table, phase);
  const found: IndexEntry[] = [];
  const range = { ...stateIndex.range(owner, phase), limit: most };
  for await (const entry of allItems((start) => table.queryIndex({ ...range, ...start }))) {
    found.push(entry);
    if (found.length === most) break;
  }
  return found.flatMap(({ sort }) => stateIndex.parse(sort) ?? []);
}

/** States in which the cluster has something of the Sync, or may have. */
export async function clustersWithSyncs(owner: Owner, table: Table): Promise<ReadonlySet<string>> {
  return new Set((await liveEntries(owner, table)).map(({ cluster }) => cluster));
}

/** Its Syncs of which a cluster has something, or may have. */
export async function liveEntries(owner: Owner, table: Table) {
  const entries = await stateEntries(owner, table);
  return entries.filter(({ state }) => state !== "Orphaned" && state !== "Gone");
}
