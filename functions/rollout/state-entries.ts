import { type Subject, statePartition } from "#shared/fleet/rows/keys.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import type { IndexEntry, Table } from "#shared/ports.ts";

/** Every Sync of a subject by the state index, only those of one phase when it is given. May be a moment behind. */
export async function stateEntries(subject: Subject, table: Table, phase?: Phase): Promise<readonly IndexEntry[]> {
  const query = { index: "state", pk: statePartition(subject) } as const;
  const found: IndexEntry[] = [];
  let after: string | undefined;
  do {
    const page = await table.queryIndex({
      ...query,
      ...(phase === undefined ? {} : { prefix: `${phase}#` }),
      ...(after === undefined ? {} : { after }),
    });
    found.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return found;
}
