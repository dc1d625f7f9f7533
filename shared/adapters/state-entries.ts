import { allItems } from "#shared/base/all-pages.ts";
import { type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { IndexEntry, Table } from "#shared/ports.ts";

/** Every Sync of an owner by the state index, only of one phase when it is given. The index may lag a moment behind. */
export async function stateEntries(owner: Owner, table: Pick<Table, "queryIndex">, phase?: string) {
  const range = stateIndex.range(owner, phase);
  const entries = await Array.fromAsync(allItems((start) => table.queryIndex({ ...range, ...start })));
  return entries.flatMap(({ sort }) => stateIndex.parse(sort) ?? []);
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
  return found.flatMap(({ sort }) => stateIndex.parse(sort) ?? []);
}
