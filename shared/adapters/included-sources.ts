import { includedIn } from "#shared/fleet/kinds/source.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Sources that one is made of at most, directly and through others. */
export const mostIncluded = 100;

/**
 * The Sources of these names, and those that they include, by name; a missing one is left out. The search ends above
 * `mostIncluded`.
 */
export async function includedSources(
  table: Table,
  namespace: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, SourceRow>> {
  const found = new Map<string, SourceRow>();
  const asked = new Set<string>();
  for (let next = [...new Set(names)]; next.length > 0 && asked.size <= mostIncluded; ) {
    for (const name of next) asked.add(name);
    const rows = await table.getMany(
      next.map((name) => keys.object(namespace, "Source", name)),
      { newer: "kept" },
    );
    for (const row of rows) if (!isNewer(row)) found.set(row.name, row);
    const below = rows.flatMap((row) => (isNewer(row) ? [] : includedIn(row.spec)));
    next = [...new Set(below)].filter((name) => !asked.has(name));
  }
  return found;
}
