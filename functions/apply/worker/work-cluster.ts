/**
 * A cluster's worker: takes the lease, reads everything about the cluster in one query, works through the Syncs that
 * are due, writes what it saw, and lets go. It never waits: what is not ready is looked at again by a delayed message
 * or the tick.
 */

import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { HeldLease, leaseEnd } from "#functions/apply/lease/held-lease.ts";
import { abandonLease, acquireLease, tellFailure } from "#functions/apply/lease/lease.ts";
import { commit, commitAndBegin, commitAndRelease } from "#functions/apply/worker/commit.ts";
import { messagesOf, nextRow, writesOf } from "#functions/apply/worker/look-outcome.ts";
import { lookTogether } from "#functions/apply/worker/look-together.ts";
import { isQuiet, isRestOver } from "#functions/apply/worker/quiet.ts";
import { endOfTurn, inTurn } from "#functions/apply/worker/turns.ts";
import { isSuspended, type SyncOutcome, workSync } from "#functions/apply/worker/work-sync.ts";
import {
  type Apart,
  begunAt,
  deathAmong,
  isUnsure,
  survived,
  takenApart,
} from "#functions/apply/worker/worker-deaths.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { brakeAmong, freezeOver } from "#shared/fleet/rows/brake-row.ts";
import { hasCome } from "#shared/fleet/rows/due.ts";
import { keys, ranges, type Subject } from "#shared/fleet/rows/keys.ts";
import { beginsAt, isAtRest, nextWork } from "#shared/fleet/rows/next-work.ts";
import { type ClusterRow, identityOf, type SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import { type Routine, routineAfter, routineOf } from "#shared/fleet/rows/routine.ts";
import { isNewer, keyText, type NewerRow, newerRowText, type RowKey } from "#shared/fleet/rows/row.ts";
import { heldBy, isOfAnother, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type Message, subjectKey } from "#shared/messages.ts";
import type { Table, Write } from "#shared/ports.ts";

/** Kept back at the end of an invocation for the last writes. */
const reserveMs = 10_000;
const maxPasses = 10;

/** @param budget.remainingMs - what is left of the invocation. */
export async function workCluster(
  cluster: string,
  budget: { readonly remainingMs: number },
  ports: WorkerPorts,
): Promise<void> {
  const started = ports.clock.now();
  const until = new Date(started.getTime() + budget.remainingMs);
  const deadline = new Date(until.getTime() - Math.min(reserveMs, budget.remainingMs / 2));
  const wish = { owner: ports.ids.unique(), now: started, until: leaseEnd(started, until) };
  const given = await acquireLease(cluster, wish, ports.table);
  if (given === undefined) return;
  const lease = new HeldLease(given, until, ports);
  const messages: Message[] = [];
  try {
    for (let pass = 1; pass === 1 || (await lease.again()); pass++) {
      const done = await onePass(cluster, { lease, deadline, ports, messages, isFirst: pass === 1 });
      const last = done.released || pass === maxPasses || ports.clock.now() >= deadline;
      if (last && !done.released) await abandonLease(lease.lease, lease.routine, ports.table);
      if (last && (!done.released || done.unfinished)) messages.push({ to: "apply", cluster });
      if (last) break;
    }
  } catch (error) {
    // Where the table is what failed, whoever comes next is careful for nothing.
    await tellFailure(lease.lease, ports.table).catch(() => {});
    throw error;
  } finally {
    lease.stop();
    // Also of a pass that failed half way: what it wrote by then would not be told by the next one.
    await ports.sender.send(distinct(messages));
  }
}

interface Pass {
  readonly lease: HeldLease;
  readonly deadline: Date;
  readonly ports: WorkerPorts;
  /** To be sent in the end. Those about a row that was not written after all are harmless: who gets one reads the row. */
  readonly messages: Message[];
  /** Nothing was begun before it in this invocation. */
  readonly isFirst: boolean;
}

interface PassResult {
  /** False when somebody wanted the lease meanwhile: look again. */
  readonly released: boolean;
  /** True when not all that is due had its turn. */
  readonly unfinished: boolean;
}

async function onePass(cluster: string, pass: Pass): Promise<PassResult> {
  const { ports, lease, messages } = pass;
  const begun = ports.clock.now();
  const rows = await readCluster(cluster, ports.table);
  const meta = rows.find((row) => row.type === "Cluster");
  const syncs = rows.filter((row) => row.type === "SyncOnCluster");
  const routine = routineOf(syncs, lease.routine);
  const released = meta !== undefined && (await isReleased(syncs, meta, ports));
  const due = syncs.filter((row) => isDue(row, { now: begun, cluster: meta, released, routine }));
  const { subjects, unread } = await readSubjects(due, ports.table);
  tellOfNewer(cluster, [...rows, ...unread].filter(isNewer), ports);
  const skipped = new Set(unread.map(keyText));
  const readable = due.filter(({ subject }) => !skipped.has(keyText(subjectRowKey(subject))));
  const { turns, alone, isMore, isTold, ...planned } = planTurns(readable, {
    ...pass,
    cluster: meta,
    subjects,
    routine,
  });
  let pending = planned.writes;
  let known = meta;
  let unfinished = isMore;
  const seen = new Map(syncs.map((row) => [row.sk, row]));
  const quiet: SyncOutcome[] = [];
  const resting = turns.flatMap(({ row }) => (isAtRest(row) ? [row] : []));
  let together: WorkerPorts | undefined;
  let isWhole = !isMore;
  for (const [index, { row, subject }] of turns.entries()) {
    const now = ports.clock.now();
    const isLate = known !== undefined && now >= pass.deadline;
    unfinished ||= isLate;
    // What came meanwhile does not wait for the routine: the run looks again before it lets go.
    const isPutOff = isAtRest(row) && lease.isWanted;
    isWhole &&= !isLate && !isPutOff;
    if (known === undefined || isLate || isPutOff) break;
    // Those that are suspended need next to no time.
    const behind = turns.slice(index + 1).filter((other) => !isSuspended(other.subject));
    const deadline = endOfTurn(row, { now, deadline: pass.deadline, waiting: 1 + behind.length });
    if (!isSuspended(subject)) {
      await commitAndBegin(pending, { lease, isTold, begun: begunAt(row, { alone, isTold }) }, ports.table);
      pending = [];
    }
    if (isAtRest(row)) together ??= await lookTogether(resting, ports);
    const its = isAtRest(row) ? (together ?? ports) : ports;
    const found = await workSync(row, { ...pass, cluster: known, subject, deadline, ports: its });
    if (found === undefined) continue;
    const outcome = survived(found, ports.clock.now());
    const next = nextRow(outcome);
    if (isQuiet(found, next, begun)) {
      quiet.push(outcome);
      continue;
    }
    await commit(pending, lease, ports.table);
    pending = writesOf(outcome);
    seen.set(next.sk, next);
    known = outcome.cluster?.row ?? known;
    messages.push(...messagesOf(outcome, ports.clock.now()));
  }
  // The others are yet to come: who had a turn is not to have another one before them.
  const told = isWhole ? [] : quiet;
  for (const outcome of told) {
    await commit(pending, lease, ports.table);
    pending = writesOf(outcome);
  }
  const looked = isWhole ? routineAfter(cluster, routine, begun) : routine;
  lease.routine = routineOf([...seen.values()], looked);
  return { released: await commitAndRelease(pending, lease, ports.table), unfinished };
}

interface PlannedTurns extends Apart {
  /** What a worker left behind that died. */
  readonly writes: readonly Write[];
  /** Each that is begun is noted, whether or not there is something to write. */
  readonly isTold: boolean;
}

function planTurns(
  due: readonly SyncRow[],
  pass: Pass & {
    readonly cluster: ClusterRow | undefined;
    readonly subjects: KnownSubjects["subjects"];
    readonly routine: Routine;
  },
): PlannedTurns {
  const { cluster, lease, ports, messages, isFirst, routine } = pass;
  if (cluster === undefined) return { turns: [], alone: false, isMore: false, isTold: false, writes: [] };
  const now = ports.clock.now();
  const turnsOf = (rows: readonly SyncRow[]) =>
    inTurn(rows, { now, routine }).map((row) => ({ row, subject: pass.subjects.get(subjectKey(row.subject)) }));
  const turns = turnsOf(due);
  const careful = isFirst && isUnsure(turns, lease.lease);
  const found = isFirst && !careful ? deathAmong(turns, lease.lease, { now, cluster }) : undefined;
  if (found === undefined) {
    const apart = takenApart(turns, { now, isFirst });
    return { ...apart, isTold: apart.alone || careful, writes: [] };
  }
  const { cluster: on, name: sync, deaths, sk } = found.row;
  ports.log.error("a worker died", { code: "WorkerDied", cluster: on, sync, deaths });
  messages.push(...messagesOf(found, now).filter(({ to }) => to === "report"));
  const next = nextRow(found);
  const rest = due.filter((row) => row.sk !== sk);
  const left = turnsOf(found.observed === undefined ? [...rest, next] : rest);
  const apart = takenApart(left, { now, isFirst });
  return { ...apart, isTold: apart.alone, writes: writesOf(found) };
}

async function readCluster(cluster: string, table: Table) {
  const range = ranges.cluster(cluster);
  return Array.fromAsync(allItems((start) => table.query({ ...range, newer: "kept", ...start })));
}

/** A suspend holds back what was queued before it: the subjects are read now, not when the message was sent. */
async function readSubjects(due: readonly SyncRow[], table: Table): Promise<KnownSubjects> {
  const wanted = new Map(due.map((row): [string, Subject] => [subjectKey(row.subject), row.subject]));
  if (wanted.size === 0) return { subjects: new Map(), unread: [] };
  const rows = await table.getMany([...wanted.values()].map(subjectRowKey), { newer: "kept" });
  const found = rows.filter((row) => row.type === "Sync" || row.type === "SyncGroup");
  const byKey = found.map((row): [string, SubjectRow] => [
    subjectKey({ namespace: row.namespace, kind: row.type, name: row.name }),
    row,
  ]);
  return { subjects: new Map(byKey), unread: rows.filter(isNewer) };
}

interface KnownSubjects {
  readonly subjects: ReadonlyMap<string, SubjectRow>;
  /** Nobody knows whether these are suspended: nothing is done for them. */
  readonly unread: readonly NewerRow[];
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
  return reading.ok && freezeOver(reading.brake, cluster.labels, ports.clock.now()) === undefined;
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

/** One delayed message per cluster and delay is enough. */
function distinct(messages: readonly Message[]): Message[] {
  return [...new Map(messages.map((message) => [JSON.stringify(message), message])).values()];
}
