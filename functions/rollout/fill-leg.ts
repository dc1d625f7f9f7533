import type { Candidate, Step } from "#functions/rollout/decide.ts";
import { frozenAs } from "#functions/rollout/let-thaw.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import { takeTurns } from "#functions/rollout/take-turns.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import { legKey, refOf } from "#shared/fleet/rollout/legs.ts";
import type { LegRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Clusters looked at in one step: those that may get the free slots, as far as there is room for their Syncs, slots and
 * checks, and a few more, for not every one needs its own.
 */
export function mostNext(transaction: Transaction, slots: number): number {
  const fitting = Math.floor(transaction.room() / (transaction.unit.templates.length + 2));
  return Math.min(60, Math.min(slots, fitting) + 5);
}

/** What this call found to be waiting for something: it is not looked at again by the same call. */
export type Waiting = Set<string>;

/** For what an arrival waits: a freeze by its name; its stage's own bound; a rendering, which this call may have asked for. */
export type ArrivalWait =
  | { readonly freeze: string }
  | { readonly bound: string }
  | "rendering"
  | "asked"
  | "turn"
  | "others";

export interface Filling {
  readonly waiting: Waiting;
  /** The same of arrivals, by cluster. */
  readonly arrivals: Map<string, ArrivalWait>;
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
  readonly leg: LegRow;
  readonly slots: number;
}

/**
 * Targets of a leg whose turn it is are given to, as far as there are slots, or become what they are already.
 * @returns whether all of these wait, and others may not have to.
 */
export async function fillLeg(transaction: Transaction, { leg, slots, waiting, all, ports }: Filled): Promise<boolean> {
  const orders = nextOrders(transaction, { leg, slots, waiting });
  if (orders.length === 0) return false;
  const sealed = await readSealed(leg, orders, ports.lists);
  const names = [...sealed.values()].map(({ cluster }) => cluster);
  const clusters = await readClusters(transaction.known, { clusters: names, with: ["slot", "syncs"] }, ports.table);
  const content = transaction.content(leg.content);
  const { stage, retriedAt } = leg;
  const candidates = orders.flatMap((order): readonly Target[] => {
    const target = sealed.get(order);
    const rows = target && clusters.get(target.cluster);
    if (target === undefined || rows === undefined) return [];
    return [{ target, rows, content, stage, leg, order, retriedAt }];
  });
  const note = (target: Target, step: Step) => {
    if (step.do === "wait") waiting.add(targetPlace(leg, target.order));
    noteTarget(transaction, target, step);
  };
  await takeTurns(transaction, { candidates, slots, note }, ports);
  if (transaction.hasChanged() || transaction.messages.length > 0) {
    waiting.add(goingOn(leg));
    return false;
  }
  // Nobody's attempt is looked at for each word of another's worker.
  const mayGoOn = mayTake(transaction, leg, slots) && (all || orders.some((order) => !leg.aside.includes(order)));
  return mayGoOn && orders.every((order) => waiting.has(targetPlace(leg, order)));
}

/** Who has a slot that this leg does not count needs no other; of the leg that gave way to it they were sealed first. */
function mayTake({ known }: Transaction, { stage, counts }: LegRow, slots: number): boolean {
  const { changing = 0 } = known.unit.stages.find(({ name }) => name === stage) ?? {};
  return slots > 0 || changing > counts.Assigned;
}

/** Those that had a turn before come first; then as many new ones as could be given slots next, and who was set aside. */
function nextOrders(
  transaction: Transaction,
  { leg, slots, waiting }: Pick<Filled, "leg" | "slots" | "waiting">,
): readonly number[] {
  const most = mostNext(transaction, slots);
  const isFresh = (order: number) => !waiting.has(targetPlace(leg, order));
  const before = [...leg.returned, ...leg.rendering].filter(isFresh).slice(0, most);
  // Renderings that hang keep nobody: where a call finds nothing else, it looks further.
  const isHanging = before.length === 0 && !waiting.has(goingOn(leg));
  const rendering = isHanging ? 0 : Math.max(0, leg.rendering.length - slots);
  const next = mayTake(transaction, leg, slots) ? Math.min(most - before.length - rendering, leg.size - leg.next) : 0;
  const ahead = Array.from({ length: Math.max(0, next) }, (_, index) => leg.next + index);
  const aside = leg.aside.filter(isFresh);
  // With nothing to give, only those may go on that have a slot of a leg that gave way.
  return (slots === 0 ? [...aside, ...before, ...ahead] : [...before, ...ahead, ...aside]).slice(0, most);
}

/** Among those that wait: something has been done in the leg by this call. */
function goingOn(leg: LegRow): string {
  return `${legKey(leg)} goes on`;
}

function targetPlace(leg: LegRow, order: number): string {
  return `${legKey(leg)}#${order}`;
}

interface Target extends Candidate {
  readonly leg: LegRow;
  readonly order: number;
}

/** What was decided about a target is noted in the lists and counts of its leg. */
function noteTarget(transaction: Transaction, { leg: before, order, rows, stage, content }: Target, step: Step): void {
  const leg = transaction.leg(before) ?? before;
  const kept = without(leg, order);
  const from = leg.rendering.includes(order) ? "Rendering" : "Waiting";
  const move = (lists: Partial<LegRow>, to: TargetState) => {
    transaction.putLeg({ ...kept, ...lists });
    if (to !== from) transaction.count(kept, { [from]: -1, [to]: 1 });
  };
  if (step.do === "wait") {
    const list = step.for === "rendering" ? "rendering" : "aside";
    const isThere = leg[list].includes(order);
    if (!isThere) move({ [list]: [...kept[list], order] }, list === "rendering" ? "Rendering" : "Waiting");
  } else if (step.do === "freeze") {
    // Those who are frozen already are it as of then.
    const { as, by } = kept.frozen ?? { as: frozenAs(transaction), by: {} };
    move({ frozen: { as, by: { ...by, [step.name]: [...(by[step.name] ?? []), order] } } }, "Waiting");
  } else if (step.do === "assign") move({}, "Assigned");
  else if (step.do === "adopt") {
    move({}, "Assigned");
    transaction.putSlot({ ...step.slot, leg: refOf(leg), order, stage, content: content.number }, step.slot);
  } else {
    transaction.putLeg(step.do === "fail" ? { ...kept, unrendered: [...kept.unrendered, order] } : kept);
    const { cluster, syncs } = rows;
    const { reason } = step;
    const attempts = Object.fromEntries(syncs.map(({ name, desired }) => [name, desired.attempt]));
    const isStill = step.do === "unchanged" && isVerified(leg, order);
    const outcome = isStill ? { state: "Succeeded" as const, reason, attempts } : { state: becomes[step.do], reason };
    transaction.record(kept, { cluster, order }, from, outcome);
  }
}

function isVerified({ verified: { from, to } = { from: 0, to: 0 } }: LegRow, order: number): boolean {
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

function without(leg: LegRow, order: number): LegRow {
  const others = (orders: readonly number[]) => orders.filter((other) => other !== order);
  return {
    ...leg,
    next: Math.max(leg.next, order + 1),
    returned: others(leg.returned),
    aside: others(leg.aside),
    rendering: others(leg.rendering),
  };
}
