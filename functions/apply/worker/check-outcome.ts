/** Turns the result of an operation on a Sync into rows and messages. */

import type { SyncOutcome } from "#functions/apply/worker/work-sync.ts";
import { defined } from "#shared/base/defined.ts";
import { due, dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { nextWork, timerOf } from "#shared/fleet/rows/next-work.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { withWorkerHalf } from "#shared/fleet/rows/worker-half.ts";
import { indexedState } from "#shared/fleet/sync/sync-state.ts";
import type { Message } from "#shared/messages.ts";
import type { Write } from "#shared/ports.ts";

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
