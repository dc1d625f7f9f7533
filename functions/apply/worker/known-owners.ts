/**
 * Owners that were not suspended a moment ago. The clusters of a rollout are worked on one after the other, mostly for
 * the same owner. A check may use the owner that was read for the cluster before, since the gate reads it again before
 * a write.
 */
import { LRUCache } from "lru-cache";
import { isSuspended } from "#functions/apply/worker/work-sync.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { Table } from "#shared/ports.ts";

/** As long as the rows count within a turn that writes. */
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

/** @param now - when the read began. */
export function rememberOwners(owners: ReadonlyMap<string, OwnerRow>, now: Date, table: Table): void {
  const memory = memoryOf(table);
  for (const [key, row] of owners) {
    // A person who waits for a resume must not wait until this entry expires.
    if (isSuspended(row)) memory.delete(key);
    else memory.set(key, { row, atMs: now.getTime() });
  }
}

/** @returns undefined when one of them was suspended, or was not read lately. */
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
