/** What a worker goes by in one pass: the rows of its cluster, and which of its Syncs are due. */

import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { knownSubjects, rememberSubjects } from "#functions/apply/worker/known-subjects.ts";
import { isRestOver } from "#functions/apply/worker/quiet.ts";
import { isWritten } from "#functions/apply/worker/work-sync.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { type Brake, brakeAmong, freezeOver } from "#shared/fleet/rows/brake-row.ts";
import { labelsOf } from "#shared/fleet/rows/cluster-entry.ts";
import { hasCome } from "#shared/fleet/rows/due.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import { beginsAt, isAtRest, nextWork } from "#shared/fleet/rows/next-work.ts";
import { type ClusterRow, identityOf, type SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import { type Routine, routineOf } from "#shared/fleet/rows/routine.ts";
import { isNewer, keyText, type NewerRow, newerRowText, type RowKey } from "#shared/fleet/rows/row.ts";
import { heldBy, isOfAnother, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { subjectKey } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";

export interface ClusterReading {
  /** Absent where nobody knows how to reach it. */
  readonly cluster: ClusterRow | undefined;
  readonly syncs: readonly SyncRow[];
  readonly routine: Routine;
  readonly due: readonly SyncRow[];
  /** Of those that are due, by `subjectKey`. */
  readonly subjects: ReadonlyMap<string, SubjectRow>;
  /** As it was with these; absent where nobody needs it, or nobody can read it. */
  readonly brake: Brake | undefined;
}

/** @param known.routine - as the lease has it. */
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
  const { subjects, unread, brake } = await readSubjects(due, { isWriting, now: known.now }, ports.table);
  tellOfNewer(name, [...rows, ...unread].filter(isNewer), ports);
  const skipped = new Set(unread.map(keyText));
  const readable = due.filter(({ subject }) => !skipped.has(keyText(subjectRowKey(subject))));
  return { cluster, syncs, routine, due: readable, subjects, brake };
}

async function rowsOf(cluster: string, table: Table) {
  const range = ranges.cluster(cluster);
  return Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
}

interface KnownSubjects {
  readonly subjects: ReadonlyMap<string, SubjectRow>;
  /** Nobody knows whether these are suspended: nothing is done for them. */
  readonly unread: readonly NewerRow[];
  readonly brake: Brake | undefined;
}

/**
 * A suspend holds back what was queued before it: where somebody writes at once the subjects are read now, and the brake with
 * them, for the first one that does goes by these rows. Looks may know them.
 */
async function readSubjects(
  due: readonly SyncRow[],
  { isWriting, now }: { readonly isWriting: boolean; readonly now: Date },
  table: Table,
): Promise<KnownSubjects> {
  const wanted = new Map(due.map((row): [string, Subject] => [subjectKey(row.subject), row.subject]));
  const known = isWriting ? undefined : knownSubjects(wanted.keys(), now, table);
  if (known !== undefined) return { subjects: known, unread: [], brake: undefined };
  const asked: readonly RowKey[] = [...wanted.values()].map(subjectRowKey);
  const rows = await table.getMany(isWriting ? [...asked, keys.brake] : asked, { newer: "kept" });
  const reading = brakeAmong(rows);
  const found = rows.filter((row) => row.type === "Sync" || row.type === "SyncGroup");
  const byKey = found.map((row): [string, SubjectRow] => [
    subjectKey({ namespace: row.namespace, kind: row.type, name: row.name }),
    row,
  ]);
  const unread = rows.filter(isNewer).filter((row) => keyText(row) !== keyText(keys.brake));
  const subjects = new Map(byKey);
  rememberSubjects(subjects, now, table);
  return { subjects, unread, brake: isWriting && reading.ok ? reading.brake : undefined };
}

function subjectRowKey({ namespace, kind, name }: Subject): RowKey {
  return keys.object(namespace, kind, name);
}

/** What a newer version wrote waits for the stack to be updated; the others of the cluster go on. */
function tellOfNewer(cluster: string, newer: readonly NewerRow[], { log }: WorkerPorts): void {
  const [first, ...others] = newer;
  if (first === undefined) return;
  log.error(newerRowText(first, others.length), { code: "NewerRow", cluster, rows: newer.length });
}

/** Whether a freeze that holds Syncs of the cluster is over: whoever was told of that has no other way to know. */
async function isReleased(syncs: readonly SyncRow[], cluster: ClusterRow, ports: WorkerPorts): Promise<boolean> {
  if (syncs.every((row) => heldBy(row) === undefined)) return false;
  const rows = await ports.table.getMany([keys.brake], { newer: "kept" });
  const reading = brakeAmong(rows);
  return reading.ok && freezeOver(reading.brake, labelsOf(cluster), ports.clock.now()) === undefined;
}

interface DueContext {
  readonly now: Date;
  readonly cluster: ClusterRow | undefined;
  /** No freeze holds the cluster any more. */
  readonly released: boolean;
  readonly routine: Routine;
}

/** What was observed on another cluster is looked at again at once, and so is what a freeze has let go. */
function isDue(row: SyncRow, { now, cluster, released, routine }: DueContext): boolean {
  if (released && heldBy(row) !== undefined) return true;
  const isOther = cluster !== undefined && row.desired.action !== "orphan" && isOfAnother(row, identityOf(cluster));
  if (isOther && hasCome(beginsAt(row), now)) return true;
  return isAtRest(row) ? isRestOver(row, { now, routine }) : hasCome(nextWork(row), now);
}
