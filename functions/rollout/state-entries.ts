import { allItems } from "#shared/base/all-pages.ts";
import { type Subject, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { IndexEntry, Table } from "#shared/ports.ts";

/** Every Sync of a subject by the state index, only those of one phase when it is given. May be a moment behind. */
export async function stateEntries(subject: Subject, table: Table, phase?: string): Promise<readonly IndexEntry[]> {
  const range = stateIndex.range(subject, phase);
  return Array.fromAsync(allItems((start) => table.queryIndex({ ...range, ...start })));
}
