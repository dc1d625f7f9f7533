import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readClusters } from "#functions/rollout/read/read-clusters.ts";
import { type Filling, mostNext, type Queue } from "#functions/rollout/steps/fill/take-turns.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import type { Candidate, Step } from "#shared/fleet/rollout/decide.ts";
import { frozenAs, heldIn, waitsForThaw, withHeld, withoutHeld } from "#shared/fleet/rollout/holding.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";

interface FillingStageRun extends Filling {
  readonly stageRun: StageRunRow;
}

/** The targets of a stage run that get slots, or that have the rollout already. */
export function targetQueue(transaction: Transaction, filling: FillingStageRun, ports: PlannerPorts): Queue<Target> {
  const { work, stageRun, slots } = filling;
  const { waiting } = work;
  return {
    pages: targetPages(transaction, filling, ports),
    note: (target, step) => {
      if (step.do === "hold" && !waitsForThaw(step)) waiting.add(targetPlace(stageRun, target.order));
      noteTarget(transaction, target, step);
    },
    goesOn: (page, hasActed) => {
      if (hasActed) {
        waiting.add(goingOn(stageRun));
        return false;
      }
      // The attempt of one cluster is not checked for each report of another's worker.
      const isAsked = work.round.all || page.some(({ order }) => !heldIn(stageRun, "worker").includes(order));
      const allWait = page.every(({ order }) => waiting.has(targetPlace(stageRun, order)));
      return isAsked && allWait && mayTake(transaction, stageRun, slots);
    },
  };
}

async function* targetPages(
  transaction: Transaction,
  filling: FillingStageRun,
  { lists, table }: PlannerPorts,
): AsyncGenerator<readonly Target[]> {
  const { stageRun } = filling;
  const { stage, retriedAt } = stageRun;
  const rollout = transaction.rollout(stageRun.rollout);
  for (;;) {
    const orders = nextOrders(transaction, filling);
    if (orders.length === 0) return;
    const snapshot = await readSnapshot(stageRun, orders, lists);
    const names = [...snapshot.values()].map(({ cluster }) => cluster);
    const clusters = await readClusters(transaction.known, { clusters: names, with: ["slot", "syncs"] }, table);
    yield orders.flatMap((order): readonly Target[] => {
      const target = snapshot.get(order);
      const rows = target && clusters.get(target.cluster);
      if (target === undefined || rows === undefined) return [];
      return [{ target, rows, rollout, stage, stageRun, order, retriedAt }];
    });
  }
}

/**
 * A target with a slot that this stage run does not count needs no other; the snapshot has the targets of a superseded
 * stage run first.
 */
function mayTake({ known }: Transaction, { stage, counts }: StageRunRow, slots: number): boolean {
  const { changing = 0 } = known.rolloutState.stages.find(({ name }) => name === stage) ?? {};
  return slots > 0 || changing > counts.Assigned;
}

/**
 * Targets that had a turn before come first; then as many new ones as could get slots next, and those that were set
 * aside.
 */
function nextOrders(
  transaction: Transaction,
  { work: { waiting }, stageRun, slots }: FillingStageRun,
): readonly number[] {
  const most = mostNext(transaction, slots);
  const isFresh = (order: number) => !waiting.has(targetPlace(stageRun, order));
  const before = [...stageRun.returned, ...heldIn(stageRun, "rendering")].filter(isFresh).slice(0, most);
  // Renderings that hang stop nobody: a call that finds nothing else checks further targets.
  const isHanging = before.length === 0 && !waiting.has(goingOn(stageRun));
  const rendering = isHanging ? 0 : Math.max(0, heldIn(stageRun, "rendering").length - slots);
  const next = mayTake(transaction, stageRun, slots)
    ? Math.min(most - before.length - rendering, stageRun.size - stageRun.next)
    : 0;
  const ahead = Array.from({ length: Math.max(0, next) }, (_, index) => stageRun.next + index);
  const aside = heldIn(stageRun, "worker").filter(isFresh);
  // Without free slots, only targets with a slot of a superseded stage run may continue.
  return (slots === 0 ? [...aside, ...before, ...ahead] : [...before, ...ahead, ...aside]).slice(0, most);
}

/** The entry of `waiting` that is set when this call has done something in the stage run. */
function goingOn(stageRun: StageRunRow): string {
  return `${stageRunKey(stageRun)} goes on`;
}

function targetPlace(stageRun: StageRunRow, order: number): string {
  return `${stageRunKey(stageRun)}#${order}`;
}

interface Target extends Candidate {
  readonly stageRun: StageRunRow;
  readonly order: number;
}

/** Records the decision about a target in the lists and counts of its stage run. */
function noteTarget(
  transaction: Transaction,
  { stageRun: before, order, rows, stage, rollout }: Target,
  step: Step,
): void {
  const stageRun = transaction.stageRun(before) ?? before;
  const kept = without(stageRun, order);
  const from = heldIn(stageRun, "rendering").includes(order) ? "Rendering" : "Waiting";
  const move = (lists: Partial<StageRunRow>, to: TargetState) => {
    transaction.putStageRun({ ...kept, ...lists });
    if (to !== from) transaction.count(kept, { [from]: -1, [to]: 1 });
  };
  if (step.do === "hold") {
    // A target that waits for the same as before keeps its place among the others.
    if (heldIn(stageRun, step.cause).includes(order)) return;
    // Targets that are frozen already were found with these freezes, or with earlier ones.
    const as = waitsForThaw(step) ? { frozenAs: kept.frozenAs ?? frozenAs(transaction) } : {};
    move({ holds: withHeld(kept.holds, step, order), ...as }, step.cause === "rendering" ? "Rendering" : "Waiting");
  } else if (step.do === "assign") move({}, "Assigned");
  else if (step.do === "adopt") {
    move({}, "Assigned");
    transaction.putSlot({ ...step.slot, stageRun: refOf(stageRun), order, stage, rollout: rollout.number }, step.slot);
  } else {
    transaction.putStageRun(step.do === "fail" ? { ...kept, unrendered: [...kept.unrendered, order] } : kept);
    const { cluster, syncs } = rows;
    const { reason } = step;
    const attempts = Object.fromEntries(syncs.map(({ name, desired }) => [name, desired.attempt]));
    const isStill = step.do === "unchanged" && isVerified(stageRun, order);
    const takenOut = step.do === "takeOut" || undefined;
    const outcome = isStill
      ? { state: "Succeeded" as const, reason, attempts }
      : { state: becomes[step.do], reason, takenOut };
    transaction.record(kept, { cluster, order }, from, outcome);
  }
}

function isVerified({ verified: { from, to } = { from: 0, to: 0 } }: StageRunRow, order: number): boolean {
  return order >= from && order < to;
}

const becomes = {
  skip: "Skipped",
  takeOut: "Skipped",
  forget: "Skipped",
  away: "Unreachable",
  unchanged: "Unchanged",
  leave: "Unchanged",
  fail: "Failed",
} as const;

function without(stageRun: StageRunRow, order: number): StageRunRow {
  const others = (orders: readonly number[]) => orders.filter((other) => other !== order);
  return {
    ...stageRun,
    next: Math.max(stageRun.next, order + 1),
    returned: others(stageRun.returned),
    holds: withoutHeld(stageRun.holds, order),
  };
}
