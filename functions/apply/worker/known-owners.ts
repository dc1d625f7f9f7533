/**
 * Subjects that were not suspended a moment ago. The clusters of a rollout are looked at one after the other, and most of
 * them are about the same subject: a look may go by what was read for the one before, since it asks again before it writes.
 */
import { LRUCache } from "lru-cache";
import { isSuspended } from "#functions/apply/worker/work-sync.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { Table } from "#shared/ports.ts";

/** As long as within a turn that writes. */
const knownMs = 15_000;
/** A row may have 400 KB. */
const mostKnown = 50;

interface Known {
  readonly row: OwnerRow;
  readonly atMs: number;
}

const memories = new WeakMap<Table, LRUCache<string, Known>>();

function memoryOf(table: Table): LRUCache<string, Known> {
  const memory = memories.get(table) ?? new LRUCache<string, Known>({ max: mostKnown });
  memories.set(table, memory);
  return memory;
}

/** @param now - when their reading was begun. */
export function rememberOwners(owners: ReadonlyMap<string, OwnerRow>, now: Date, table: Table): void {
  const memory = memoryOf(table);
  for (const [key, row] of owners) {
    // Who waits for a resume is not to wait for this to be over.
    if (isSuspended(row)) memory.delete(key);
    else memory.set(key, { row, atMs: now.getTime() });
  }
}

/** @returns undefined where one of them was suspended, or was not read lately. */
export function knownOwners(
  keys: Iterable<string>,
  now: Date,
  table: Table,
): ReadonlyMap<string, OwnerRow> | undefined {
  const memory = memoryOf(table);
  const known = new Map<string, OwnerRow>();
  for (const key of keys) {
    const found = memory.get(key);
    if (found === undefined || now.getTime() - found.atMs >= knownMs) return undefined;
    known.set(key, found.row);
  }
  return known;
}
