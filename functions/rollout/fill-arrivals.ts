import { type Candidate, newestOf, type Step } from "#functions/rollout/decide.ts";
import { type ArrivalWait, type Filling, isOver, mostNext } from "#functions/rollout/fill-leg.ts";
import { lostOf } from "#functions/rollout/give-back.ts";
import { frozenAs } from "#functions/rollout/let-thaw.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { type ClusterRows, seeClusters, valuedEntries } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { listCheck, stageNow } from "#functions/rollout/stage-now.ts";
import { isFull, takeTurns } from "#functions/rollout/take-turns.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { catchUpBudget, isSameLeg } from "#shared/fleet/rollout/legs.ts";
import { relationOf, sealedTarget } from "#shared/fleet/rollout/plan.ts";
import { clusterOf, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ArrivalRow, ArrivalsHeld, TargetState, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

interface Arriving extends Filling {
  readonly slots: number;
}

/** Clusters that joined, came back or moved get what their stage is on, at any time; those that wait are passed by. */
export async function fillArrivals(transaction: Transaction, arriving: Arriving): Promise<void> {
  const { known } = transaction;
  const { slots, arrivals: waiting, isRendered, ports } = arriving;
  // Nobody's turn comes: those that wait are not even read.
  const as = heldAs(transaction);
  const { arrivalsHeld: held } = known.unit;
  const isHeld = held?.as === as && (held.rendering === 0 || !isRendered);
  if (isEachStopped(known) || isHeld) return;
  const most = mostNext(transaction, slots);
  const range = { ...ranges.arrivals(known.subject, "waiting"), limit: most, newer: "kept" } as const;
  for await (const page of allPages((start) => ports.table.query({ ...range, ...start }))) {
    for (const row of page) if (isNewer(row)) transaction.cannotRead(clusterOf(row));
    // A call asks for as many renderings as could be given slots next: others need the renderers, too.
    const left = Math.max(0, most - [...waiting.values()].filter((wait) => wait === "asked").length);
    const readable = page.filter((row) => !isNewer(row));
    const arrivals = readable.filter(({ cluster }) => !waiting.has(cluster)).slice(0, left);
    if (left === 0) return;
    if (arrivals.length === 0) continue;
    const given = await bringIn(transaction, arrivals, arriving);
    if (slots === 0 || transaction.hasChanged() || transaction.messages.length > 0 || isOver(arriving))
      return keepHeld(transaction, held, given);
  }
  const arrivalsHeld = heldOf([...waiting.values()], as);
  if (digestOf(arrivalsHeld) !== digestOf(known.unit.arrivalsHeld ?? "")) transaction.edit({ arrivalsHeld });
}

/**
 * Where one was given the slot that another of its stage gave back, all others wait for what they did, and need not be read
 * again. @param given - the stages of those who were given slots.
 */
function keepHeld(transaction: Transaction, held: ArrivalsHeld | undefined, given: readonly string[]): void {
  if (held?.as === undefined || held.rendering > 0 || held.as !== heldAs(transaction)) return;
  if (transaction.unit.arrivals.waiting !== transaction.known.unit.arrivals.waiting - given.length) return;
  const bound = { ...held.bound };
  for (const stage of given) bound[stage] = (bound[stage] ?? 0) - 1;
  if (Object.values(bound).every((count) => count >= 0)) transaction.edit({ arrivalsHeld: { ...held, bound } });
}

function isEachStopped(known: Known): boolean {
  return known.unit.stages.every((stage) => isStopped(known, stage));
}

/** Of the arrivals that wait, those that nobody tries before somebody asks, or their stage passes something. */
export function stoppedArrivals(transaction: Transaction): number {
  const { known } = transaction;
  const { stages, arrivals, arrivalsHeld } = known.unit;
  if (isEachStopped(known)) return arrivals.waiting;
  const isAny = stages.some((stage) => isStopped(known, stage));
  if (!isAny || arrivalsHeld === undefined || arrivalsHeld.as !== heldAs(transaction)) return 0;
  const { frozen, rendering, bound = {} } = arrivalsHeld;
  const waits = [rendering, ...Object.values(frozen), ...Object.values(bound)];
  return waits.reduce((left, count) => left - count, arrivals.waiting);
}

function heldOf(waits: readonly ArrivalWait[], as: string): ArrivalsHeld {
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

/** Equal as long as those that a freeze or their stage holds are the same, and held. */
function heldAs(transaction: Transaction): string {
  const { known, unit } = transaction;
  const { stages, unreadable = [] } = unit;
  const isBound = ({ name }: UnitStage) => isFull({ known, unit }, name);
  const taking = stages.map((stage) => [stage.name, stage.on ?? 0, isStopped(known, stage), isBound(stage)]);
  return digestOf([frozenAs(transaction), taking, unreadable]);
}

interface Arrived extends Candidate {
  readonly arrival: ArrivalRow;
  /** After this it comes to what its stage is on. */
  readonly isMore: boolean;
}

/** @returns the stages of those who were given slots. */
async function bringIn(
  transaction: Transaction,
  arrivals: readonly ArrivalRow[],
  { slots, arrivals: waiting, ports }: Arriving,
): Promise<readonly string[]> {
  const { known } = transaction;
  const names = arrivals.map(({ cluster }) => cluster);
  const parts = ["slot", "arrivals", "syncs", "targets"] as const;
  const clusters = await seeClusters(transaction, { clusters: names, with: parts }, ports.table);
  const valued = await valuedEntries(clusters.values(), ports.table);
  const isListNew = listCheck(known, ports.table);
  const candidates: Arrived[] = [];
  for (const arrival of arrivals) {
    const rows = clusters.get(arrival.cluster);
    const entry = valued.get(arrival.cluster);
    const stage = stageNow(known, rows?.fleet);
    const missed = rows && (await missedBy(arrival, { rows, known }, ports));
    if (rows === undefined) waiting.set(arrival.cluster, "others");
    else if (entry === undefined || stage?.on === undefined || (missed === undefined && isAhead(rows, stage))) {
      // Gone, or it is a target of what passes there next.
      if (await isListNew()) transaction.dropArrival(arrival);
      else waiting.set(arrival.cluster, "turn");
    } else if (isStopped(known, stage)) waiting.set(arrival.cluster, "others");
    else {
      const { content, only } = missed ?? { content: transaction.content(contentFor(rows.syncs, stage, known)) };
      const target = sealedTarget({ ...entry, cluster: arrival.cluster }, content.plan);
      // A joiner is no reason to render again what rests.
      const retriedAt = arrival.why === "returned" ? arrival.since : undefined;
      const isMore = only !== undefined && !isAhead(rows, stage);
      candidates.push({ target, rows, content, stage: stage.name, retriedAt, only, arrival, isMore });
    }
  }
  const given: string[] = [];
  const note = ({ arrival, stage, isMore }: Arrived, step: Step) => {
    if (step.do === "assign") given.push(stage);
    const wait = waitOf(step, stage);
    const { cluster, why, content } = arrival;
    if (wait !== undefined) waiting.set(cluster, wait);
    else if (isMore && step.do !== "fail") transaction.changeArrival(arrival, { content: undefined });
    else transaction.dropArrival(arrival);
    if (step.do === "fail")
      transaction.putArrival(cluster, "failed", { why, reason: step.reason, stage, ...defined({ content }) });
  };
  await takeTurns(transaction, { candidates, slots, note }, ports);
  return given;
}

/** What it lost of a content, and is wanted; undefined where there is nothing, or that content is history. */
async function missedBy(
  { content: number }: ArrivalRow,
  { rows, known }: { readonly rows: ClusterRows; readonly known: Known },
  { table }: PlannerPorts,
): Promise<Pick<Candidate, "content" | "only"> | undefined> {
  const content = number === undefined ? undefined : await table.get(keys.content(known.subject, number));
  const only = content && lostOf(known, content, rows);
  return content === undefined || only?.size === 0 ? undefined : { content, only };
}

function waitOf(step: Step, stage: string): ArrivalWait | undefined {
  if (step.do === "wait" && step.requests.length > 0) return "asked";
  if (step.do === "wait") return step.for === "bound" ? { bound: stage } : step.for;
  if (step.do === "freeze") return { freeze: step.name };
  return step.do === "away" ? "others" : undefined;
}

/** More catch-ups failed than the stage bears: no other is tried before the stage passes something, or somebody asks. */
function isStopped({ row }: Known, { failedArrivals, members }: UnitStage): boolean {
  return failedArrivals > catchUpBudget(relationOf(row).rollout, members);
}

const given: ReadonlySet<TargetState> = new Set<TargetState>(["Succeeded", "Failed", "Unreachable"]);

/** What goes through its stage has been given to it already, or all of that and more: it is not taken back. */
export function isAhead({ targets, syncs }: ClusterRows, { on = 0, moving }: UnitStage): boolean {
  const has = newestOf(syncs);
  if (moving !== undefined && has > on && moving.content >= has) return true;
  return targets.some(({ leg, state, attempts }) => {
    if (!isSameLeg(leg, moving)) return false;
    return state === "Unchanged" || (given.has(state) && Object.keys(attempts).length > 0);
  });
}

/**
 * What its stage is on. No cluster goes back by moving: where it has something newer, it gets the oldest content that is
 * as new and that the stage before its own has passed, and else keeps what it has. What no stage has passed is taken back.
 */
export function contentFor(
  syncs: readonly SyncRow[],
  { name, on = 0 }: UnitStage,
  { unit }: Pick<Known, "unit">,
): number {
  const has = newestOf(syncs);
  if (has <= on) return on;
  const index = unit.stages.findIndex((stage) => stage.name === name);
  const most = index > 0 ? (unit.stages[index - 1]?.on ?? 0) : Number.POSITIVE_INFINITY;
  const passed = [unit.former, ...unit.stages.map((stage) => stage.on)].filter((number) => number !== undefined);
  const given = passed.filter((number) => number >= has && number <= most);
  if (given.length > 0) return Math.min(...given);
  return passed.includes(has) ? has : on;
}
