import { allItems } from "#shared/base/all-pages.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

/** The groups and Syncs that use a Source. */
export async function ownersUsing(
  source: { readonly namespace: string; readonly name: string },
  table: Table,
): Promise<readonly Owner[]> {
  const entries = await Array.fromAsync(
    allItems((start) => table.query({ ...ranges.uses(source), newer: "kept", ...start })),
  );
  return entries.flatMap((entry) => keys.uses.parse(entry)?.owner ?? []);
}
