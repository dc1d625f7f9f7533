import { later } from "#shared/fleet/rows/due.ts";
import { isIdle } from "#shared/fleet/rows/next-work.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { needsWholeObjects } from "#shared/kube/engine/check-health.ts";
import type { DriftReport } from "#shared/kube/engine/detect-drift.ts";
import { entriesById, type Inventory, type InventoryEntry } from "#shared/kube/inventory.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";

/** An apply sends two more requests for each object that moved since it was recorded. */
const recordedAnewSeconds = 86_400;

/**
 * Whether an inspection found something that the inventory has to record. A changed resourceVersion of an object that
 * every inspection reads whole saves no request. So where a controller writes status all the time, the version is
 * recorded once a day and not at each inspection; the same holds for the versions that workloads have when they become
 * ready. For objects that are read by their metadata, the recorded version saves the next inspection a LIST.
 */
export function isWorthStoring(
  row: SyncRow,
  found: { readonly before: Inventory; readonly report: DriftReport },
  now: Date,
): boolean {
  const { inventory } = row.observed ?? {};
  const recordedAt = isIdle(row) ? row.observed?.inspectedAt : verifiedSince(row);
  if (inventory === undefined || recordedAt === undefined) return true;
  if (later(recordedAt, recordedAnewSeconds) <= now.toISOString()) return true;
  const { before, report } = found;
  const known = entriesById(before);
  const moved = report.moved.every((entry) => hasOnlyMoved(entry, known.get(objectIdKey(entry.id))));
  return before.progress !== undefined || !moved || !isSame(before.definitions, report.definitions);
}

/** Objects that were waited for were recorded when they were applied, and their status moves with each Pod. */
function verifiedSince({ desired, observed }: SyncRow): string | undefined {
  const isApplied = observed?.phase === "Verifying" && observed.applied?.attempt === desired.attempt;
  return isApplied ? observed.applied?.at : undefined;
}

function hasOnlyMoved(entry: InventoryEntry, before: InventoryEntry | undefined): boolean {
  if (before === undefined || before.undone !== undefined || !needsWholeObjects(entry.id)) return false;
  return entry.generation === before.generation;
}

function isSame(before: Inventory["definitions"], found: Inventory["definitions"]): boolean {
  const names = Object.keys(found);
  return names.length === Object.keys(before).length && names.every((name) => found[name] === before[name]);
}
