/** Works on one Sync after the other: each turn begins under the lease, and its result is written before the next. */

import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { HeldLease } from "#functions/apply/lease/held-lease.ts";
import type { Reading } from "#functions/apply/lease/write-gate.ts";
import {
  isQuietCheck,
  messagesOf,
  nextRow,
  reportOutcome,
  waitedSeconds,
  writesOf,
} from "#functions/apply/worker/check-outcome.ts";
import { checkTogether } from "#functions/apply/worker/check-together.ts";
import { commit, commitAndBegin } from "#functions/apply/worker/commit.ts";
import { endOfTurn, type PlannedTurns } from "#functions/apply/worker/plan-turns.ts";
import { unlessItYields, yieldingPorts } from "#functions/apply/worker/routine-yields.ts";
import { isSuspended, type SyncOutcome, workSync } from "#functions/apply/worker/work-sync.ts";
import { begunAt, type SyncTurn, survived } from "#functions/apply/worker/worker-deaths.ts";
import { defined } from "#shared/base/defined.ts";
import type { FreezeState } from "#shared/fleet/rows/freezes-row.ts";
import { isIdle } from "#shared/fleet/rows/next-work.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { isRoutineLate, type Routine } from "#shared/fleet/rows/routine.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Message } from "#shared/messages.ts";
import type { Write } from "#shared/ports.ts";

export interface TurnsTaken {
  /** Outcomes that are still to be written. */
  readonly pending: readonly Write[];
  /** The changed rows, as they are after the turn. */
  readonly rows: readonly SyncRow[];
  /** The reason why not every Sync had its turn. */
  readonly stopped?: "late" | "desired" | "slow";
  /** True when Syncs that were due with these are still to come. */
  readonly isMore: boolean;
}

interface Taking {
  readonly cluster: ClusterRow;
  readonly syncs: readonly SyncRow[];
  readonly lease: HeldLease;
  readonly deadline: Date;
  readonly ports: WorkerPorts;
  /** When the rows were read. */
  readonly begun: Date;
  /** When the worker's message was sent. */
  readonly sentAt?: Date;
  /** The state at that time, where it was read. */
  readonly freezeState: FreezeState | undefined;
  readonly routine: Routine;
  /** Filled turn by turn: a pass that fails half-way has written the rows that these messages are about. */
  readonly messages: Message[];
}

/** Milliseconds of work after which the written outcomes are reported before the rest, because people wait for them. */
const reportAfterMs = 5_000;

export const noTurns: TurnsTaken = { pending: [], rows: [], isMore: false };

export async function takeSyncTurns(plan: PlannedTurns, taking: Taking): Promise<TurnsTaken> {
  const { lease, ports, begun, messages, syncs } = taking;
  const { turns, isMore } = plan;
  let { cluster } = taking;
  let pending = plan.writes;
  const rows: SyncRow[] = [];
  const quiet: SyncOutcome[] = [];
  const portsOf = portsFor(turns, taking);
  let stopped: TurnsTaken["stopped"];
  let mayHoldOn = true;
  let reportedAt = begun;
  for (const [index, turn] of turns.entries()) {
    const yields: boolean = isIdle(turn.row) && !(mayHoldOn && isRoutineLate(turn.row, taking.routine, begun));
    stopped = await whyStopped({ yields }, taking);
    if (stopped !== undefined) break;
    const deadline = deadlineOf(turns.slice(index), taking);
    if (!isSuspended(turn.owner)) {
      await commitAndBegin(
        pending,
        { lease, isReported: plan.isReported, begun: begunAt(turn.row, plan) },
        ports.table,
      );
      pending = [];
      reportedAt = await reportWritten(messages, { reportedAt, ports });
    }
    const read = index === 0 && plan.writes.length === 0 ? readingOf(turn, taking) : undefined;
    const given = { cluster, syncs, lease, deadline, owner: turn.owner };
    const context = { ...given, ports: await portsOf(turn, { yields }) };
    const found = await unlessItYields(workSync(turn.row, { ...context, ...defined({ read }) }));
    lease.keptWaiting ||= found === "slow";
    if (found === "desired" || found === "slow") {
      stopped = found;
      break;
    }
    if (found === undefined) continue;
    // One message in each pass: messages that arrive meanwhile wait for no other.
    mayHoldOn &&= yields || !isIdle(turn.row);
    const outcome = {
      ...survived(found, ports.clock.now()),
      waitedSeconds: waitedSeconds(found.row, taking),
    };
    const next = nextRow(outcome);
    if (isQuietCheck(found, next, begun)) {
      quiet.push(outcome);
      continue;
    }
    await commit(pending, lease, ports.table);
    pending = writesOf(outcome);
    cluster = outcome.cluster?.row ?? cluster;
    rows.push(next);
    messages.push(...messagesOf(outcome, ports.clock.now()));
    reportOutcome(outcome, ports);
  }
  // Other Syncs are still to come: none has a second turn before them.
  const reported = stopped === undefined && !isMore ? [] : quiet;
  for (const outcome of reported) {
    await commit(pending, lease, ports.table);
    pending = writesOf(outcome);
  }
  return { pending, rows, isMore, ...(stopped === undefined ? {} : { stopped }) };
}

/**
 * Sends the messages, each about a row that is written. A message that cannot be sent stays for the end.
 * @returns when something was reported last.
 */
async function reportWritten(
  messages: Message[],
  { reportedAt, ports }: { readonly reportedAt: Date; readonly ports: WorkerPorts },
): Promise<Date> {
  const now = ports.clock.now();
  const reports = messages.filter(({ to }) => to === "report");
  if (reports.length === 0 || now.getTime() - reportedAt.getTime() < reportAfterMs) return reportedAt;
  await ports.sender.send(reports);
  const others = messages.filter(({ to }) => to !== "report");
  messages.splice(0, messages.length, ...others);
  return now;
}

/** The rows that would show a suspend, a freeze or another assignment, as read when the turns were planned. */
function readingOf({ row, owner }: SyncTurn, { cluster, freezeState, begun }: Taking): Reading | undefined {
  return freezeState === undefined ? undefined : { standing: { row, owner, cluster, freezeState }, at: begun };
}

interface Manners {
  /** Yields to work that arrives meanwhile. */
  readonly yields: boolean;
}

/** Work that arrives meanwhile does not wait for the routine: the run reads again before it releases the lease. */
async function whyStopped({ yields }: Manners, { deadline, lease, ports }: Taking): Promise<TurnsTaken["stopped"]> {
  if (ports.clock.now() >= deadline) return "late";
  return yields && (await lease.isRequested()) ? "desired" : undefined;
}

/** Suspended Syncs need almost no time. */
function deadlineOf([turn, ...behind]: readonly SyncTurn[], { deadline, ports }: Taking): Date {
  if (turn === undefined) return deadline;
  const waiting = 1 + behind.filter(({ owner }) => !isSuspended(owner)).length;
  return endOfTurn(turn.row, { now: ports.clock.now(), deadline, waiting });
}

/** Idle Syncs are checked together, from the first of them on, and yield to the others. */
function portsFor(turns: readonly SyncTurn[], { lease, ports }: Taking) {
  const resting = turns.flatMap(({ row }) => (isIdle(row) ? [row] : []));
  let together: Promise<WorkerPorts> | undefined;
  return async ({ row }: SyncTurn, { yields }: Manners): Promise<WorkerPorts> => {
    if (!isIdle(row)) return ports;
    together ??= checkTogether(resting, ports);
    // This port is outermost, so that a Sync's lists show what was written for it, whichever client wrote.
    return yields ? yieldingPorts(lease, await together) : together;
  };
}
