import { allItems } from "#shared/base/all-pages.ts";
import { type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { IndexEntry, Table } from "#shared/ports.ts";

/** An index is behind its table for so long at most, as far as anybody is told. */
export const lagSeconds = 30;

/** Every Sync of a subject by the state index, only those of one phase when it is given. May be a moment behind. */
export async function stateEntries(owner: Owner, table: Table, phase?: string) {
  const range = stateIndex.range(owner, phase);
  const entries = await Array.fromAsync(allItems((start) => table.queryIndex({ ...range, ...start })));
  return entries.flatMap(({ sort }) => stateIndex.parse(sort) ?? []);
}

/** The first Syncs in a phase, by their clusters: so many at most, or all of them. */
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

/** Those in which something of it is, or may be. */
export async function clustersWithSyncs(owner: Owner, table: Table): Promise<ReadonlySet<string>> {
  return new Set((await liveEntries(owner, table)).map(({ cluster }) => cluster));
}

/** Its Syncs of which something is, or may be, in a cluster. */
export async function liveEntries(owner: Owner, table: Table) {
  const entries = await stateEntries(owner, table);
  return entries.filter(({ state }) => state !== "Orphaned" && state !== "Gone");
}
