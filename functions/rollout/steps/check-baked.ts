import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readClusters } from "#functions/rollout/read/read-clusters.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import {
  type BakeClock,
  bakeClock,
  bakedAt,
  checkEnd,
  checkedAs,
  checkNumber,
  failureIn,
  isBaked,
} from "#shared/fleet/rollout/bake.ts";
import { freezesToJudge, isSameFreeze, withFreezes } from "#shared/fleet/rollout/bake-freezes.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { ClusterRows, Known } from "#shared/fleet/rollout/facts.ts";
import { reasonOf } from "#shared/fleet/rollout/judge.ts";
import { isSameStageRun, refOf, stageRunKey, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { type Freeze, freezeCovers, isReleased } from "#shared/fleet/rows/freezes-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { because } from "#shared/fleet/rows/stated-reason.ts";

/** Targets seen in one step. */
const pageSize = 25;

/**
 * The end of a bake: every target is checked once more. One that fails, or does not answer in time, counts against the
 * budgets of its stage run. @returns undefined when no bake is over, or nothing new was seen.
 */
export async function checkBaked(
  known: Known,
  { unchecked }: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const clock = bakeClock(known.row.operations, relationOf(known.row).rollout.progressDeadline);
  for (const stageRun of stageRunsIn(known.rolloutState, known.stageRuns)) {
    if (stageRun.phase !== "Baking" || unchecked.has(stageRunKey(stageRun))) continue;
    const transaction = new Transaction(known, ports.clock.now());
    if (stageRun.bake?.check === undefined) begin(transaction, await noteFreezes(transaction, stageRun, ports), clock);
    else if (await see(transaction, { stageRun, clock }, ports)) unchecked.add(stageRunKey(stageRun));
    if (transaction.hasChanged()) return transaction;
  }
  return undefined;
}

/** Records the freezes of a bake, because they are forgotten after some days. @returns the stage run with them. */
async function noteFreezes(transaction: Transaction, stageRun: StageRunRow, ports: PlannerPorts): Promise<StageRunRow> {
  const { known, now } = transaction;
  const { freezeState } = known;
  const { bake } = stageRun;
  if (bake === undefined || (isReleased(freezeState) && bake.freezes === undefined)) return stageRun;
  const some = freezesToJudge(bake, freezeState, now).filter(({ clusters }) => clusters !== undefined);
  const partial = some.length === 0 ? [] : await notCovering(some, stageRun, ports);
  const next = withFreezes(bake, {
    freezeState,
    covers: (freeze) => !partial.some((one) => isSameFreeze(one, freeze)),
    now,
  });
  if (next === bake) return stageRun;
  transaction.putStageRun({ ...stageRun, bake: next });
  return { ...stageRun, bake: next };
}

/** The freezes that leave out a target of the stage run. Its clusters are read until each freeze has one. */
async function notCovering(
  freezes: readonly Freeze[],
  { size, ...stageRun }: StageRunRow,
  { lists, table }: PlannerPorts,
): Promise<readonly Freeze[]> {
  const found = new Set<Freeze>();
  for (let seen = 0; seen < size && found.size < freezes.length; seen += pageSize) {
    const orders = Array.from({ length: Math.min(pageSize, size - seen) }, (_, index) => seen + index);
    const snapshot = await readSnapshot({ ...stageRun, size }, orders, lists);
    const clusters = [...snapshot.values()].map(({ cluster }) => keys.fleet(cluster));
    const rows = await table.getMany(clusters, { newer: "kept" });
    for (const freeze of freezes)
      if (rows.some((row) => isNewer(row) || !freezeCovers(freeze, row.labels))) found.add(freeze);
  }
  return [...found];
}

function begin(transaction: Transaction, stageRun: StageRunRow, clock: BakeClock): void {
  const { bake } = stageRun;
  const at = bakedAt(stageRun, clock);
  // A request of people is answered first: a Sync has one request at a time.
  if (bake === undefined || at === undefined || at > transaction.at || transaction.rolloutState.checking !== undefined)
    return;
  transaction.putStageRun({ ...stageRun, bake: { ...bake, check: { since: transaction.at, seen: 0 } } });
  transaction.addJobs({ do: "check", number: checkNumber(stageRun), at: 0, stageRun: refOf(stageRun) });
}

/**
 * Sees the next page of targets, in their order, as far as they were checked. @returns true when one of them was not:
 * the same call does not look again.
 */
async function see(
  transaction: Transaction,
  { stageRun, clock }: { readonly stageRun: StageRunRow; readonly clock: BakeClock },
  ports: PlannerPorts,
): Promise<boolean> {
  const { bake, size } = stageRun;
  const end = bake?.check && checkEnd(bake.check, clock);
  const isAsking = transaction.rolloutState.jobs.some(
    (job) => job.do === "check" && isSameStageRun(job.stageRun, stageRun),
  );
  if (bake?.check === undefined || end === undefined || isAsking) return false;
  const { seen, since } = bake.check;
  const orders = Array.from({ length: Math.min(pageSize, size - seen) }, (_, index) => seen + index);
  const snapshot = await readSnapshot(stageRun, orders, ports.lists);
  const clusters = [...snapshot.values()].map(({ cluster }) => cluster);
  const found = await readClusters(transaction.known, { clusters, with: ["syncs", "targets"] }, ports.table);
  let [next, isStopped] = [seen, false];
  for (const cluster of clusters) {
    const rows = found.get(cluster);
    const target = rows?.targets.find((one) => isSameStageRun(one.stageRun, stageRun));
    if (rows !== undefined && target !== undefined && isBaked(stageRun, target)) {
      const outcome = outcomeOf(target, rows, { number: checkNumber(stageRun), since });
      const isOpen = outcome === "changing" || outcome?.state === "Unreachable";
      isStopped = isOpen && end > transaction.at;
      if (isStopped) break;
      if (outcome === "changing") transaction.amend(target, notReady);
      else if (outcome !== undefined) transaction.amend(target, outcome);
    }
    next++;
  }
  const judged = transaction.stageRun(stageRun) ?? stageRun;
  if (next > seen) transaction.putStageRun({ ...judged, bake: { ...bake, check: { since, seen: next } } });
  return isStopped;
}

const notReady = { state: "Failed", reason: because("NotReady", "it was not ready at the end of the bake") } as const;

/** @returns undefined when the target is ready. */
function outcomeOf(
  target: TargetRow,
  { syncs }: ClusterRows,
  asked: Parameters<typeof checkedAs>[2],
): "changing" | { readonly state: "Failed" | "Unreachable"; readonly reason: string } | undefined {
  const checked = checkedAs(target, syncs, asked);
  if (checked === undefined) return { state: "Unreachable", reason: "it did not answer at the end of the bake" };
  if (checked === "changing") return "changing";
  const failure = checked === "failed" ? failureIn(target, syncs) : undefined;
  return failure && { state: "Failed", reason: reasonOf(failure) };
}
