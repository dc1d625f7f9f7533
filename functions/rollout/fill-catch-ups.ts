import { type Candidate, newestOf, type Step } from "#functions/rollout/decide.ts";
import { type CatchUpWait, type Filling, isOver, mostNext } from "#functions/rollout/fill-stage-run.ts";
import { frozenAs } from "#functions/rollout/let-thaw.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { type ClusterRows, seeClusters, valuedEntries } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { lostOf } from "#functions/rollout/restore-templates.ts";
import { listCheck, stageNow } from "#functions/rollout/stage-now.ts";
import { isFull, takeStageTurns } from "#functions/rollout/take-stage-turns.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { relationOf, snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { catchUpBudget, isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, CatchUpsHeld, StageRecord, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

interface CatchingUp extends Filling {
  readonly slots: number;
}

/**
 * Clusters that joined, returned or moved get their stage's current rollout, at any time; those that have to wait are
 * skipped.
 */
export async function fillCatchUps(transaction: Transaction, catchingUp: CatchingUp): Promise<void> {
  const { known } = transaction;
  const { slots, catchUps: waiting, isRendered, ports } = catchingUp;
  // No turn comes: waiting catch-ups are not even read.
  const as = heldAs(transaction);
  const { catchUpsHeld: held } = known.rolloutState;
  const isHeld = held?.as === as && (held.rendering === 0 || !isRendered);
  if (isEachStopped(known) || isHeld) return;
  const most = mostNext(transaction, slots);
  const range = { ...ranges.catchUps(known.owner, "waiting"), limit: most, newer: "kept" } as const;
  for await (const page of allPages((start) => ports.table.query({ ...range, ...start }))) {
    for (const row of page) if (isNewer(row)) transaction.cannotRead(clusterOfKey(row));
    // A call requests as many renderings as could get slots next, because others need the renderers as well.
    const left = Math.max(0, most - [...waiting.values()].filter((wait) => wait === "asked").length);
    const readable = page.filter((row) => !isNewer(row));
    const catchUps = readable.filter(({ cluster }) => !waiting.has(cluster)).slice(0, left);
    if (left === 0) return;
    if (catchUps.length === 0) continue;
    const given = await bringIn(transaction, catchUps, catchingUp);
    if (slots === 0 || transaction.hasChanged() || transaction.messages.length > 0 || isOver(catchingUp))
      return keepHeld(transaction, held, given);
  }
  const catchUpsHeld = heldOf([...waiting.values()], as);
  if (digestOf(catchUpsHeld) !== digestOf(known.rolloutState.catchUpsHeld ?? "")) transaction.edit({ catchUpsHeld });
}

/**
 * When a catch-up got the slot that another one of its stage released, all others wait for the same as before, and need
 * not be read again. @param given - the stages of the catch-ups that got slots.
 */
function keepHeld(transaction: Transaction, held: CatchUpsHeld | undefined, given: readonly string[]): void {
  if (held?.as === undefined || held.rendering > 0 || held.as !== heldAs(transaction)) return;
  if (transaction.rolloutState.catchUps.waiting !== transaction.known.rolloutState.catchUps.waiting - given.length)
    return;
  const bound = { ...held.bound };
  for (const stage of given) bound[stage] = (bound[stage] ?? 0) - 1;
  if (Object.values(bound).every((count) => count >= 0)) transaction.edit({ catchUpsHeld: { ...held, bound } });
}

function isEachStopped(known: Known): boolean {
  return known.rolloutState.stages.every((stage) => isStopped(known, stage));
}

/** Waiting catch-ups that are not tried before somebody asks, or a rollout passes their stage. */
export function stoppedCatchUps(transaction: Transaction): number {
  const { known } = transaction;
  const { stages, catchUps, catchUpsHeld } = known.rolloutState;
  if (isEachStopped(known)) return catchUps.waiting;
  const isAny = stages.some((stage) => isStopped(known, stage));
  if (!isAny || catchUpsHeld === undefined || catchUpsHeld.as !== heldAs(transaction)) return 0;
  const { frozen, rendering, bound = {} } = catchUpsHeld;
  const waits = [rendering, ...Object.values(frozen), ...Object.values(bound)];
  return waits.reduce((left, count) => left - count, catchUps.waiting);
}

function heldOf(waits: readonly CatchUpWait[], as: string): CatchUpsHeld {
  const frozen = countsOf(waits.flatMap((wait) => (typeof wait === "object" && "freeze" in wait ? wait.freeze : [])));
  const bound = countsOf(waits.flatMap((wait) => (typeof wait === "object" && "bound" in wait ? wait.bound : [])));
  const rendering = waits.filter((wait) => wait === "rendering" || wait === "asked").length;
  const worker = waits.filter((wait) => wait === "turn").length;
  const isBound = Object.keys(bound).length > 0;
  return { frozen, rendering, worker, ...(isBound ? { bound } : {}), ...(worker === 0 ? { as } : {}) };
}

function countsOf(names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, { length }]) => [name, length]));
}

/** Equal while the same catch-ups are held by a freeze or by their stage. */
function heldAs(transaction: Transaction): string {
  const { known, rolloutState } = transaction;
  const { stages, unreadable = [] } = rolloutState;
  const isBound = ({ name }: StageRecord) => isFull({ known, rolloutState }, name);
  const taking = stages.map((stage) => [stage.name, stage.current ?? 0, isStopped(known, stage), isBound(stage)]);
  return digestOf([frozenAs(transaction), taking, unreadable]);
}

interface CatchUpCandidate extends Candidate {
  readonly catchUp: CatchUpRow;
  /** After this it gets its stage's current rollout. */
  readonly isMore: boolean;
}

/** @returns the stages of the catch-ups that got slots. */
async function bringIn(
  transaction: Transaction,
  catchUps: readonly CatchUpRow[],
  { slots, catchUps: waiting, ports }: CatchingUp,
): Promise<readonly string[]> {
  const { known } = transaction;
  const names = catchUps.map(({ cluster }) => cluster);
  const parts = ["slot", "catchUps", "syncs", "targets"] as const;
  const clusters = await seeClusters(transaction, { clusters: names, with: parts }, ports.table);
  const valued = await valuedEntries(clusters.values(), ports.table);
  const isListNew = listCheck(known, ports.table);
  const candidates: CatchUpCandidate[] = [];
  for (const catchUp of catchUps) {
    const rows = clusters.get(catchUp.cluster);
    const entry = valued.get(catchUp.cluster);
    const stage = stageNow(known, rows?.fleet);
    const missed = rows && (await missedBy(catchUp, { rows, known }, ports));
    if (rows === undefined) waiting.set(catchUp.cluster, "others");
    else if (entry === undefined || stage?.current === undefined || (missed === undefined && isAhead(rows, stage))) {
      // The cluster is gone, or is a target of the next stage run.
      if (await isListNew()) transaction.dropCatchUp(catchUp);
      else waiting.set(catchUp.cluster, "turn");
    } else if (isStopped(known, stage)) waiting.set(catchUp.cluster, "others");
    else {
      const { rollout, only } = missed ?? { rollout: transaction.rollout(rolloutFor(rows.syncs, stage, known)) };
      const target = snapshotTarget({ ...entry, cluster: catchUp.cluster }, rollout.plan);
      // A cluster that joins is no reason to render again before the back-off ends.
      const retriedAt = catchUp.why === "returned" ? catchUp.since : undefined;
      const isMore = only !== undefined && !isAhead(rows, stage);
      candidates.push({ target, rows, rollout, stage: stage.name, retriedAt, only, catchUp, isMore });
    }
  }
  const given: string[] = [];
  const note = ({ catchUp, stage, isMore }: CatchUpCandidate, step: Step) => {
    if (step.do === "assign") given.push(stage);
    const wait = waitOf(step, stage);
    const { cluster, why, rollout } = catchUp;
    if (wait !== undefined) waiting.set(cluster, wait);
    else if (isMore && step.do !== "fail") transaction.changeCatchUp(catchUp, { rollout: undefined });
    else transaction.dropCatchUp(catchUp);
    if (step.do === "fail")
      transaction.putCatchUp(cluster, "failed", { why, reason: step.reason, stage, ...defined({ rollout }) });
  };
  await takeStageTurns(transaction, { candidates, slots, note }, ports);
  return given;
}

/**
 * The Syncs of a rollout that it lost and that are desired; undefined without any, or when the rollout is no longer
 * kept.
 */
async function missedBy(
  { rollout: number }: CatchUpRow,
  { rows, known }: { readonly rows: ClusterRows; readonly known: Known },
  { table }: PlannerPorts,
): Promise<Pick<Candidate, "rollout" | "only"> | undefined> {
  const rollout = number === undefined ? undefined : await table.get(keys.rollout(known.owner, number));
  const only = rollout && lostOf(known, rollout, rows);
  return rollout === undefined || only?.size === 0 ? undefined : { rollout, only };
}

function waitOf(step: Step, stage: string): CatchUpWait | undefined {
  if (step.do === "wait" && step.requests.length > 0) return "asked";
  if (step.do === "wait") return step.for === "bound" ? { bound: stage } : step.for;
  if (step.do === "freeze") return { freeze: step.name };
  return step.do === "away" ? "others" : undefined;
}

/**
 * More catch-ups failed than the stage tolerates: no other is tried before a rollout passes the stage, or somebody
 * asks.
 */
function isStopped({ row }: Known, { failedCatchUps, members }: StageRecord): boolean {
  return failedCatchUps > catchUpBudget(relationOf(row).rollout, members);
}

const given: ReadonlySet<TargetState> = new Set<TargetState>(["Succeeded", "Failed", "Unreachable"]);

/** The cluster was assigned the stage run's rollout already, or that and more: it does not go back. */
export function isAhead({ targets, syncs }: ClusterRows, { current = 0, updatingTo }: StageRecord): boolean {
  const has = newestOf(syncs);
  if (updatingTo !== undefined && has > current && updatingTo.rollout >= has) return true;
  return targets.some(({ stageRun, state, attempts }) => {
    if (!isSameStageRun(stageRun, updatingTo)) return false;
    return state === "Unchanged" || (given.has(state) && Object.keys(attempts).length > 0);
  });
}

/**
 * The stage's current rollout. No cluster goes back by moving: a cluster with something newer gets the oldest rollout
 * that is as new and that the stage before its own has passed, and otherwise keeps what it has. A rollout that no stage
 * has passed is withdrawn.
 */
export function rolloutFor(
  syncs: readonly SyncRow[],
  { name, current = 0 }: StageRecord,
  { rolloutState }: Pick<Known, "rolloutState">,
): number {
  const has = newestOf(syncs);
  if (has <= current) return current;
  const index = rolloutState.stages.findIndex((stage) => stage.name === name);
  const most = index > 0 ? (rolloutState.stages[index - 1]?.current ?? 0) : Number.POSITIVE_INFINITY;
  const passed = [rolloutState.former, ...rolloutState.stages.map((stage) => stage.current)].filter(
    (number) => number !== undefined,
  );
  const given = passed.filter((number) => number >= has && number <= most);
  if (given.length > 0) return Math.min(...given);
  return passed.includes(has) ? has : current;
}
