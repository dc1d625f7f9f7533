import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import { assignedAtOnce, type Candidate, decide, readRenderings, type Step } from "#functions/rollout/decide.ts";
import { forgetSyncs } from "#functions/rollout/forget.ts";
import { giveSlot } from "#functions/rollout/give-slot.ts";
import { frozenAs } from "#functions/rollout/let-thaw.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import type { RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { legKey, refOf, verdictOf } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
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

/** For what an arrival waits: a freeze by its name; a rendering, which this call may have asked for. */
export type ArrivalWait = { readonly freeze: string } | "rendering" | "asked" | "turn" | "others";

export interface Filling {
  readonly waiting: Waiting;
  /** The same of arrivals, by cluster. */
  readonly arrivals: Map<string, ArrivalWait>;
  /** Something may have changed for anybody, and not only for those of whom something was told. */
  readonly all: boolean;
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
  const { known, now } = transaction;
  const { subject } = known;
  const content = transaction.content(leg.content);
  const orders = nextOrders(transaction, { leg, slots, waiting });
  if (orders.length === 0) return false;
  const sealed = await readSealed(leg, orders, ports.lists);
  const targets = [...sealed.values()];
  const [clusters, renderings] = await Promise.all([
    readClusters(known, { clusters: targets.map(({ cluster }) => cluster), with: ["slot", "syncs"] }, ports.table),
    readRenderings(targets, ports.table),
  ]);
  const requests = new Map<string, RenderingRequest>();
  let [left, isFull] = [slots, false];
  for (const order of orders) {
    // Nobody new is passed by.
    if (isFull && order >= leg.next) continue;
    const target = sealed.get(order);
    const rows = target && clusters.get(target.cluster);
    if (target === undefined || rows === undefined) continue;
    const candidate = { target, rows, content, stage: leg.stage, leg, retriedAt: leg.retriedAt };
    const step = decide(candidate, renderings, { known, now });
    if (transaction.room() < 3 + assignedAtOnce(step)) break;
    if (step.do === "assign") {
      // What failed in this very step may be more than it may bear.
      if (isOverBudget(transaction, leg)) break;
      isFull = left === 0;
      if (rows.slot === undefined && isFull) continue;
      if (rows.slot === undefined) left--;
    }
    if (step.do === "wait") {
      waiting.add(targetPlace(leg, order));
      for (const request of step.requests) requests.set(request.input, request);
    }
    takeTarget(transaction, { ...candidate, leg, order, step }, ports);
  }
  const asking = { subject, requests: [...requests.values()], renderings: renderings.rows };
  transaction.messages.push(...(await askRenderings(asking, ports)));
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

function isOverBudget(transaction: Transaction, leg: LegRow): boolean {
  const farewell = transaction.content(leg.content).plan.farewell !== undefined;
  const { rollout } = relationOf(transaction.known.row);
  return verdictOf(transaction.leg(leg) ?? leg, rollout, farewell).phase === "Halted";
}

interface Taking extends Candidate {
  readonly leg: LegRow;
  readonly order: number;
  readonly step: Step;
}

/** Carries a decision about a target out, in the lists and counts of its leg. */
function takeTarget(transaction: Transaction, taking: Taking, ports: PlannerPorts): void {
  const { leg: before, order, step, rows, stage, content } = taking;
  const { cluster, slot } = rows;
  const leg = transaction.leg(before) ?? before;
  const from = leg.rendering.includes(order) ? "Rendering" : "Waiting";
  if (step.do === "wait") {
    setAside(transaction, { leg, order, from, list: step.for === "rendering" ? "rendering" : "aside" });
    return;
  }
  const taken = without(leg, order);
  if (step.do === "freeze") {
    transaction.putLeg(freeze(taken, { order, by: step.name, as: frozenAs(transaction) }));
    if (from !== "Waiting") transaction.count(leg, { [from]: -1, Waiting: 1 });
    return;
  }
  transaction.putLeg(taken);
  if (step.do === "assign" || step.do === "adopt") transaction.count(taken, { [from]: -1, Assigned: 1 });
  if (step.do === "assign") giveSlot(transaction, { ...taking, step }, ports);
  else if (step.do === "adopt")
    transaction.putSlot({ ...step.slot, leg: refOf(leg), order, stage, content: content.number }, slot);
  else {
    if (step.do === "forget") forgetSyncs(transaction, { syncs: step.syncs, as: "gone" }, ports);
    if (step.do === "away") transaction.cannotRead(cluster);
    transaction.record(taken, { cluster, order }, from, { state: becomes[step.do], reason: step.reason });
    const recorded = transaction.leg(leg) ?? leg;
    if (step.do === "fail") transaction.putLeg({ ...recorded, unrendered: [...recorded.unrendered, order] });
  }
}

const becomes = {
  skip: "Skipped",
  forget: "Skipped",
  away: "Unreachable",
  unchanged: "Unchanged",
  fail: "Failed",
} as const;

function setAside(
  transaction: Transaction,
  {
    leg,
    order,
    from,
    list,
  }: {
    readonly leg: LegRow;
    readonly order: number;
    readonly from: TargetState;
    readonly list: "rendering" | "aside";
  },
): void {
  if (leg[list].includes(order)) return;
  const kept = without(leg, order);
  transaction.putLeg({ ...kept, [list]: [...kept[list], order] });
  const to = list === "rendering" ? "Rendering" : "Waiting";
  if (from !== to) transaction.count(leg, { [from]: -1, [to]: 1 });
}

/** Those who are frozen already are it as of then. */
function freeze(
  leg: LegRow,
  { order, by, as }: { readonly order: number; readonly by: string; readonly as: string },
): LegRow {
  const held = leg.frozen ?? { as, by: {} };
  return { ...leg, frozen: { ...held, by: { ...held.by, [by]: [...(held.by[by] ?? []), order] } } };
}

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
