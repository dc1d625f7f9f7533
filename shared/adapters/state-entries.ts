import { allItems } from "#shared/base/all-pages.ts";
import { keys, type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { IndexEntry, Table } from "#shared/ports.ts";

/** Every Sync of an owner by the state index, only of one phase when it is given. The index may lag a moment behind. */
export async function stateEntries(owner: Owner, table: Pick<Table, "queryIndex">, phase?: string) {
  const range = stateIndex.range(owner, phase);
  const entries = await Array.fromAsync(allItems((start) => table.queryIndex({ ...range, ...start })));
  return entries.flatMap((entry) => stateEntry(entry) ?? []);
}

/** @returns undefined when the text names another Sync than the key: the role of a zone may write any text for its own rows. */
export function stateEntry({ key, sort }: IndexEntry) {
  const [entry, row] = [stateIndex.parse(sort), keys.sync.parse(key)];
  return entry !== undefined && entry.cluster === row?.cluster && entry.sync === row.name ? entry : undefined;
}

/** The first Syncs in a phase, by their clusters: at most this many, or all of them. */
export async function firstEntries(
  owner: Owner,
  table: Pick<Table, "queryIndex">,
  { phase, most }: { readonly phase: string; readonly most: number | undefined },
) {
  if (most === undefined) return stateEntries(owner, table, phase);
  const found: IndexEntry[] = [];
  const range = { ...stateIndex.range(owner, phase), limit: most };
  for await (const entry of allItems((start) => table.queryIndex({ ...range, ...start }))) {
    found.push(entry);
    if (found.length === most) break;
  }
  return found.flatMap((entry) => stateEntry(entry) ?? []);
}
