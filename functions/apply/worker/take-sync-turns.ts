/** One turn after the other: each look is begun under the lease, and what it found is written before the next. */

import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { HeldLease } from "#functions/apply/lease/held-lease.ts";
import type { Reading } from "#functions/apply/lease/write-gate.ts";
import { messagesOf, nextRow, waitedSeconds, writesOf } from "#functions/apply/worker/check-outcome.ts";
import { checkTogether } from "#functions/apply/worker/check-together.ts";
import { commit, commitAndBegin } from "#functions/apply/worker/commit.ts";
import { endOfTurn } from "#functions/apply/worker/in-turn.ts";
import type { PlannedTurns } from "#functions/apply/worker/plan-turns.ts";
import { isQuietCheck } from "#functions/apply/worker/quiet-check.ts";
import { tellOutcome } from "#functions/apply/worker/report-outcome.ts";
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
  /** To be written yet. */
  readonly pending: readonly Write[];
  /** As they are then, of those that are other than they were. */
  readonly rows: readonly SyncRow[];
  /** Why not all of them had their turn. */
  readonly stopped?: "late" | "desired" | "slow";
  /** Those that were due with these are yet to come. */
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
  /** As it was then, where that was asked. */
  readonly freezeState: FreezeState | undefined;
  readonly routine: Routine;
  /** Filled as it goes: a pass that fails half way has written what they are about. */
  readonly messages: Message[];
}

/** Whoever works this long on one cluster is waited for: what is written already is told before the rest. */
const tellAfterMs = 5_000;

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
    // One in each pass: what comes meanwhile waits for no other.
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
    tellOutcome(outcome, ports);
  }
  // Others are yet to come: who had a turn is not to have another one before them.
  const told = stopped === undefined && !isMore ? [] : quiet;
  for (const outcome of told) {
    await commit(pending, lease, ports.table);
    pending = writesOf(outcome);
  }
  return { pending, rows, isMore, ...(stopped === undefined ? {} : { stopped }) };
}

/**
 * Each message is about a row that is written by now. One that cannot be sent stays for the end.
 * @returns when something was told of last.
 */
async function reportWritten(
  messages: Message[],
  { reportedAt, ports }: { readonly reportedAt: Date; readonly ports: WorkerPorts },
): Promise<Date> {
  const now = ports.clock.now();
  const reports = messages.filter(({ to }) => to === "report");
  if (reports.length === 0 || now.getTime() - reportedAt.getTime() < tellAfterMs) return reportedAt;
  await ports.sender.send(reports);
  const others = messages.filter(({ to }) => to !== "report");
  messages.splice(0, messages.length, ...others);
  return now;
}

/** What a suspend, a freeze or another assignment would show by, as it was when the turns were planned. */
function readingOf({ row, owner }: SyncTurn, { cluster, freezeState, begun }: Taking): Reading | undefined {
  return freezeState === undefined ? undefined : { standing: { row, owner, cluster, freezeState }, at: begun };
}

interface Manners {
  /** To what comes meanwhile. */
  readonly yields: boolean;
}

/** What came meanwhile does not wait for the routine: the run looks again before it lets go. */
async function whyStopped({ yields }: Manners, { deadline, lease, ports }: Taking): Promise<TurnsTaken["stopped"]> {
  if (ports.clock.now() >= deadline) return "late";
  return yields && (await lease.isWanted()) ? "desired" : undefined;
}

/** Those that are suspended need next to no time. */
function deadlineOf([turn, ...behind]: readonly SyncTurn[], { deadline, ports }: Taking): Date {
  if (turn === undefined) return deadline;
  const waiting = 1 + behind.filter(({ owner }) => !isSuspended(owner)).length;
  return endOfTurn(turn.row, { now: ports.clock.now(), deadline, waiting });
}

/** What is at rest is looked at together, from the first of them on, and gives way to what is not. */
function portsFor(turns: readonly SyncTurn[], { lease, ports }: Taking) {
  const resting = turns.flatMap(({ row }) => (isIdle(row) ? [row] : []));
  let together: Promise<WorkerPorts> | undefined;
  return async ({ row }: SyncTurn, { yields }: Manners): Promise<WorkerPorts> => {
    if (!isIdle(row)) return ports;
    together ??= checkTogether(resting, ports);
    // Outermost, so that whoever lists for a Sync knows what was written for it, whichever client did.
    return yields ? yieldingPorts(lease, await together) : together;
  };
}
