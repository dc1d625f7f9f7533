/** Turns the result of an operation on a Sync into rows and messages, and into lines of the log and metrics. */

import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { SyncOutcome } from "#functions/apply/worker/work-sync.ts";
import { beginningOf, currentCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { syncFields } from "#shared/fleet/log-fields.ts";
import { due, dueAtOf, hasCome, later } from "#shared/fleet/rows/due.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { isIdle, nextWork, timerOf } from "#shared/fleet/rows/next-work.ts";
import { isRoutineDue, type Routine } from "#shared/fleet/rows/routine.ts";
import type { Observed, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import { indexedState } from "#shared/fleet/sync/sync-state.ts";
import type { Message } from "#shared/messages.ts";
import type { Metrics, Write } from "#shared/ports.ts";

/** Seconds after which a lost delayed message is noticed. */
const watchdogSeconds = 30;

/** The timer is later when this check had to wait for a busy worker: the next one waits for as long again. */
const longestWatchdogSeconds = 300;

/**
 * An earlier timer that is set already stays, because moving it costs two writes to the index. The check has happened
 * by then.
 */
const soonestSeconds = 10;

/** Most Syncs are ready at the second check, so that progress is reported only when it takes longer. */
const triesWithoutReport = 1;

/** The writes that store the outcome of a check. */
export function writesOf(outcome: SyncOutcome): readonly Write[] {
  const { row, cluster } = outcome;
  const writes: Write[] = [{ put: nextRow(outcome), when: { version: row.version } }];
  if (cluster !== undefined) writes.push({ put: cluster.row, when: { version: cluster.version } });
  return writes;
}

export function nextRow(outcome: SyncOutcome): SyncRow {
  const { row, observed = row.observed, held } = outcome;
  const seen = withWorkerHalf(row, { observed, held, deaths: row.deaths });
  const next: SyncRow = { ...seen, version: row.version + 1, stateSk: stateIndex.sk(indexedState(seen), row) };
  const polled = held === undefined && row.paused === undefined ? outcome.observed : undefined;
  return due(next, polled?.nextAt === undefined ? timerOf(next) : watchdogOf(outcome, polled.nextAt), 0);
}

/**
 * How long a Sync had waited for its worker when the worker read its rows: since it was due, but no longer than the
 * message that woke the worker. A suspended or frozen Sync waited for no worker.
 * @param sentAt - absent when unknown, which counts as long ago.
 */
export function waitedSeconds(
  row: SyncRow,
  { begun, sentAt }: { readonly begun: Date; readonly sentAt?: Date },
): number {
  const dueAt = nextWork(row);
  if (dueAt === undefined) return 0;
  const since = Math.max(Date.parse(dueAt), sentAt?.getTime() ?? 0);
  return Math.max(0, (begun.getTime() - since) / 1000);
}

function watchdogOf({ row, observed, waitedSeconds: waited = 0 }: SyncOutcome, polled: string): string {
  const { dueKey } = row;
  const grace = observed?.phase === "Verifying" ? Math.min(waited, longestWatchdogSeconds) : 0;
  const latest = later(polled, Math.max(grace, watchdogSeconds));
  const set = dueKey === undefined ? latest : dueAtOf(dueKey);
  return set < latest && set >= later(polled, soonestSeconds) ? set : latest;
}

/** The messages that report a check. */
export function messagesOf({ row, observed, held }: SyncOutcome, now: Date): Message[] {
  if (observed === undefined) return [];
  const messages: Message[] = [];
  const before = row.observed;
  const changed =
    before?.attempt !== observed.attempt || before.phase !== observed.phase || before.reason !== observed.reason;
  const onTheWay = observed.phase === "Applying" || observed.phase === "Verifying";
  const slow = onTheWay && observed.tries === triesWithoutReport;
  // Somebody waits for the check itself, whatever its result.
  const answers = !onTheWay && observed.handledReconcile !== before?.handledReconcile;
  const counted = stateIndex.word(indexedState(row)) !== stateIndex.word(indexedState({ ...row, observed }));
  const reported = observed.drift?.at !== before?.drift?.at || observed.rebuilt?.at !== before?.rebuilt?.at;
  if (((changed || counted) && !onTheWay) || slow || answers || reported) {
    messages.push({
      to: "report",
      about: { kind: "Sync", cluster: row.cluster, namespace: row.namespace, name: row.name },
    });
  }
  const asked = lostRendering(row, observed);
  if (asked !== undefined) messages.push(asked);
  if (observed.nextAt !== undefined && held === undefined && row.paused === undefined) {
    const seconds = Math.ceil((new Date(observed.nextAt).getTime() - now.getTime()) / 1000);
    messages.push({ to: "apply", cluster: row.cluster, delaySeconds: Math.min(Math.max(seconds, 0), 900) });
  }
  return messages;
}

/** The rendering is requested at each check that does not find it, because a request may be lost, too. */
function lostRendering({ desired, namespace, owner }: SyncRow, { reason }: Observed): Message | undefined {
  const { input, source, revision, renderDigest } = desired;
  if (reason !== "RenderingLost" || input === undefined) return undefined;
  return {
    to: "render",
    input,
    notify: owner,
    ...(source === undefined ? {} : { source: { namespace, name: source, revision } }),
    ...defined({ lost: renderDigest }),
  };
}

/** Whether an idle Sync is checked: together with the others of its cluster, or because its own row was due. */
export function isRestOver(row: SyncRow, { now, routine }: { readonly now: Date; readonly routine: Routine }): boolean {
  return isRoutineDue(row, routine, now) || isWoken(row, now);
}

function isWoken(row: SyncRow, now: Date): boolean {
  return hasCome(timerOf(row), now) || (row.dispatches ?? 0) > 0;
}

/**
 * Whether a check of an idle Sync found nothing new, so that its row can stay. The routine of its cluster records the
 * check.
 * @param next - the row as it would be written.
 */
export function isQuietCheck({ row, observed, held, cluster }: SyncOutcome, next: SyncRow, now: Date): boolean {
  if (observed === undefined || row.observed === undefined || held !== undefined || cluster !== undefined) return false;
  if (!isIdle(row) || !isIdle(next) || row.deaths !== undefined || row.held !== undefined) return false;
  // An older version of Starling indexed a Sync with drift as ready.
  return row.stateSk === next.stateSk && hasItsTimer(row, now) && lasting(row.observed) === lasting(observed);
}

/** A timer that the row did not set itself, or whose time has come, would wake the cluster in vain. */
function hasItsTimer(row: SyncRow, now: Date): boolean {
  return row.dueKey === due(row, timerOf(row)).dueKey && !isWoken(row, now);
}

/** Fields that differ at each check. */
function lasting({ at: _at, inspectedAt: _inspectedAt, tries: _tries, fence: _fence, ...rest }: Observed): string {
  return canonicalJson(rest);
}

const bad: ReadonlySet<Phase> = new Set<Phase>(["Failed", "Retrying", "Unreachable"]);

/** An attempt in one of these phases has ended. */
const over: ReadonlySet<Phase> = new Set<Phase>(["Ready", "Failed", "Gone"]);

/** Reports a check of a Sync to the log and the metrics; reports nothing when the result is the same as before. */
export function reportOutcome({ row, observed }: SyncOutcome, { log, metrics }: WorkerPorts): void {
  if (observed === undefined) return;
  const before = row.observed?.attempt === observed.attempt ? row.observed : undefined;
  if (before?.phase !== observed.phase || before.reason !== observed.reason) {
    const { attempt, phase, reason, message: text, objects } = observed;
    const fields = { ...syncFields(row), attempt, phase, reason, text, ready: objects.ready, total: objects.total };
    if (bad.has(phase)) log.warn("sync reconciled", fields);
    else log.info("sync reconciled", fields);
  }
  measure(observed, before, metrics);
  const { drift } = observed;
  if (drift !== undefined && drift.objects > 0 && drift.at !== row.observed?.drift?.at) metrics.count("Drift", 1);
}

/** @param before - what was observed of the same attempt. */
function measure(observed: Observed, before: Observed | undefined, metrics: Metrics): void {
  const wasOver = before !== undefined && over.has(before.phase);
  if (over.has(observed.phase) && !wasOver) metrics.count("Applies", 1);
  if (observed.readyAt === undefined || observed.readyAt === before?.readyAt) return;
  const readyAt = Date.parse(observed.readyAt);
  metrics.seconds("ApplySeconds", secondsBetween(Date.parse(observed.startedAt), readyAt));
  const began = beginningOf(currentCorrelation() ?? "");
  if (began?.by === "push") metrics.seconds("PushToReady", secondsBetween(began.at.getTime(), readyAt));
}

/** Clocks differ, and one of them may only have seconds. */
function secondsBetween(fromMs: number, toMs: number): number {
  return Math.max(0, (toMs - fromMs) / 1000);
}
