import type { StarlingError } from "#shared/base/errors.ts";
import type { ClusterRow, Condition } from "#shared/fleet/rows/object-rows.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Write } from "#shared/ports.ts";

/**
 * The same writes without anything that can be left out. A row that cannot take the observation would otherwise never
 * change again, and its Sync would stop.
 */
export function trimmedObservation(writes: readonly Write[], { message }: StarlingError): readonly Write[] {
  return writes.map((write): Write => {
    if (!("put" in write)) return write;
    if (isOfType(write.put, "SyncOnCluster")) return { ...write, put: smallerSync(write.put, message) };
    return isOfType(write.put, "Cluster") ? { ...write, put: smallerCluster(write.put) } : write;
  });
}

function smallerSync(row: SyncRow, why: string): SyncRow {
  if (row.observed === undefined) return row;
  const { warnings: _warnings, leftAlone: _leftAlone, ...observed } = row.observed;
  const conditions = observed.conditions.map(withoutMessage);
  return {
    ...row,
    observed: { ...observed, message: `only the outcome is recorded: ${why}`, problems: [], conditions },
  };
}

function smallerCluster(row: ClusterRow): ClusterRow {
  return { ...row, status: { ...row.status, conditions: row.status.conditions.map(withoutMessage) } };
}

function withoutMessage(condition: Condition): Condition {
  return { ...condition, message: "" };
}
