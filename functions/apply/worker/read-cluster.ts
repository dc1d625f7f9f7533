/** Reads what a worker needs in one pass: the rows of its cluster, and which of its Syncs are due. */

import { LRUCache } from "lru-cache";
import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { isRestOver } from "#functions/apply/worker/check-outcome.ts";
import { isSuspended, isWritten } from "#functions/apply/worker/work-sync.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { clusterLabels } from "#shared/fleet/rows/cluster-entry.ts";
import { type FreezeState, freezeOver, freezeStateAmong } from "#shared/fleet/rows/freezes-row.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import { isIdle, isWorkDue, mayBegin } from "#shared/fleet/rows/next-work.ts";
import { type ClusterRow, clusterIdentity, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { type Routine, routineOf } from "#shared/fleet/rows/routine.ts";
import { isNewer, keyText, type NewerRow, newerRowText, type RowKey } from "#shared/fleet/rows/row.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import { holdOf, isOfAnother, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { ownerKey } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";

export interface ClusterReading {
  /** Absent when the address is unknown. */
  readonly cluster: ClusterRow | undefined;
  readonly syncs: readonly SyncRow[];
  readonly routine: Routine;
  readonly due: readonly SyncRow[];
  /** Owners of the due Syncs, by `ownerKey`. */
  readonly owners: ReadonlyMap<string, OwnerRow>;
  /** The freezes when the rows were read; absent when they are not needed, or cannot be read. */
  readonly freezeState: FreezeState | undefined;
}

/** @param known.routine - the routine that the lease has. */
export async function readCluster(
  name: string,
  known: { readonly now: Date; readonly routine: Routine },
  ports: WorkerPorts,
): Promise<ClusterReading> {
  const rows = await rowsOf(name, ports.table);
  const cluster = rows.find((row) => row.type === "Cluster");
  const syncs = rows.filter((row) => row.type === "SyncOnCluster");
  const routine = routineOf(syncs, known.routine);
  const released = cluster !== undefined && (await isReleased(syncs, cluster, ports));
  const due = syncs.filter((row) => isDue(row, { now: known.now, cluster, released, routine }));
  const isWriting = cluster !== undefined && due.some((row) => isWritten(row, cluster, known.now));
  const { owners, unread, freezeState } = await readOwners(due, { isWriting, now: known.now }, ports.table);
  reportNewer(name, [...rows, ...unread].filter(isNewer), ports);
  const skipped = new Set(unread.map(keyText));
  const readable = due.filter(({ owner }) => !skipped.has(keyText(ownerRowKey(owner))));
  return { cluster, syncs, routine, due: readable, owners, freezeState };
}

async function rowsOf(cluster: string, table: Table) {
  const range = ranges.cluster(cluster);
  return Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
}

interface KnownOwners {
  readonly owners: ReadonlyMap<string, OwnerRow>;
  /** Owners whose suspension is unknown: nothing is done for their Syncs. */
  readonly unread: readonly NewerRow[];
  readonly freezeState: FreezeState | undefined;
}

/**
 * A suspend holds back what was queued before it. When a Sync writes at once, the owners and the freezes are read now,
 * because the first Sync that writes uses these rows. Checks may use known owners.
 */
async function readOwners(
  due: readonly SyncRow[],
  { isWriting, now }: { readonly isWriting: boolean; readonly now: Date },
  table: Table,
): Promise<KnownOwners> {
  const desired = new Map(due.map((row): [string, Owner] => [ownerKey(row.owner), row.owner]));
  const known = isWriting ? undefined : knownOwners(desired.keys(), now, table);
  if (known !== undefined) return { owners: known, unread: [], freezeState: undefined };
  const asked: readonly RowKey[] = [...desired.values()].map(ownerRowKey);
  const rows = await table.getMany(isWriting ? [...asked, keys.freezeState] : asked, { newer: "kept" });
  const reading = freezeStateAmong(rows);
  const found = rows.filter((row) => row.type === "Sync" || row.type === "SyncGroup");
  const byKey = found.map((row): [string, OwnerRow] => [
    ownerKey({ namespace: row.namespace, kind: row.type, name: row.name }),
    rowAt(row, now),
  ]);
  const unread = rows.filter(isNewer).filter((row) => keyText(row) !== keyText(keys.freezeState));
  const owners = new Map(byKey);
  rememberOwners(owners, now, table);
  return { owners, unread, freezeState: isWriting && reading.ok ? reading.freezeState : undefined };
}

function ownerRowKey({ namespace, kind, name }: Owner): RowKey {
  return keys.object(namespace, kind, name);
}

/** Rows of a newer version wait for the update of the stack; the others of the cluster continue. */
function reportNewer(cluster: string, newer: readonly NewerRow[], { log }: WorkerPorts): void {
  const [first, ...others] = newer;
  if (first === undefined) return;
  log.error(newerRowText(first, others.length), { code: "NewerRow", cluster, rows: newer.length });
}

/** Whether a freeze that holds Syncs of the cluster has ended: the worker has no other way to learn that. */
async function isReleased(syncs: readonly SyncRow[], cluster: ClusterRow, ports: WorkerPorts): Promise<boolean> {
  if (syncs.every((row) => holdOf(row) === undefined)) return false;
  const rows = await ports.table.getMany([keys.freezeState], { newer: "kept" });
  const reading = freezeStateAmong(rows);
  return reading.ok && freezeOver(reading.freezeState, clusterLabels(cluster), ports.clock.now()) === undefined;
}

interface DueContext {
  readonly now: Date;
  readonly cluster: ClusterRow | undefined;
  /** No freeze holds the cluster any more. */
  readonly released: boolean;
  readonly routine: Routine;
}

/** Observations of another cluster, and Syncs that a freeze has released, are checked at once. */
function isDue(row: SyncRow, { now, cluster, released, routine }: DueContext): boolean {
  if (released && holdOf(row) !== undefined) return true;
  const isOther =
    cluster !== undefined && row.desired.action !== "orphan" && isOfAnother(row, clusterIdentity(cluster));
  if (isOther && mayBegin(row, now)) return true;
  return isIdle(row) ? isRestOver(row, { now, routine }) : isWorkDue(row, now);
}

/** As long as the rows count within a turn that writes. */
const knownMs = 15_000;

/** A row may have 400 KB. */
const mostKnown = 50;

/** An owner that was not suspended when it was read. */
interface Known {
  readonly row: OwnerRow;
  readonly atMs: number;
}

/**
 * The clusters of a rollout are worked on one after the other, mostly for the same owner. A check may use the owner that
 * was read for the cluster before, since the gate reads it again before a write.
 */
const memories = new WeakMap<Table, LRUCache<string, Known>>();

function memoryOf(table: Table): LRUCache<string, Known> {
  const memory = memories.get(table) ?? new LRUCache<string, Known>({ max: mostKnown });
  memories.set(table, memory);
  return memory;
}

/** @param now - when the read began. */
function rememberOwners(owners: ReadonlyMap<string, OwnerRow>, now: Date, table: Table): void {
  const memory = memoryOf(table);
  for (const [key, row] of owners) {
    // A person who waits for a resume must not wait until this entry expires.
    if (isSuspended(row)) memory.delete(key);
    else memory.set(key, { row, atMs: now.getTime() });
  }
}

/** @returns undefined when one of them was suspended, or was not read lately. */
function knownOwners(keys: Iterable<string>, now: Date, table: Table): ReadonlyMap<string, OwnerRow> | undefined {
  const memory = memoryOf(table);
  const known = new Map<string, OwnerRow>();
  for (const key of keys) {
    const found = memory.get(key);
    if (found === undefined || now.getTime() - found.atMs >= knownMs) return undefined;
    known.set(key, found.row);
  }
  return known;
}
