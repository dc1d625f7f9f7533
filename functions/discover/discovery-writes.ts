import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { isConflict } from "#shared/base/errors.ts";
import { nextLook } from "#shared/fleet/discovery/next-look.ts";
import type { DiscoveryRow, DiscoveryStatus } from "#shared/fleet/rows/discovery-rows.ts";
import { due, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

/** Times that a status is written over what somebody else wrote meanwhile. */
const maxTries = 5;

/**
 * The row as it is while somebody looks: nobody else does, and it is due again when this function is dead.
 * @throws ConflictError when somebody wrote it first.
 */
export async function beginLook(
  row: DiscoveryRow,
  timeLeftMs: number,
  { table, ids, clock }: Pick<DiscoverPorts, "table" | "ids" | "clock">,
): Promise<DiscoveryRow> {
  const until = later(clock.now(), timeLeftMs / 1000);
  const status: DiscoveryStatus = { ...row.status, look: { id: ids.unique(), until } };
  const next = due({ ...row, status, version: row.version + 1 }, until);
  await table.write([{ put: next, when: { version: row.version } }]);
  return next;
}

/** Writes what came of the look, unless another one was begun since. A spec that is newer is looked at next. */
export async function endLook(
  started: DiscoveryRow,
  { settle, again }: { readonly settle: (row: DiscoveryRow) => DiscoveryStatus; readonly again: boolean },
  { table, clock }: Pick<DiscoverPorts, "table" | "clock">,
): Promise<void> {
  let row: DiscoveryRow | undefined = started;
  for (let attempt = 1; row !== undefined; attempt++) {
    if (row.uid !== started.uid || row.status.look?.id !== started.status.look?.id) return;
    const status = settle({ ...row, generation: started.generation });
    const next: DiscoveryRow = { ...row, status, version: row.version + 1 };
    const at = again ? watchdogAt(clock.now(), 0) : nextLook(next);
    try {
      return await table.write([{ put: due(next, at), when: { version: row.version } }]);
    } catch (error) {
      if (!isConflict(error) || attempt === maxTries) throw error;
      row = await table.get(keys.discovery(started.name));
    }
  }
}
