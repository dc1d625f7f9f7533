import { askRenderings } from "#functions/rollout/ask-renderings.ts";
import { assignmentWrite, wakeUp } from "#functions/rollout/assign.ts";
import { forgetSyncs, toForget } from "#functions/rollout/forget.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed, type SealedTarget } from "#shared/adapters/sealed-targets.ts";
import { firstItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { resolveCount, secondsOf } from "#shared/fleet/kinds/quantities.ts";
import {
  type Assigning,
  type Assignment,
  assignmentsFor,
  isGiven,
  type RenderingRequest,
  renderingsOf,
} from "#shared/fleet/rollout/assignments.ts";
import { isPreexisting, isReplaceable } from "#shared/fleet/rollout/judge.ts";
import { legKey, refOf, verdictOf } from "#shared/fleet/rollout/legs.ts";
import { moversOf } from "#shared/fleet/rollout/movers.ts";
import { inputDigest, inputsOf, relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { type Turn, turnsOf } from "#shared/fleet/rollout/slots.ts";
import { freezeOfAll, freezeOver, freezeText } from "#shared/fleet/rows/brake-row.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { clusterOf, keys, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  ArrivalRow,
  ContentRow,
  LegRow,
  RenderingRow,
  SlotRow,
  TargetInput,
  UnitStage,
} from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type NewerRow, newerRowText } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Clusters looked at in one step: those that may get the free slots, and a few more, for not every one needs its own. */
const mostNext = 60;
const spareNext = 5;

/** Of one cluster in one step; what is left follows when these are done. With what goes with them they always fit. */
const mostAssignments = 60;

/** What this call found to be waiting for something: it is not looked at again by the same call. */
export type Waiting = Set<string>;

/** Gives free slots to those whose turn it is. @returns undefined when there is nothing to give, or nobody to take it. */
export async function fillSlots(known: Known, waiting: Waiting, ports: PlannerPorts): Promise<Transaction | undefined> {
  const now = ports.clock.now();
  const { unit, row } = known;
  if (row.operations.suspended !== undefined && row.operations.deletion === undefined) return undefined;
  if (freezeOfAll(known.brake, now) !== undefined) return undefined;
  const { rollout } = relationOf(row);
  const isGoing = row.operations.deletion !== undefined;
  const movers = moversOf({ unit, legs: known.legs, rollout, isGoing });
  for (const [index, turn] of turnsOf(unit, movers, rollout).entries()) {
    const transaction = new Transaction(known, now);
    if (turn.mover.leg === undefined) await fillArrivals(transaction, turn, { waiting, ports });
    else await fillLeg(transaction, { ...turn, leg: turn.mover.leg }, { waiting, ports });
    if (!transaction.hasChanged() && transaction.messages.length > 0) return transaction;
    if (!transaction.hasChanged()) continue;
    transaction.edit({ turn: (unit.turn + index + 1) % Math.max(1, movers.length) });
    return transaction;
  }
  return undefined;
}

interface Filling {
  readonly waiting: Waiting;
  readonly ports: PlannerPorts;
}

async function fillLeg(
  transaction: Transaction,
  { leg, slots }: Turn & { readonly leg: LegRow },
  { waiting, ports }: Filling,
): Promise<void> {
  const { known } = transaction;
  const content = transaction.content(leg.content);
  const most = Math.min(mostNext, slots + spareNext);
  const isFresh = (order: number) => !waiting.has(placeOf(leg, order));
  const before = [...leg.returned, ...leg.aside, ...leg.rendering].filter(isFresh).slice(0, most);
  const { changing = 0 } = known.unit.stages.find(({ name }) => name === leg.stage) ?? {};
  // Who has a slot of a leg that gave way is at the front, and needs no other.
  const needsNone = changing > leg.counts.Assigned;
  // As many may wait for their renderings as could be given slots next.
  const ahead =
    slots === 0 && !needsNone ? 0 : Math.max(0, most - before.length - Math.max(0, leg.rendering.length - slots));
  const fresh = Array.from(
    { length: Math.max(0, Math.min(ahead, leg.size - leg.next)) },
    (_, index) => leg.next + index,
  );
  const orders = [...before, ...fresh];
  if (orders.length === 0) return;
  const sealed = await readSealed(leg, orders, ports);
  const seen = await readCandidates(known, { content, sealed: [...sealed.values()] }, ports);
  const requests = new Map<string, RenderingRequest>();
  let left = slots;
  for (const order of orders) {
    const target = sealed.get(order);
    if (target === undefined) continue;
    const step = decide(candidateOf(target, { content, stage: leg.stage, seen, leg, now: transaction.now }, known));
    if (transaction.room() < 3 + assignedAtOnce(step)) break;
    // What failed in this very step may be more than it may bear.
    if (step.do === "assign" && isOverBudget(transaction, leg)) break;
    if (step.do === "assign" && step.slot === undefined && left <= 0) break;
    if (step.do === "assign" && step.slot === undefined) left--;
    for (const request of "requests" in step ? step.requests : []) requests.set(request.input, request);
    if (step.do === "wait") waiting.add(placeOf(leg, order));
    take(transaction, { leg, order, target, step, content, seen, ports });
  }
  transaction.messages.push(
    ...(await askRenderings(
      { subject: known.subject, requests: [...requests.values()], renderings: seen.renderings },
      ports,
    )),
  );
}

function placeOf(leg: LegRow, order: number): string {
  return `${leg.content}#${leg.stage}#${leg.seal}#${order}`;
}

interface Seen {
  readonly fleet: ReadonlyMap<string, FleetRow>;
  readonly slots: ReadonlyMap<string, SlotRow>;
  readonly syncs: ReadonlyMap<string, readonly SyncRow[]>;
  readonly renderings: ReadonlyMap<string, RenderingRow>;
  readonly newer: ReadonlyMap<string, string>;
}

async function readCandidates(
  { subject, unit }: Known,
  {
    content,
    sealed,
  }: { readonly content: ContentRow; readonly sealed: readonly Pick<SealedTarget, "cluster" | "inputs">[] },
  ports: PlannerPorts,
): Promise<Seen> {
  const names = new Set([...content.plan.templates.map(({ name }) => name), ...unit.templates]);
  const inputs = new Set(
    sealed.flatMap((target) => target.inputs.flatMap((input) => ("digest" in input ? [input.digest] : []))),
  );
  const rows = await ports.table.getMany(
    [
      ...sealed.flatMap(({ cluster }) => [
        keys.fleet(cluster),
        keys.slot(subject, cluster),
        ...[...names].map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name))),
      ]),
      ...[...inputs].map(keys.rendering),
    ],
    { newer: "kept" },
  );
  return {
    fleet: new Map(rows.filter((row) => row.type === "Fleet").map((row) => [row.name, row])),
    slots: new Map(rows.filter((row) => row.type === "Slot").map((row) => [row.cluster, row])),
    syncs: Map.groupBy(
      rows.filter((row) => row.type === "SyncOnCluster"),
      ({ cluster }) => cluster,
    ),
    renderings: new Map(rows.filter((row) => row.type === "Rendering").map((row) => [row.input, row])),
    newer: unreadable(rows.filter(isNewer), sealed),
  };
}

/** By cluster: its own rows, and those of the renderings that it waits for. */
function unreadable(
  newer: readonly NewerRow[],
  sealed: readonly Pick<SealedTarget, "cluster" | "inputs">[],
): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  if (newer.length === 0) return reasons;
  const rows = new Map(newer.map((row) => [keyText(row), row]));
  for (const row of newer)
    if (keys.rendering.parse(row) === undefined)
      reasons.set(keys.slot.parse(row)?.cluster ?? clusterOf(row), newerRowText(row));
  for (const { cluster, inputs } of sealed) {
    const row = inputs.flatMap((input) =>
      "digest" in input ? (rows.get(keyText(keys.rendering(input.digest))) ?? []) : [],
    )[0];
    if (row !== undefined) reasons.set(cluster, newerRowText(row));
  }
  return reasons;
}

/** A cluster that may be next, with everything that decides about it. */
interface Candidate {
  readonly cluster: string;
  readonly uid: string;
  readonly known: Known;
  readonly assigning: Omit<Assigning, "digests">;
  readonly fleet: FleetRow | undefined;
  readonly slot: SlotRow | undefined;
  readonly unread: string | undefined;
  readonly renderings: ReadonlyMap<string, RenderingRow>;
  readonly stage: string;
  readonly on: number | undefined;
  readonly leg: LegRow | undefined;
  /** What rests since before is to be rendered once more. */
  readonly retriedAt: string | undefined;
}

interface Standing {
  readonly content: ContentRow;
  readonly stage: string;
  readonly seen: Seen;
  readonly leg?: LegRow;
  readonly retriedAt?: string | undefined;
  readonly now: Date;
}

function candidateOf({ cluster, uid, inputs }: SealedTarget, standing: Standing, known: Known): Candidate {
  const { content, stage, seen, leg, now, retriedAt = leg?.retriedAt } = standing;
  const relation = known.row.operations.deletion === undefined ? relationOf(known.row) : undefined;
  return {
    cluster,
    uid,
    known,
    assigning: {
      subject: known.subject,
      cluster,
      content,
      relation,
      inputs,
      syncs: seen.syncs.get(cluster) ?? [],
      now,
    },
    fleet: seen.fleet.get(cluster),
    slot: seen.slots.get(cluster),
    unread: seen.newer.get(cluster),
    renderings: seen.renderings,
    stage,
    on: known.unit.stages.find(({ name }) => name === stage)?.on,
    leg,
    retriedAt,
  };
}

type Step =
  | { readonly do: "skip" | "unchanged" | "away"; readonly reason: string }
  | { readonly do: "fail"; readonly reason: string; readonly unrendered: boolean }
  | {
      readonly do: "wait";
      readonly for: "rendering" | "turn";
      readonly reason: string;
      readonly requests: readonly RenderingRequest[];
    }
  /** What is under way there is this very content: it is counted from now on. */
  | { readonly do: "adopt"; readonly slot: SlotRow }
  | {
      readonly do: "assign";
      readonly assignments: readonly Assignment[];
      readonly preexisting: boolean;
      readonly slot: SlotRow | undefined;
    }
  | { readonly do: "forget"; readonly syncs: readonly SyncRow[]; readonly reason: string };

function decide(candidate: Candidate): Step {
  const { known, fleet, slot, assigning, leg } = candidate;
  const isFarewell = assigning.content.plan.farewell !== undefined;
  if (candidate.unread !== undefined) return { do: "away", reason: `NewerRow: ${candidate.unread}` };
  if (fleet === undefined && isFarewell) {
    const syncs = toForget(assigning.syncs, "gone").slice(0, mostAssignments);
    return { do: "forget", syncs, reason: "no longer registered; its objects stay" };
  }
  const reason = isFarewell ? undefined : strayed(candidate);
  if (reason !== undefined) return { do: "skip", reason };
  if (slot?.parking !== undefined)
    return { do: "wait", for: "turn", reason: "waits until its worker is through", requests: [] };
  const { now } = assigning;
  const progressSeconds = secondsOf(relationOf(known.row).rollout.progressDeadline);
  const rendered = renderingsOf(assigning.inputs, candidate.renderings, {
    subject: known.subject,
    now,
    progressSeconds,
    retriedAt: candidate.retriedAt,
  });
  if (rendered.kind === "failed") return { do: "fail", reason: rendered.reason, unrendered: true };
  if (rendered.kind === "pending")
    return {
      do: "wait",
      for: "rendering",
      reason: "waiting for its rendering",
      requests: rendered.unasked.flatMap((index) => requestOf(assigning, index)),
    };
  const whole = { ...assigning, digests: rendered.digests };
  if (slot !== undefined) {
    const given = assigning.syncs.filter(({ name }) => name in slot.attempts);
    const isGoing = !isGiven(whole) && !given.every(isReplaceable);
    // What counts elsewhere settles where it is.
    if (leg === undefined || isCounted(slot, known) || isGoing)
      return { do: "wait", for: "turn", reason: `settles what content ${slot.content} began`, requests: [] };
    if (isGiven(whole)) return { do: "adopt", slot };
  }
  const assignments = assignmentsFor(whole);
  if (assignments.length === 0) return { do: "unchanged", reason: "already runs this rendering" };
  const freeze = fleet === undefined ? undefined : freezeOver(known.brake, fleet.labels, now);
  if (freeze !== undefined) return { do: "wait", for: "turn", reason: freezeText(freeze), requests: [] };
  const preexisting = assigning.syncs.some((sync) => isPreexisting(sync, candidate.on));
  return { do: "assign", assignments, preexisting, slot };
}

function isOverBudget(transaction: Transaction, leg: LegRow): boolean {
  const farewell = transaction.content(leg.content).plan.farewell !== undefined;
  const { rollout } = relationOf(transaction.known.row);
  return verdictOf(transaction.leg(leg) ?? leg, rollout, farewell).phase === "Halted";
}

function assignedAtOnce(step: Step): number {
  if (step.do === "forget") return step.syncs.length;
  return step.do === "assign" ? Math.min(mostAssignments, step.assignments.length) : 0;
}

/** True when a leg that is under way counts what the slot was given for. */
function isCounted({ leg }: SlotRow, { legs }: Known): boolean {
  const counted = leg === undefined ? undefined : legs.get(legKey(leg));
  return counted !== undefined && counted.endedAt === undefined;
}

/** Why a cluster is no target of its stage any more. */
function strayed({ known, fleet, uid, stage }: Candidate): string | undefined {
  const relation = relationOf(known.row);
  if (fleet === undefined) return "no longer registered; its objects stay";
  if (fleet.uid !== uid) return "registered anew";
  if (!selects(relation.clusters, fleet)) return "no longer selected; its objects stay";
  const own = stageOf(relation.rollout, fleet);
  return own === stage ? undefined : `moved to stage ${own}`;
}

function requestOf(
  { content, inputs }: Pick<Assigning, "content" | "inputs">,
  index: number,
): readonly RenderingRequest[] {
  const [template, input] = [content.plan.templates[index], inputs[index]];
  if (template === undefined || input === undefined || "problem" in input) return [];
  const { source, artifactDigest, render } = template;
  return [{ input: input.digest, source, artifactDigest, path: input.path, ...defined({ render }) }];
}

interface Taking {
  readonly leg: LegRow;
  readonly order: number;
  readonly target: SealedTarget;
  readonly step: Step;
  readonly content: ContentRow;
  readonly seen: Seen;
  readonly ports: PlannerPorts;
}

/** Carries a decision about a target of a leg out, in its lists and counts. */
function take(transaction: Transaction, taking: Taking): void {
  const { order, target, step } = taking;
  const { cluster } = target;
  const leg = transaction.leg(taking.leg) ?? taking.leg;
  const from = leg.rendering.includes(order) ? "Rendering" : "Waiting";
  if (step.do === "wait") {
    setAside(transaction, { leg, order, from, for: step.for });
    return;
  }
  transaction.putLeg(without(leg, order));
  const current = transaction.leg(leg) ?? leg;
  if (step.do === "fail") {
    transaction.record(current, { cluster, order }, from, { state: "Failed", reason: step.reason });
    const failed = transaction.leg(leg) ?? leg;
    transaction.putLeg({ ...failed, unrendered: [...failed.unrendered, order] });
  } else if (step.do === "assign") {
    transaction.count(current, { [from]: -1, Assigned: 1 });
    assign(
      transaction,
      { cluster, step, content: taking.content, seen: taking.seen, stage: leg.stage, leg, order },
      taking.ports,
    );
  } else if (step.do === "adopt") {
    transaction.count(current, { [from]: -1, Assigned: 1 });
    transaction.putSlot({ ...step.slot, leg: refOf(leg), order, stage: leg.stage, content: leg.content }, step.slot);
  } else if (step.do === "forget") {
    forgetSyncs(transaction, { syncs: step.syncs, as: "gone" }, taking.ports);
    transaction.record(current, { cluster, order }, from, { state: "Skipped", reason: step.reason });
  } else {
    if (step.do === "away") transaction.cannotRead(cluster);
    const state = step.do === "skip" ? "Skipped" : step.do === "away" ? "Unreachable" : "Unchanged";
    transaction.record(current, { cluster, order }, from, { state, reason: step.reason });
  }
}

function setAside(
  transaction: Transaction,
  {
    leg,
    order,
    from,
    for: what,
  }: {
    readonly leg: LegRow;
    readonly order: number;
    readonly from: "Waiting" | "Rendering";
    readonly for: "rendering" | "turn";
  },
): void {
  const [list, state] = what === "rendering" ? (["rendering", "Rendering"] as const) : (["aside", "Waiting"] as const);
  if (leg[list].includes(order)) return;
  const kept = without(leg, order);
  transaction.putLeg({ ...kept, [list]: [...kept[list], order] });
  if (from !== state) transaction.count(leg, { [from]: -1, [state]: 1 });
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

interface Giving {
  readonly cluster: string;
  readonly step: Extract<Step, { do: "assign" }>;
  readonly content: ContentRow;
  readonly seen: Seen;
  readonly stage: string;
  readonly leg?: LegRow;
  readonly order?: number;
}

function assign(transaction: Transaction, giving: Giving, ports: PlannerPorts): void {
  const { cluster, step, content, seen, stage, leg, order } = giving;
  const { known, now } = transaction;
  const written = step.assignments.slice(0, mostAssignments);
  const syncs = seen.syncs.get(cluster) ?? [];
  for (const assignment of written) {
    const before = syncs.find(({ name }) => name === assignment.name);
    transaction.write(assignmentWrite(assignment, { known, before, now, ports }));
  }
  const fleet = seen.fleet.get(cluster);
  // A Cluster that was deleted, or registered anew, since it was looked at gets nothing.
  if (fleet !== undefined)
    transaction.write({ check: keys.fleet(cluster), when: [{ attribute: "uid", equals: fleet.uid }] });
  transaction.putSlot(
    {
      cluster,
      stage,
      content: content.number,
      attempts: Object.fromEntries(written.map(({ name, desired }) => [name, desired.attempt])),
      since: transaction.at,
      ...(leg === undefined ? {} : { leg: refOf(leg) }),
      ...defined({ order }),
      ...(step.preexisting ? { preexisting: true as const } : {}),
      ...(written.length < step.assignments.length ? { unwritten: true as const } : {}),
    },
    step.slot,
  );
  transaction.messages.push(...wakeUp(cluster, written[0]?.desired.startAt, now));
  // No worker that begins now can use up its time before.
  const { progressDeadline } = relationOf(known.row).rollout;
  const first = later(now, secondsOf(progressDeadline));
  if (transaction.unit.deadline === undefined || transaction.unit.deadline > first)
    transaction.edit({ deadline: first });
}

/** Clusters that joined, came back or moved get what their stage is on, at any time. */
async function fillArrivals(transaction: Transaction, { slots }: Turn, { waiting, ports }: Filling): Promise<void> {
  const { known, now } = transaction;
  const { subject } = known;
  const most = Math.min(mostNext, slots + spareNext);
  const limit = most + waiting.size;
  const range = { ...ranges.arrivals(subject, "waiting"), limit };
  const found = await firstItems((start) => ports.table.query({ ...range, ...start }), limit);
  const arrivals = found.filter(({ cluster }) => !waiting.has(`arrival ${cluster}`));
  if (arrivals.length === 0) return;
  const wanted = arrivals.flatMap(({ cluster }) => [
    keys.fleet(cluster),
    keys.arrival(subject, "failed", cluster),
    ...known.unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name))),
  ]);
  const rows = await ports.table.getMany(wanted, { newer: "kept" });
  transaction.see(rows);
  const fleet = new Map(rows.filter((row) => row.type === "Fleet").map((row) => [row.name, row]));
  const syncs = Map.groupBy(
    rows.filter((row) => row.type === "SyncOnCluster"),
    ({ cluster }) => cluster,
  );
  const groups = Map.groupBy(arrivals, ({ cluster }) => {
    const stage = known.unit.stages.find(({ name }) => name === arrivalStage(known, fleet.get(cluster)));
    return `${stage?.name ?? ""}#${stage === undefined ? "" : arrivalContent(syncs.get(cluster) ?? [], stage, known)}`;
  });
  const requests = new Map<string, RenderingRequest>();
  const renderings = new Map<string, RenderingRow>();
  let left = slots;
  for (const [group, those] of groups) {
    const [name = "", number = ""] = group.split("#");
    const stage = known.unit.stages.find((one) => one.name === name);
    // Gone, or nothing has passed there yet: it is a target of what passes next.
    if (stage?.on === undefined) {
      for (const arrival of those) if (transaction.room() > 2) transaction.dropArrival(arrival, "waiting");
      continue;
    }
    if (isStopped(known, stage)) {
      for (const { cluster } of those) waiting.add(`arrival ${cluster}`);
      continue;
    }
    const content = transaction.content(Number(number));
    const sealed = those.flatMap(({ cluster }): readonly SealedTarget[] => {
      const row = fleet.get(cluster);
      return row === undefined ? [] : [{ cluster, uid: row.uid, inputs: inputsNow(content, row) }];
    });
    const seen = await readCandidates(known, { content, sealed }, ports);
    for (const [input, row] of seen.renderings) renderings.set(input, row);
    for (const arrival of those) {
      const target = sealed.find(({ cluster }) => cluster === arrival.cluster);
      if (target === undefined) continue;
      const retriedAt = sinceReturn(arrival);
      const step = decide(candidateOf(target, { content, stage: stage.name, seen, retriedAt, now }, known));
      if (transaction.room() < 4 + assignedAtOnce(step)) break;
      for (const request of "requests" in step ? step.requests : []) requests.set(request.input, request);
      if (step.do === "assign" && step.slot === undefined && left <= 0) break;
      if (step.do === "assign" && step.slot === undefined) left--;
      if (step.do === "wait" || step.do === "away") waiting.add(`arrival ${arrival.cluster}`);
      takeArrival(transaction, { arrival, step, content, seen, stage }, ports);
    }
  }
  transaction.messages.push(...(await askRenderings({ subject, requests: [...requests.values()], renderings }, ports)));
}

/** A joiner is no reason to render again what rests. */
function sinceReturn({ why, since }: ArrivalRow): string | undefined {
  return why === "returned" ? since : undefined;
}

function arrivalStage({ row }: Known, fleet: FleetRow | undefined): string | undefined {
  const relation = relationOf(row);
  return fleet === undefined || !selects(relation.clusters, fleet) ? undefined : stageOf(relation.rollout, fleet);
}

function inputsNow({ plan }: ContentRow, { name: cluster, labels, values }: FleetRow): readonly TargetInput[] {
  return inputsOf(plan, { cluster, labels, values }).map((input) =>
    "problem" in input ? input : { digest: inputDigest(input), path: input.path },
  );
}

/** More of them failed than a content may fail there: no more are tried before the stage passes something, or somebody asks. */
function isStopped({ row }: Known, { failedArrivals, members }: UnitStage): boolean {
  return failedArrivals > resolveCount(relationOf(row).rollout.maxFailures, members);
}

/**
 * What its stage is on. A cluster never goes back by moving: what it was given of a content that another stage has passed
 * it keeps, until its own catches up.
 */
function arrivalContent(syncs: readonly SyncRow[], { on = 0 }: UnitStage, { unit }: Known): number {
  const given = syncs.filter(({ desired }) => desired.action === "apply").map(({ desired }) => desired.rollout);
  const has = Math.max(0, ...given);
  const passed = unit.stages.flatMap((stage) => (stage.on !== undefined && stage.on >= has ? [stage.on] : []));
  return has > on && passed.length > 0 ? Math.min(...passed) : on;
}

function takeArrival(
  transaction: Transaction,
  {
    arrival,
    step,
    content,
    seen,
    stage,
  }: {
    readonly arrival: ArrivalRow;
    readonly step: Step;
    readonly content: ContentRow;
    readonly seen: Seen;
    readonly stage: UnitStage;
  },
  ports: PlannerPorts,
): void {
  if (step.do === "wait" || step.do === "away") return;
  transaction.dropArrival(arrival, "waiting");
  if (step.do === "assign")
    assign(transaction, { cluster: arrival.cluster, step, content, seen, stage: stage.name }, ports);
  if (step.do !== "fail") return;
  transaction.putArrival(arrival.cluster, "failed", { why: arrival.why, reason: step.reason, stage: stage.name });
  transaction.editStage(stage.name, (before) => ({ ...before, failedArrivals: before.failedArrivals + 1 }));
}
