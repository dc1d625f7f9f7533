import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { listCheck } from "#functions/rollout/read/fleet.ts";
import { targetsWithInputs } from "#functions/rollout/read/inputs-before.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { valuedEntries } from "#functions/rollout/read/read-clusters.ts";
import { type Filling, mostNext, type Queue } from "#functions/rollout/steps/fill/take-turns.ts";
import { seeClusters, seeRollout, type Transaction } from "#functions/rollout/write/transaction.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { type Candidate, type Step, waitOf } from "#shared/fleet/rollout/decide.ts";
import { type ClusterRows, type Known, stageNow } from "#shared/fleet/rollout/facts.ts";
import { countHeld, heldAs, heldOf, isEachStopped, isStopped } from "#shared/fleet/rollout/holding.ts";
import { lostOf } from "#shared/fleet/rollout/lost-templates.ts";
import { catchUpRollout, isAhead, newestOf } from "#shared/fleet/rollout/order.ts";
import { isRejected } from "#shared/fleet/rollout/rejection.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, Hold } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";

/**
 * Clusters that joined, returned or moved get their stage's current rollout, at any time. They come one by one, so that
 * they have neither evidence nor a snapshot.
 */
export function catchUpQueue(transaction: Transaction, filling: Filling, ports: PlannerPorts): Queue<CatchUpCandidate> {
  /** The stages of the catch-ups that got slots. */
  const given: string[] = [];
  return {
    pages: catchUpPages(transaction, filling, ports),
    note: (candidate, step) => {
      if (step.do === "assign") given.push(candidate.stage);
      noteCatchUp(transaction, filling.work, { candidate, step });
    },
    goesOn: (_page, hasActed) => {
      if (hasActed) keepHeld(transaction, given);
      return !hasActed && filling.slots > 0;
    },
  };
}

async function* catchUpPages(
  transaction: Transaction,
  { work, slots }: Filling,
  ports: PlannerPorts,
): AsyncGenerator<readonly CatchUpCandidate[]> {
  const { known } = transaction;
  const { catchUps: waiting, isRendered } = work;
  // No turn comes: waiting catch-ups are not even read.
  const as = heldAs(transaction);
  const { catchUpsHeld: held } = known.rolloutState;
  const isHeld = held?.as === as && (countHeld(held, "rendering") === 0 || !isRendered);
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
    if (catchUps.length > 0) yield candidatesOf(transaction, { work, catchUps }, ports);
  }
  const catchUpsHeld = heldOf([...waiting.values()], as);
  if (digestOf(catchUpsHeld) !== digestOf(held ?? "")) transaction.edit({ catchUpsHeld });
}

/**
 * When a catch-up got the slot that another one of its stage released, all others wait for the same as before, and need
 * not be read again. @param given - the stages of the catch-ups that got slots.
 */
function keepHeld(transaction: Transaction, given: readonly string[]): void {
  const { catchUpsHeld: held } = transaction.known.rolloutState;
  if (held?.as === undefined || countHeld(held, "rendering") > 0 || held.as !== heldAs(transaction)) return;
  if (transaction.rolloutState.catchUps.waiting !== transaction.known.rolloutState.catchUps.waiting - given.length)
    return;
  const ofStage = (stage: string, { cause, name }: Pick<Hold, "cause" | "name">) => cause === "bound" && name === stage;
  if (!given.every((stage) => held.holds.some((hold) => ofStage(stage, hold)))) return;
  const holds = held.holds.map((hold) => {
    const clusters = hold.clusters - given.filter((stage) => ofStage(stage, hold)).length;
    return { ...hold, clusters };
  });
  if (holds.every(({ clusters }) => clusters >= 0)) transaction.edit({ catchUpsHeld: { ...held, holds } });
}

interface CatchUpCandidate extends Candidate {
  readonly catchUp: CatchUpRow;
  /** After this it gets its stage's current rollout. */
  readonly isMore: boolean;
}

/** Catch-ups with the rollouts that their clusters get. Those of clusters that get none are removed, or wait. */
async function candidatesOf(
  transaction: Transaction,
  { work: { catchUps: waiting }, catchUps }: Pick<Filling, "work"> & { readonly catchUps: readonly CatchUpRow[] },
  ports: PlannerPorts,
): Promise<readonly CatchUpCandidate[]> {
  const { known } = transaction;
  const names = catchUps.map(({ cluster }) => cluster);
  const parts = ["slot", "catchUps", "syncs", "targets"] as const;
  const clusters = await seeClusters(transaction, { clusters: names, with: parts }, ports.table);
  const valued = await valuedEntries(clusters.values(), ports.table);
  const isListNew = listCheck(known, ports.table);
  const candidates: CatchUpCandidate[] = [];
  const targetOf = targetsWithInputs(known.owner, ports);
  for (const catchUp of catchUps) {
    const rows = clusters.get(catchUp.cluster);
    const entry = valued.get(catchUp.cluster);
    const stage = stageNow(known, rows?.fleet);
    const missed = rows && (await missedBy(catchUp, { rows, known }, ports));
    const has = newestOf(rows?.syncs ?? []);
    const number = stage?.current === undefined ? undefined : catchUpRollout(known.rolloutState, stage, has);
    if (rows === undefined) waiting.set(catchUp.cluster, "others");
    else if (entry === undefined || stage?.current === undefined || (missed === undefined && isAhead(stage, rows))) {
      // The cluster is gone, or is a target of the next stage run.
      if (await isListNew()) transaction.dropCatchUp(catchUp);
      else waiting.set(catchUp.cluster, { cause: "worker" });
    } else if (isStopped(known, stage)) waiting.set(catchUp.cluster, "others");
    else if (missed === undefined && number === undefined) {
      // It keeps a rejected rollout; or it has nothing, or not all of that, and waits for one that it may have.
      if (has > 0 && rows.syncs.every(({ paused }) => paused === undefined)) transaction.dropCatchUp(catchUp);
      else waiting.set(catchUp.cluster, "others");
    } else {
      const { rollout, only } = missed ?? { rollout: await seeRollout(transaction, number ?? 0, ports.table) };
      const target = await targetOf({ ...entry, cluster: catchUp.cluster }, rollout);
      // A cluster that joins is no reason to render again before the back-off ends.
      const retriedAt = catchUp.why === "returned" ? catchUp.since : undefined;
      const isMore = only !== undefined && !isAhead(stage, rows);
      candidates.push({ target, rows, rollout, stage: stage.name, retriedAt, only, catchUp, isMore });
    }
  }
  return candidates;
}

/** Records the decision about a catch-up. */
function noteCatchUp(
  transaction: Transaction,
  { catchUps: waiting }: Pick<CallWork, "catchUps">,
  { candidate: { catchUp, stage, isMore }, step }: { readonly candidate: CatchUpCandidate; readonly step: Step },
): void {
  const wait = waitOf(step);
  const { cluster, why, rollout } = catchUp;
  if (wait !== undefined) waiting.set(cluster, wait);
  else if (isMore && step.do !== "fail") transaction.changeCatchUp(catchUp, { rollout: undefined });
  else transaction.dropCatchUp(catchUp);
  if (step.do === "fail")
    transaction.putCatchUp(cluster, "failed", { why, reason: step.reason, stage, ...defined({ rollout }) });
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
  const isGiven = number !== undefined && !isRejected(known.rolloutState, number);
  const rollout = !isGiven ? undefined : await table.get(keys.rollout(known.owner, number));
  const only = rollout && lostOf(known, rollout, rows);
  return rollout === undefined || only?.size === 0 ? undefined : { rollout, only };
}
