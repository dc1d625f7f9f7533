import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { isConflict } from "#shared/base/errors.ts";
import { nextScan } from "#shared/fleet/discovery/next-scan.ts";
import { type DiscoveryRow, type DiscoveryStatus, nobodyScans } from "#shared/fleet/rows/discovery-rows.ts";
import { due, dueAttributes, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";

/** Number of tries to write a status when other writers are faster. */
const maxTries = 5;

export interface BegunScan {
  readonly row: DiscoveryRow;
  /** The scan before this one did not end. */
  readonly isAfterDeath: boolean;
}

/**
 * Marks the row as being scanned: no other scan begins, and the row is due again in case this function dies. When the
 * former scan has ended, as is usual, the write that marks the row also reads it.
 * @returns undefined when there is no such row, or when another scan is running.
 * @throws ConflictError when another writer was faster.
 */
export async function beginScan(
  name: string,
  timeLeftMs: number,
  { table, ids, clock }: Pick<DiscoverPorts, "table" | "ids" | "clock">,
): Promise<BegunScan | undefined> {
  const key = keys.discovery(name);
  const now = clock.now().toISOString();
  const until = later(now, timeLeftMs / 1000);
  const mark = { scanId: ids.unique(), scanUntil: until };
  try {
    const row = await table.update({
      update: key,
      set: { ...mark, ...dueAttributes(key, until) },
      add: { version: 1 },
      remove: ["dispatches"],
      when: [
        { attribute: "scanUntil", equals: nobodyScans },
        // A row that a newer version wrote stays as it is.
        { attribute: "schema", lessThan: newestRowSchema + 1 },
      ],
    });
    return { row, isAfterDeath: false };
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
  const row = await table.get(key);
  if (row === undefined) return undefined;
  // The first try took effect, but its answer was lost.
  if (row.scanId === mark.scanId) return { row, isAfterDeath: false };
  if (row.scanUntil !== undefined && row.scanUntil > now) return undefined;
  const next = due({ ...row, ...mark, version: row.version + 1 }, until);
  await table.write([{ put: next, when: { version: row.version } }]);
  return { row: next, isAfterDeath: row.scanUntil !== undefined && row.scanUntil !== nobodyScans };
}

/** Writes the result of the scan, unless another scan has begun since. A newer spec is scanned next. */
export async function endScan(
  started: DiscoveryRow,
  { settle, again }: { readonly settle: (row: DiscoveryRow) => DiscoveryStatus; readonly again: boolean },
  { table, clock }: Pick<DiscoverPorts, "table" | "clock">,
): Promise<void> {
  let row: DiscoveryRow | undefined = started;
  for (let attempt = 1; row !== undefined; attempt++) {
    if (row.uid !== started.uid || row.scanId !== started.scanId) return;
    const status = settle({ ...row, generation: started.generation });
    const next: DiscoveryRow = { ...row, status, scanUntil: nobodyScans, version: row.version + 1 };
    const at = again ? watchdogAt(clock.now(), 0) : nextScan(next);
    try {
      return await table.write([{ put: due(next, at), when: { version: row.version } }]);
    } catch (error) {
      if (!isConflict(error) || attempt === maxTries) throw error;
      row = await table.get(keys.discovery(started.name));
    }
  }
}
