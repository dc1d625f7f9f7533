import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { type ByState, clustersByState, type SeenInCheck } from "#functions/rollout/read/clusters-by-state.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readClusters } from "#functions/rollout/read/read-clusters.ts";
import { forgetTemplates, mayForget } from "#functions/rollout/steps/idle/forget-templates.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { advanceAll } from "#shared/fleet/rollout/advance.ts";
import { isCheckedAfterBake } from "#shared/fleet/rollout/bake.ts";
import { describeRevisions, identityNow } from "#shared/fleet/rollout/desired-plan.ts";
import { type Known, lagSeconds } from "#shared/fleet/rollout/facts.ts";
import { stoppedCatchUps } from "#shared/fleet/rollout/holding.ts";
import { reasonOf } from "#shared/fleet/rollout/judge.ts";
import { withDesired } from "#shared/fleet/rollout/ledger.ts";
import { newestPlanned } from "#shared/fleet/rollout/order.ts";
import type { Behind, StatusFacts } from "#shared/fleet/rollout/owner-status.ts";
import { changingOf, membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { lastStageRunOf, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { activityOf, earliestOf, timersOf, watchdogOf } from "#shared/fleet/rollout/timers.ts";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { clusterCounts, phaseTallies } from "#shared/fleet/sync/tally.ts";

/**
 * Nothing more is to be decided for now: the status shows what is seen, and the rollout state waits for its next check.
 * A check that found nothing new writes nothing.
 * @returns a further decision, when something is found that should not exist.
 */
export async function goIdle(
  known: Known,
  { round, states }: Pick<CallWork, "round" | "states">,
  ports: PlannerPorts,
): Promise<Transaction | "done"> {
  const now = ports.clock.now();
  const transaction = new Transaction(known, now);
  noteDesired(transaction);
  if (round.all) setDeadline(transaction, round.deadline);
  const activity = activityOf(known);
  const isChecking = stageRunsIn(known.rolloutState, known.stageRuns).some(isCheckedAfterBake);
  const counted =
    activity === "moving" || isChecking
      ? undefined
      : await settledCounts(known, { all: round.all, states, now }, ports);
  const settled = counted?.settled;
  if (counted?.isBehind === true && settled !== undefined) noteSeen(transaction, settled);
  const seen =
    counted === undefined
      ? {}
      : { settled: counted.settled, behind: counted.behind, stopped: stoppedCatchUps(transaction) };
  if (settled !== undefined && !hasJustSettled(known, now) && mayForget(transaction, settled)) {
    const anew = await forgetTemplates(transaction, ports);
    if (anew !== undefined) return anew;
  }
  const { rolloutState } = transaction;
  const isNews = counted?.isNews === true || hasJustSettled(known, now);
  const isSeen = rolloutState.checking === undefined && (isChecking || settled?.changing === 0) && !isNews;
  const next = { ...known, rolloutState };
  const timers = timersOf(next, advanceAll(next, round).values(), now);
  const isSettled = isSeen || rolloutState.last === 0;
  const watchdog = watchdogOf({ activity, isSettled, pk: rolloutState.pk }, now);
  const isSame =
    rolloutState === known.rolloutState &&
    rolloutState.pendingReports === undefined &&
    "check" in transaction.status(seen);
  if (isSame && isOnTime(transaction, { nearest: earliestOf(timers), isIdle: activity === "idle" })) return "done";
  await transaction.commit(ports.table, { ...seen, until: earliestOf([...timers, watchdog]) });
  return "done";
}

interface Times {
  /** The nearest timer. */
  readonly nearest: string | undefined;
  readonly isIdle: boolean;
}

/**
 * A watchdog that has grown past the nearest timer, or that was lost, is set again; otherwise the row stays as it
 * is.
 */
function isOnTime({ rolloutState: { dueKey, dispatches = 0 }, at }: Transaction, { nearest, isIdle }: Times): boolean {
  if (dueKey === undefined) return false;
  const set = dueAtOf(dueKey);
  return isIdle ? dispatches === 0 && set > at : nearest === undefined || set <= nearest;
}

/** Slots have no deadline before the known one, or before that of the present assignments. */
function setDeadline(transaction: Transaction, deadline: string | undefined): void {
  const { rolloutState, at } = transaction;
  // Slots that were given since are not among those that were checked.
  const given = rolloutState.deadline !== undefined && rolloutState.deadline > at ? rolloutState.deadline : undefined;
  const next = changingOf(rolloutState) === 0 ? undefined : (deadline ?? given);
  if (next !== rolloutState.deadline) transaction.edit({ deadline: next });
}

/** A rollout that is desired while the first stage takes none may be replaced before it is taken: that is recorded. */
export function noteDesired(transaction: Transaction): void {
  const { rolloutState, known } = transaction;
  const { desired, row } = known;
  if (!desired.ok) return;
  const identity = identityNow({ rolloutState, row }, desired.plan);
  if (identity === (rolloutState.desired ?? newestPlanned(rolloutState.ledger))?.identity) return;
  transaction.edit(withDesired(rolloutState, { identity, revision: describeRevisions(desired.plan) }));
}

/** The counts of the index; a worse result that was read a moment ago counts until the index has had time. */
async function settledCounts(
  known: Known,
  { all, states, now }: SeenInCheck & { readonly now: Date },
  ports: PlannerPorts,
): Promise<Settled | undefined> {
  if (known.rolloutState.last === 0 && membersOfAll(known.rolloutState) > 0) return undefined;
  const certain = justSettled(known, now);
  // The earlier counts are about a stage run then, and tell nothing about the others.
  const check = { all: all || certain.length > 0, states };
  const { counts, isNews, isBehind, ...named } = await clustersByState(known, check, ports);
  const worst = (state: keyof Certain) => Math.max(counts[state], ...certain.map((seen) => seen[state]));
  const [failed, unreachable, changing] = [worst("failed"), worst("unreachable"), worst("changing")];
  const settled = clusterCounts(counts.selected, { ...counts, failed, unreachable, changing });
  return { settled, behind: await behindOf(known, named, ports), isNews, isBehind };
}

/** A check that reads other clusters tells nothing better either, while the index may lag. */
function noteSeen(transaction: Transaction, { failed, unreachable, changing }: Certain): void {
  const { known, now, at } = transaction;
  const isKnown = justSettled(known, now).some(
    (seen) => seen.failed >= failed && seen.unreachable >= unreachable && seen.changing >= changing,
  );
  if (!isKnown) transaction.edit({ lately: { at, failed, unreachable, changing } });
}

/** For each named cluster since when, and why, as its worker reports it. */
async function behindOf(
  known: Known,
  named: Pick<ByState, "failed" | "unreachable">,
  { table }: PlannerPorts,
): Promise<Behind[]> {
  const clusters = [...named.failed, ...named.unreachable];
  if (clusters.length === 0) return [];
  const found = await readClusters(known, { clusters, with: ["syncs"] }, table);
  return [...found.values()].map(({ cluster, syncs }): Behind => {
    const state = named.failed.includes(cluster) ? "failed" : "unreachable";
    const ofZone = syncs.flatMap(({ paused }) => (paused?.zone === undefined ? [] : [paused]))[0];
    if (state === "unreachable" && ofZone !== undefined)
      return { cluster, state, since: ofZone.at, reason: ofZone.reason };
    const observed = syncs.flatMap((sync) => sync.observed ?? []).find(({ phase }) => phaseTallies[phase] === state);
    return { cluster, state, ...(observed === undefined ? {} : { since: observed.since, reason: reasonOf(observed) }) };
  });
}

type Settled = Required<Pick<StatusFacts, "settled" | "behind">> & Pick<ByState, "isNews" | "isBehind">;
type Certain = Pick<NonNullable<RolloutStateRow["lately"]>, "failed" | "unreachable" | "changing">;

/**
 * The result of a `reconcile` that ended a moment ago, or of rows that were read then; and the results of stage runs
 * that passed or stopped then.
 */
function justSettled({ rolloutState: { lately, stages }, stageRuns }: Known, now: Date): readonly Certain[] {
  const isRecent = (at: string | undefined) => at !== undefined && later(at, lagSeconds) > now.toISOString();
  const last = stages.flatMap((stage) => lastStageRunOf(stage, stageRuns) ?? []);
  // Clusters that were checked since are known better.
  const isNews = (at = "") => isRecent(at) && at > (lately?.at ?? "");
  const ended = last.filter(({ transitions }) => isNews(transitions.at(-1)?.at));
  const sum = (state: "Failed" | "Unreachable") => ended.reduce((all, { counts }) => all + counts[state], 0);
  return [
    ...(lately !== undefined && isRecent(lately.at) ? [lately] : []),
    ...(ended.length === 0 ? [] : [{ failed: sum("Failed"), unreachable: sum("Unreachable"), changing: 0 }]),
  ];
}

function hasJustSettled(known: Known, now: Date): boolean {
  return justSettled(known, now).length > 0;
}
