/** Plans the turns of a pass, their order and length, and what to write about a worker that died there: no I/O. */

import type { HeldLease } from "#functions/apply/lease/held-lease.ts";
import { messagesOf, nextRow, writesOf } from "#functions/apply/worker/check-outcome.ts";
import type { ClusterReading } from "#functions/apply/worker/read-cluster.ts";
import { type Apart, deathAmong, isUnsure, takenApart } from "#functions/apply/worker/worker-deaths.ts";
import { syncFields } from "#shared/fleet/log-fields.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { isIdle, nextWork } from "#shared/fleet/rows/next-work.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { type Routine, routineAt } from "#shared/fleet/rows/routine.ts";
import { deathsAt, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { outOfTime } from "#shared/kube/engine/own-deadline.ts";
import { type Message, ownerKey } from "#shared/messages.ts";
import type { Log, Write } from "#shared/ports.ts";

export interface PlannedTurns extends Apart {
  /** Writes that record the death of a worker; empty when none died. */
  readonly writes: readonly Write[];
  /** True when each turn is noted, even without anything to write. */
  readonly isReported: boolean;
}

interface Planning {
  readonly cluster: ClusterRow;
  readonly lease: HeldLease;
  /** True for the first turn of the invocation. */
  readonly isFirst: boolean;
  readonly now: Date;
  readonly log: Log;
  readonly messages: Message[];
}

export function planTurns({ due, owners, routine }: ClusterReading, planning: Planning): PlannedTurns {
  const { cluster, lease, isFirst, now, log, messages } = planning;
  const turnsOf = (rows: readonly SyncRow[]) =>
    inTurn(rows, { now, routine }).map((row) => ({ row, owner: owners.get(ownerKey(row.owner)) }));
  const turns = turnsOf(due);
  const careful = isFirst && isUnsure(turns, lease.lease);
  const found = isFirst && !careful ? deathAmong(turns, lease.lease, { now, cluster }) : undefined;
  if (found === undefined) {
    const apart = takenApart(turns, { now, isFirst });
    return { ...apart, isReported: apart.alone || careful, writes: [] };
  }
  const { deaths, sk } = found.row;
  log.error("a worker died", { code: "WorkerDied", ...syncFields(found.row), deaths });
  messages.push(...messagesOf(found, now).filter(({ to }) => to === "report"));
  const rest = due.filter((row) => row.sk !== sk);
  const left = turnsOf(found.observed === undefined ? [...rest, nextRow(found)] : rest);
  const apart = takenApart(left, { now, isFirst });
  return { ...apart, isReported: apart.alone, writes: writesOf(found) };
}

/** A Sync at which a worker died must wait this many seconds longer before it comes first. */
const suspectSeconds = 300;

/** A shorter turn only suffices to ask a slow cluster for its identity. */
const shortestTurnMs = 20_000;

const mostDoublings = 6;

/** Sorts after every time. */
const afterAll = "~";

/**
 * Sorts new assignments first, each for one turn; then the longest waiting. No Sync can keep another from its turn: a
 * waiting Sync comes to the front in the end, and a Sync that had its turn goes to the back. A Sync at which a worker
 * died comes after all that were due by then, and gives later ones the same lead. Among Syncs that were assigned
 * together, one that was never observed comes last: the others were applied before, and its effect on a worker is
 * unknown. Equal Syncs are sorted by name, so that every worker takes the same order.
 */
export function inTurn(
  due: readonly SyncRow[],
  clock: { readonly now: Date; readonly routine: Routine },
): readonly SyncRow[] {
  const placed = due.map((row) => ({
    row,
    place: [...placeOf(row, clock), row.observed?.at ?? afterAll, nameOf(row)].join(" "),
  }));
  return placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ row }) => row);
}

function placeOf(
  row: SyncRow,
  { now, routine }: { readonly now: Date; readonly routine: Routine },
): readonly [rank: string, since: string] {
  const since = waitingSince(row, routine);
  const deaths = deathsAt(row, now);
  if (deaths !== undefined) return ["later", later(since > deaths.at ? since : deaths.at, suspectSeconds)];
  return [isNew(row) ? "first" : "later", since];
}

function waitingSince(row: SyncRow, routine: Routine): string {
  const { desired, observed } = row;
  if (observed === undefined || isNew(row)) return desired.assignedAt;
  return (isIdle(row) ? routineAt(row, routine) : nextWork(row)) ?? observed.at;
}

/** A paused Sync is not begun. */
function isNew({ desired, observed, paused }: SyncRow): boolean {
  return paused === undefined && observed?.attempt !== desired.attempt;
}

function nameOf({ namespace, name }: SyncRow): string {
  return `${namespace}/${name}`;
}

/**
 * End of a Sync's turn: it has its share of the remaining run, and all of it when no other Sync waits. A Sync whose
 * last turns were too short gets longer ones, up to the whole run; the others come before it in the next run.
 * @param run.waiting - number of Syncs that still have their turn in this run, this one included.
 */
export function endOfTurn(
  row: SyncRow,
  run: { readonly now: Date; readonly deadline: Date; readonly waiting: number },
): Date {
  const now = run.now.getTime();
  const { desired, observed } = row;
  const wasShort = observed?.attempt === desired.attempt && observed.reason === outOfTime.reason;
  const doublings = wasShort ? Math.min(observed.tries + 1, mostDoublings) : 0;
  const shareMs = Math.max((run.deadline.getTime() - now) / run.waiting, shortestTurnMs * 2 ** doublings);
  return new Date(Math.min(now + shareMs, run.deadline.getTime()));
}
