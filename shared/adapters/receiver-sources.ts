import { allItems } from "#shared/base/all-pages.ts";
import { matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import type { ReceiverSpec } from "#shared/fleet/kinds/receiver.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type NewerRow } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

interface Receiving {
  readonly namespace: string;
  readonly spec: ReceiverSpec;
}

/** The Sources that a Receiver lists and that exist, each once. A row that only a newer version can read is left out. */
export async function receiverSources({ namespace, spec }: Receiving, table: Table): Promise<readonly SourceRow[]> {
  const names = spec.sources.filter((source) => typeof source === "string");
  const selectors = spec.sources.flatMap((source) => (typeof source === "string" ? [] : [source.selector]));
  const found = new Map<string, SourceRow>();
  const add = (rows: readonly (SourceRow | NewerRow)[]) => {
    for (const row of rows) if (!isNewer(row)) found.set(row.name, row);
  };
  add(
    await table.getMany(
      [...new Set(names)].map((name) => keys.object(namespace, "Source", name)),
      { newer: "kept" },
    ),
  );
  if (selectors.length > 0) {
    const range = ranges.objects(namespace, "Source");
    const all = await Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
    add(all.filter((row) => !isNewer(row) && selectors.some((labels) => matchesSelector(labels, row.labels))));
  }
  return [...found.values()];
}
