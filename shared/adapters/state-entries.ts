import { allItems } from "#shared/base/all-pages.ts";
import { type Owner, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

/** Every Sync of an owner by the state index, only of one phase when it is given. The index may lag a moment behind. */
export async function stateEntries(owner: Owner, table: Pick<Table, "queryIndex">, phase?: string) {
  const range = stateIndex.range(owner, phase);
  const entries = await Array.fromAsync(allItems((start) => table.queryIndex({ ...range, ...start })));
  return entries.flatMap(({ sort }) => stateIndex.parse(sort) ?? []);
}
