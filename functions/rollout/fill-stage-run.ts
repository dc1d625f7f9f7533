import type { Candidate, Step } from "#functions/rollout/decide.ts";
import { frozenAs } from "#functions/rollout/let-thaw.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import { takeStageTurns } from "#functions/rollout/take-stage-turns.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { readSnapshot } from "#shared/adapters/snapshot-targets.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { StageRunRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Clusters looked at in one step: those that may get the free slots, as far as there is room for their Syncs, slots and
 * checks, and a few more, for not every one needs its own.
 */
export function mostNext(transaction: Transaction, slots: number): number {
  const fitting = Math.floor(transaction.room() / (transaction.rolloutState.templates.length + 2));
  return Math.min(60, Math.min(slots, fitting) + 5);
}

/** What this call found to be waiting for something: it is not looked at again by the same call. */
export type Waiting = Set<string>;

/** For what an arrival waits: a freeze by its name; its stage's own bound; a rendering, which this call may have asked for. */
export type CatchUpWait =
  | { readonly freeze: string }
  | { readonly bound: string }
  | "rendering"
  | "asked"
  | "turn"
  | "others";

export interface Filling {
  readonly waiting: Waiting;
  /** The same of arrivals, by cluster. */
  readonly catchUps: Map<string, CatchUpWait>;
  /** Something may have changed for anybody, and not only for those of whom something was told. */
  readonly all: boolean;
  /** What could not be rendered may be by now. */
  readonly isRendered: boolean;
  readonly until: Date;
  readonly ports: PlannerPorts;
}

export function isOver({ ports, until }: Pick<Filling, "ports" | "until">): boolean {
  return ports.clock.now() >= until;
}

interface Filled extends Filling {
  readonly stageRun: StageRunRow;
  readonly slots: number;
}

/**
 * Targets of a leg whose turn it is are given to, as far as there are slots, or become what they are already.
 * @returns whether all of these wait, and others may not have to.
 */
export async function fillStageRun(
  transaction: Transaction,
  { stageRun, slots, waiting, all, ports }: Filled,
): Promise<boolean> {
  const orders = nextOrders(transaction, { stageRun, slots, waiting });
  if (orders.length === 0) return false;
  const snapshot = await readSnapshot(stageRun, orders, ports.lists);
  const names = [...snapshot.values()].map(({ cluster }) => cluster);
  const clusters = await readClusters(transaction.known, { clusters: names, with: ["slot", "syncs"] }, ports.table);
  const rollout = transaction.rollout(stageRun.rollout);
  const { stage, retriedAt } = stageRun;
  const candidates = orders.flatMap((order): readonly Target[] => {
    const target = snapshot.get(order);
    const rows = target && clusters.get(target.cluster);
    if (target === undefined || rows === undefined) return [];
    return [{ target, rows, rollout, stage, stageRun, order, retriedAt }];
  });
  const note = (target: Target, step: Step) => {
    if (step.do === "wait") waiting.add(targetPlace(stageRun, target.order));
    noteTarget(transaction, target, step);
  };
  await takeStageTurns(transaction, { candidates, slots, note }, ports);
  if (transaction.hasChanged() || transaction.messages.length > 0) {
    waiting.add(goingOn(stageRun));
    return false;
  }
  // Nobody's attempt is looked at for each word of another's worker.
  const mayGoOn =
    mayTake(transaction, stageRun, slots) && (all || orders.some((order) => !stageRun.aside.includes(order)));
  return mayGoOn && orders.every((order) => waiting.has(targetPlace(stageRun, order)));
}

/** Who has a slot that this leg does not count needs no other; of the leg that gave way to it they were sealed first. */
function mayTake({ known }: Transaction, { stage, counts }: StageRunRow, slots: number): boolean {
  const { changing = 0 } = known.rolloutState.stages.find(({ name }) => name === stage) ?? {};
  return slots > 0 || changing > counts.Assigned;
}

/** Those that had a turn before come first; then as many new ones as could be given slots next, and who was set aside. */
function nextOrders(
  transaction: Transaction,
  { stageRun, slots, waiting }: Pick<Filled, "stageRun" | "slots" | "waiting">,
): readonly number[] {
  const most = mostNext(transaction, slots);
  const isFresh = (order: number) => !waiting.has(targetPlace(stageRun, order));
  const before = [...stageRun.returned, ...stageRun.rendering].filter(isFresh).slice(0, most);
  // Renderings that hang keep nobody: where a call finds nothing else, it looks further.
  const isHanging = before.length === 0 && !waiting.has(goingOn(stageRun));
  const rendering = isHanging ? 0 : Math.max(0, stageRun.rendering.length - slots);
  const next = mayTake(transaction, stageRun, slots)
    ? Math.min(most - before.length - rendering, stageRun.size - stageRun.next)
    : 0;
  const ahead = Array.from({ length: Math.max(0, next) }, (_, index) => stageRun.next + index);
  const aside = stageRun.aside.filter(isFresh);
  // With nothing to give, only those may go on that have a slot of a leg that gave way.
  return (slots === 0 ? [...aside, ...before, ...ahead] : [...before, ...ahead, ...aside]).slice(0, most);
}

/** Among those that wait: something has been done in the leg by this call. */
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

/** What was decided about a target is noted in the lists and counts of its leg. */
function noteTarget(
  transaction: Transaction,
  { stageRun: before, order, rows, stage, rollout }: Target,
  step: Step,
): void {
  const stageRun = transaction.stageRun(before) ?? before;
  const kept = without(stageRun, order);
  const from = stageRun.rendering.includes(order) ? "Rendering" : "Waiting";
  const move = (lists: Partial<StageRunRow>, to: TargetState) => {
    transaction.putStageRun({ ...kept, ...lists });
    if (to !== from) transaction.count(kept, { [from]: -1, [to]: 1 });
  };
  if (step.do === "wait") {
    const list = step.for === "rendering" ? "rendering" : "aside";
    const isThere = stageRun[list].includes(order);
    if (!isThere) move({ [list]: [...kept[list], order] }, list === "rendering" ? "Rendering" : "Waiting");
  } else if (step.do === "freeze") {
    // Those who are frozen already are it as of then.
    const { as, by } = kept.frozen ?? { as: frozenAs(transaction), by: {} };
    move({ frozen: { as, by: { ...by, [step.name]: [...(by[step.name] ?? []), order] } } }, "Waiting");
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
    const outcome = isStill ? { state: "Succeeded" as const, reason, attempts } : { state: becomes[step.do], reason };
    transaction.record(kept, { cluster, order }, from, outcome);
  }
}

function isVerified({ verified: { from, to } = { from: 0, to: 0 } }: StageRunRow, order: number): boolean {
  return order >= from && order < to;
}

const becomes = {
  skip: "Skipped",
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
    aside: others(stageRun.aside),
    rendering: others(stageRun.rendering),
  };
}
