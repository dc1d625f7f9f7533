/**
 * The order of rollouts: which one is newest, which one a stage takes, which one a cluster may have, and what remains
 * verified when stages are edited. Pure. Only this module compares numbers of rollouts.
 *
 * Numbers only grow, and a greater number is newer whatever its plan is. A rollback is a new number with an older plan,
 * so that no stage and no cluster returns to what the rollback took back.
 */
import { defined } from "#shared/base/defined.ts";
import { isRejected } from "#shared/fleet/rollout/rejection.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import type {
  LedgerEntry,
  RolloutStateRow,
  StageRecord,
  StageRunRef,
  TargetRow,
  TargetState,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

type Ordered = Pick<RolloutStateRow, "stages" | "ledger" | "rejected">;

/** Whether a stage may take a rollout now: a hold keeps back all but those that were released from it. */
export type MayStart = (rollout: number) => boolean;

/** The newest rollout that a cluster was assigned something of; 0 when it was assigned nothing. */
export function newestOf(syncs: readonly SyncRow[]): number {
  return Math.max(0, ...syncs.flatMap(({ desired }) => (desired.action === "apply" ? [desired.rollout] : [])));
}

/** The newest rollout that a stage has or is updating to; 0 when it has none. */
function newestIn({ current = 0, updatingTo }: Pick<StageRecord, "current" | "updatingTo">): number {
  return Math.max(current, updatingTo?.rollout ?? 0);
}

/**
 * The newest rollout that reaches a stage: the one that the stage before has passed, or, for the first stage, the
 * newest.
 */
function comingTo(rolloutState: Ordered, index: number, mayStart?: MayStart): number {
  const { stages, ledger } = rolloutState;
  const may = (number: number) => mayStart?.(number) !== false && isOffered(rolloutState, number);
  // Without a hold the first stage takes what is desired now, and nothing older when that is rejected.
  const newest = mayStart === undefined ? newestPlanned(ledger) : ledger.find(({ number }) => may(number));
  const coming = index === 0 ? newest?.number : stages[index - 1]?.current;
  return coming !== undefined && may(coming) ? coming : 0;
}

/** Neither a rejected rollout nor a rollback is offered: a rollback takes its stages at once, and concerns no other. */
function isOffered(rolloutState: Ordered, rollout: number): boolean {
  const entry = rolloutState.ledger.find(({ number }) => number === rollout);
  return entry?.rollback === undefined && !isRejected(rolloutState, rollout);
}

/** The newest rollout that a stage may take: an older one when a removed stage had not passed the one that reaches it. */
export function offeredTo(rolloutState: Ordered, index: number, mayStart?: MayStart): number {
  const coming = comingTo(rolloutState, index, mayStart);
  const { bar } = rolloutState.stages[index] ?? {};
  return bar !== undefined && coming > bar.above && coming <= bar.upTo ? bar.above : coming;
}

/** The rollout that a stage may take and that is newer than what it has; undefined without any. */
export function nextFor(rolloutState: Ordered, index: number, mayStart?: MayStart): number | undefined {
  const stage = rolloutState.stages[index];
  const offered = offeredTo(rolloutState, index, mayStart);
  return stage !== undefined && offered > newestIn(stage) ? offered : undefined;
}

/**
 * The rollout that reaches a stage next, as things are now: what a stage before it has passed or updates to, the nearest
 * one first, or the newest one, which no stage has taken; undefined when nothing newer is on its way.
 */
export function onTheWayTo(rolloutState: Ordered, index: number): number | undefined {
  const { stages, ledger } = rolloutState;
  const stage = stages[index];
  if (stage === undefined) return undefined;
  const before = stages.slice(0, index).toReversed();
  const coming = before.flatMap(({ current, updatingTo }) => [current, updatingTo?.rollout]);
  return [...coming, newestPlanned(ledger)?.number].find(
    (number) => number !== undefined && number > newestIn(stage) && isOffered(rolloutState, number),
  );
}

/** The same for a deletion, which replaces everything: only the newest rollout, and no bar keeps it back. */
export function deletionFor(rolloutState: Ordered & Pick<RolloutStateRow, "last">, index: number): number | undefined {
  const stage = rolloutState.stages[index];
  const coming = comingTo(rolloutState, index);
  const isNext = stage !== undefined && coming === rolloutState.last && coming > newestIn(stage);
  return isNext ? coming : undefined;
}

/** The kept rollouts that some stage lacks and that may not start, without rejected ones, the newest first. */
export function keptBack(rolloutState: Ordered, mayStart: MayStart): readonly LedgerEntry[] {
  const { stages, ledger } = rolloutState;
  const least = Math.min(...stages.map(newestIn));
  const isKept = (number: number) => !mayStart(number) && isOffered(rolloutState, number);
  return ledger.filter(({ number }) => number > least && isKept(number));
}

/** The newest rollout of a plan that was desired: a rollback answers no commit. */
export function newestPlanned(ledger: readonly LedgerEntry[]): LedgerEntry | undefined {
  return ledger.find(({ rollback }) => rollback === undefined);
}

/** The newest rollout, when it is rejected and some stage has not passed it, or has gone back from it by itself. */
export function rejectedNewest(rolloutState: Ordered): number | undefined {
  const { stages, ledger } = rolloutState;
  const { number = 0 } = newestPlanned(ledger) ?? {};
  const isLacking = stages.some(({ current = 0 }) => standsFor(rolloutState, current) < number);
  return isLacking && isRejected(rolloutState, number) ? number : undefined;
}

/** The nearest stage before another one that is updating to something newer than the other one has. */
export function newerBefore({ stages }: Pick<RolloutStateRow, "stages">, index: number): StageRecord | undefined {
  const { current = 0 } = stages[index] ?? {};
  return stages.slice(0, index).findLast(({ updatingTo }) => (updatingTo?.rollout ?? 0) > current);
}

/**
 * The stage that takes a rollout next: the stage before has passed it, and this one has nothing as new. The first stage
 * takes any that is newer than what it has.
 */
export function nextStageOf<Stage extends Pick<StageRecord, "current" | "updatingTo">>(
  rollout: number,
  stages: readonly Stage[],
): Stage | undefined {
  return stages.find((stage, index) => {
    const reachesIt = index === 0 || stages[index - 1]?.current === rollout;
    return reachesIt && newestIn(stage) < rollout;
  });
}

/** The stage run's rollout has passed the stage before, and nothing newer comes from there. */
export function isCaughtUp(rolloutState: Ordered, index: number): boolean {
  const { rollout = 0 } = rolloutState.stages[index]?.updatingTo ?? {};
  return comingTo(rolloutState, index) >= rollout && offeredTo(rolloutState, index) <= rollout;
}

/** The first stage that takes less than what reaches it, and the removed stage that had not passed that. */
export function barredIn(
  rolloutState: Ordered,
): { readonly stage: string; readonly removed: string; readonly rollout: number } | undefined {
  for (const [index, { name, bar, current = 0 }] of rolloutState.stages.entries()) {
    const rollout = comingTo(rolloutState, index);
    if (bar !== undefined && rollout > Math.max(current, offeredTo(rolloutState, index)))
      return { stage: name, removed: bar.stage, rollout };
  }
  return undefined;
}

/** True when the newest rollout is every stage's current one, and no stage run is in progress. */
export function isThrough(rolloutState: Pick<RolloutStateRow, "stages" | "last">): boolean {
  return rolloutState.stages.every(
    ({ current, updatingTo }) => updatingTo === undefined && current === rolloutState.last,
  );
}

type Passed = Pick<RolloutStateRow, "stages" | "former" | "rejected">;

/** Whether some stage has passed the rollout, also when no stage has it any more, as long as the ledger keeps it. */
export function hasPassed(
  { stages, former, ledger }: Passed & Pick<RolloutStateRow, "ledger">,
  rollout: number,
): boolean {
  const isCurrent = former === rollout || stages.some(({ current }) => current === rollout);
  return isCurrent || ledger.some(({ number, passed }) => number === rollout && passed === true);
}

/**
 * A target keeps a rollout that is newer than its stage run's when another stage, or a removed one, has passed that: no
 * cluster goes back because it moves to a stage that is behind.
 * @param has - the newest rollout that the cluster was assigned.
 */
export function keepsNewer(
  { stages, former = 0 }: Passed,
  { has, stage, rollout }: { readonly has: number; readonly stage: string; readonly rollout: number },
): boolean {
  if (has <= rollout) return false;
  return former >= has || stages.some(({ name, current = 0 }) => name !== stage && current >= has);
}

/**
 * The newest rollout that a stage gives to its clusters: its current one. A rejected one is given to nobody: instead of
 * it, the stage gives what had passed before, or what a later stage has.
 */
function givenBy(rolloutState: Passed, name: string): number | undefined {
  const index = rolloutState.stages.findIndex((stage) => stage.name === name);
  const { current, previous, unasked } = rolloutState.stages[index] ?? {};
  if (unasked === true) return previous;
  const later = index === -1 ? [] : rolloutState.stages.slice(index + 1).map((stage) => stage.current);
  return [current, previous, ...later].find((number) => number !== undefined && !isRejected(rolloutState, number));
}

/**
 * The rollout of a catch-up: the stage's current one. No cluster goes back by moving: one with something newer gets the
 * oldest current rollout that is as new and that the stage before its own has passed, and otherwise keeps what it has.
 * A rollout that no stage has passed is withdrawn, and a cluster with one that was taken back gets the rollback.
 * @param has - the newest rollout that the cluster was assigned.
 * @returns undefined when it keeps a rejected rollout, which nobody gets again, or when there is none to give.
 */
export function catchUpRollout(
  rolloutState: Passed & Pick<RolloutStateRow, "ledger">,
  { name }: StageRecord,
  has: number,
): number | undefined {
  const { stages, former } = rolloutState;
  const isPassed = hasPassed(rolloutState, has);
  const rollback = takenBackBy(rolloutState, has, name);
  if (isPassed && rollback === undefined && isRejected(rolloutState, has)) return undefined;
  const current = givenBy(rolloutState, name);
  if (current === undefined || has <= current) return current;
  if (rollback !== undefined) {
    const own = stages.find((stage) => stage.name === name);
    return own !== undefined && !mayHave(rolloutState, own, behindRollback(rolloutState, rollback))
      ? current
      : rollback;
  }
  const index = stages.findIndex((stage) => stage.name === name);
  const most = index > 0 ? (stages[index - 1]?.current ?? 0) : Number.POSITIVE_INFINITY;
  const currents = [former, ...stages.map((stage) => stage.current)].filter((number) => number !== undefined);
  const given = currents.filter((number) => number >= has && number <= most && !isRejected(rolloutState, number));
  if (given.length > 0) return Math.min(...given);
  return isPassed ? has : current;
}

/**
 * The newest kept rollback that took a rollout back from the clusters of a stage. One that nobody asked for concerns its
 * stage, and clusters that moved to a later one: the stages before have passed the rollout, and keep it.
 */
function takenBackBy(
  rolloutState: Passed & Pick<RolloutStateRow, "ledger">,
  rollout: number,
  name: string,
): number | undefined {
  if (!isRejected(rolloutState, rollout)) return undefined;
  const place = (stage: string) => rolloutState.stages.findIndex((one) => one.name === stage);
  const concerns = ({ takesBack }: LedgerEntry) =>
    takesBack === undefined || (place(takesBack.stage) !== -1 && place(takesBack.stage) <= place(name));
  const found = rolloutState.ledger.find(
    (entry) => entry.rollback !== undefined && entry.rollback < rollout && rollout < entry.number && concerns(entry),
  );
  return found === undefined || isRejected(rolloutState, found.number) ? undefined : found.number;
}

const given: ReadonlySet<TargetState> = new Set<TargetState>(["Succeeded", "Failed", "Unreachable"]);

/**
 * The cluster was assigned the rollout that its stage is updating to, or that and more: it does not catch up with an
 * older one.
 * @param targets - its targets in stage runs.
 */
export function isAhead(
  { current = 0, updatingTo }: Pick<StageRecord, "current" | "updatingTo">,
  { syncs, targets }: { readonly syncs: readonly SyncRow[]; readonly targets: readonly TargetRow[] },
): boolean {
  if (updatingTo === undefined) return false;
  const has = newestOf(syncs);
  if (has > current && updatingTo.rollout >= has) return true;
  return targets.some(({ stageRun, state, attempts }) => {
    if (!isSameStageRun(stageRun, updatingTo)) return false;
    return state === "Unchanged" || (given.has(state) && Object.keys(attempts).length > 0);
  });
}

type Stages = Pick<RolloutStateRow, "stages" | "ledger">;

/**
 * The stages that a rollback to a rollout takes back: they have had it, or something newer, and have or update to
 * something newer. Nothing reaches a stage that had only older ones, and nobody has approved there what passed only the
 * stages before.
 */
export function coveredBy(rolloutState: Stages, to: number): readonly StageRecord[] {
  return newerThan(rolloutState, to).filter((stage) => mayHave(rolloutState, stage, to));
}

/** The stages that ask for approvals, have something newer than the rollout, and never passed it. */
export function neverAsked(rolloutState: Stages, to: number): readonly StageRecord[] {
  return newerThan(rolloutState, to).filter((stage) => !mayHave(rolloutState, stage, to));
}

function newerThan({ stages }: Stages, to: number): readonly StageRecord[] {
  return stages.filter((stage) => (stage.current ?? 0) >= to && newestIn(stage) > to);
}

/** Whether a stage has passed a rollout, or lets any in without asking. */
function mayHave({ ledger }: Pick<RolloutStateRow, "ledger">, stage: StageRecord, to: number): boolean {
  if (stage.asks !== true) return true;
  const of = (number: number) => ledger.find((entry) => entry.number === number);
  const had = [stage.current, stage.previous].flatMap((number) => number ?? []);
  if (had.some((number) => number === to || of(number)?.rollback === to)) return true;
  const entry = of(to);
  return entry?.passedIn === undefined ? entry?.passed === true : entry.passedIn.includes(stage.name);
}

/** The rollback that has these stages go back to the rollout already, when all of them have or update to it. */
export function backAt(
  { ledger }: Pick<RolloutStateRow, "ledger">,
  stages: readonly StageRecord[],
  to: number,
): number | undefined {
  const numbers = new Set(stages.map(newestIn));
  const entry = numbers.size === 1 ? ledger.find(({ number }) => numbers.has(number)) : undefined;
  return entry?.rollback === to ? entry.number : undefined;
}

/** The other stages that update to something newer: their stage runs end, and they keep what they have. */
export function endedBy({ stages }: Pick<RolloutStateRow, "stages">, to: number): readonly StageRecord[] {
  return stages.filter((stage) => (stage.current ?? 0) < to && newestIn(stage) > to);
}

/** The newest rollout that any stage has or updates to. */
export function newestTaken({ stages }: Pick<RolloutStateRow, "stages">): number {
  return Math.max(0, ...stages.map(newestIn));
}

/**
 * The rollout that a rollback without a number goes back to: what the first stage without the newest rollout has, or
 * else what the stages had before, the last one first. A rollback stands for the rollout that it went to.
 */
export function rollbackTarget(rolloutState: Ordered): number | undefined {
  const { stages, ledger } = rolloutState;
  const newest = newestTaken(rolloutState);
  const without = stages.find((stage) => newestIn(stage) < newest);
  const updating = stages.find(({ current = 0 }) => current < newest);
  const before = stages.toReversed().map(({ previous }) => previous);
  const candidates = [without?.current, updating?.current, ...before].flatMap((number) => {
    const to = number && behindRollback(rolloutState, number);
    const isKept = ledger.some((one) => one.number === to);
    const isPossible = to !== undefined && isKept && !isRejected(rolloutState, to);
    return isPossible && coveredBy(rolloutState, to).length > 0 ? [to] : [];
  });
  return candidates.find((to) => neverAsked(rolloutState, to).length === 0) ?? candidates[0];
}

/** The kept rollouts after the one that a rollback goes back to, up to the newest one that a stage took. */
export function takenAfter(rolloutState: Ordered, to: number): readonly number[] {
  const newest = newestTaken(rolloutState);
  const entries = rolloutState.ledger.filter(({ number, rollback }) => rollback === undefined && number > to);
  return entries.flatMap(({ number }) => (number <= newest ? [number] : []));
}

/** A rollback is the current rollout of each stage that it takes back, from its beginning on. */
export function withRolledBack(rolloutState: Stages, to: number, rollback: number): readonly StageRecord[] {
  const [covered, ended] = [new Set(coveredBy(rolloutState, to)), new Set(endedBy(rolloutState, to))];
  return rolloutState.stages.map((stage) => {
    const { updatingTo: _ended, ...standing } = stage;
    if (ended.has(stage)) return standing;
    if (!covered.has(stage)) return stage;
    const { bar: _past, ahead: _waits, ...kept } = stage;
    return { ...kept, current: rollback };
  });
}

/**
 * The rollout that a stage goes back to when another one has failed there: its current one, or the newest that it may
 * have instead. The rollout of a rollback is the one that it went to, while that is kept.
 */
export function backFrom(rolloutState: Ordered & Passed, name: string, failed: number): number | undefined {
  const { ledger } = rolloutState;
  const had = givenBy(rolloutState, name);
  if (had === undefined || had === failed) return undefined;
  const to = behindRollback(rolloutState, had);
  return [to, had].find(
    (number) => ledger.some((entry) => entry.number === number) && !isRejected(rolloutState, number),
  );
}

/** A rollback that takes one stage back is its current rollout from its beginning on. */
export function withStageBack(
  { stages }: Pick<RolloutStateRow, "stages">,
  name: string,
  rollback: number,
): readonly StageRecord[] {
  return stages.map((stage) => {
    if (stage.name !== name) return stage;
    const { bar: _past, ahead: _waits, unasked: _unasked, ...kept } = stage;
    return { ...kept, current: rollback };
  });
}

/** Whether the newest planned rollout, which is not rejected, has a smaller number than a rollback of some stage. */
export function isOvertaken(rolloutState: Ordered): boolean {
  const { number = 0 } = newestPlanned(rolloutState.ledger) ?? {};
  const isPassedOver = rolloutState.stages.some((stage) => newestIn(stage) > number);
  return number > 0 && isPassedOver && !isRejected(rolloutState, number);
}

/** The rollout that a kept rollback went to; any other rollout is itself. */
export function behindRollback({ ledger }: Pick<RolloutStateRow, "ledger">, rollout: number): number {
  return ledger.find(({ number }) => number === rollout)?.rollback ?? rollout;
}

/** A rollback that nobody asked for stands for the rollout that it went to. */
export function standsFor({ ledger = [] }: Partial<Pick<RolloutStateRow, "ledger">>, rollout: number): number {
  const entry = ledger.find(({ number }) => number === rollout);
  return entry?.takesBack === undefined ? rollout : (entry.rollback ?? rollout);
}

/** Whether an assignment belongs to a rollout after the one that a stage, or a cluster, had. */
export function isAfter({ desired }: Pick<SyncRow, "desired">, rollout: number): boolean {
  return desired.rollout > rollout;
}

/** Whether an assignment belongs to this rollout, or to a later one. */
export function isAsNewAs({ desired }: Pick<SyncRow, "desired">, rollout: number): boolean {
  return desired.rollout >= rollout;
}

/**
 * The oldest kept rollout that is newer than the current one of some stage, and that a stage may take; undefined when no
 * stage is behind. No stage takes a rejected one, or a rollback, from the stage before.
 */
export function nextForAll(rolloutState: Ordered): LedgerEntry | undefined {
  const { stages, ledger } = rolloutState;
  const least = Math.min(...stages.map(({ current = 0 }) => current));
  const isTaken = ({ number, rollback }: LedgerEntry) =>
    number > least && rollback === undefined && !isRejected(rolloutState, number);
  return ledger.filter(isTaken).at(-1);
}

/** The rollout that a cluster of a stage had passed; that of a removed stage is the newest one that such a stage had. */
export function hadBefore(rolloutState: Passed, name: string): number | undefined {
  const { former } = rolloutState;
  return givenBy(rolloutState, name) ?? (former === undefined || isRejected(rolloutState, former) ? undefined : former);
}

/** The numbers that stages name, without what had passed before their current rollouts. */
export function namedRollouts({ stages, former }: Passed): ReadonlySet<number> {
  const numbers = stages.flatMap(({ current, updatingTo, bar }) => [current, updatingTo?.rollout, bar?.above]);
  return new Set([former, ...numbers].flatMap((number = 0) => (number === 0 ? [] : [number])));
}

/** The numbers of rollouts that are kept: stages name them. */
export function keptRollouts(rolloutState: Passed): ReadonlySet<number> {
  return namedRollouts(rolloutState).union(new Set(rolloutState.stages.flatMap(({ previous }) => previous ?? [])));
}

/**
 * A stage run has passed its stage.
 * @param isUnasked - it needed an approval, and had no cluster that anybody could approve.
 * @param isApproved - it needed an approval, and got it.
 */
export function withPassed(
  rolloutState: Passed & Pick<RolloutStateRow, "ledger">,
  name: string,
  {
    isUnasked = false,
    isApproved = false,
    ...passed
  }: StageRunRef & { readonly isUnasked?: boolean; readonly isApproved?: boolean },
): Pick<RolloutStateRow, "stages" | "former" | "ledger"> {
  const { stages, former, ledger } = rolloutState;
  const isRollback = ledger.some((entry) => entry.number === passed.rollout && entry.rollback !== undefined);
  const next = stages.map((stage) => {
    if (stage.name !== name) return stage;
    const { updatingTo: _ended, bar, previous: older, unasked: _unasked, asks, ...kept } = stage;
    const isBarred = bar !== undefined && passed.rollout <= bar.upTo;
    const isNewer = kept.current !== passed.rollout && !isRejected(rolloutState, kept.current ?? 0);
    const previous = isNewer ? kept.current : older;
    // A stage run that changes nothing, and a rollback, ask nobody.
    const isAsking = isApproved || (asks === true && isRollback);
    const marks = {
      ...(isBarred ? { bar } : {}),
      ...(isUnasked ? { unasked: true as const } : {}),
      ...(isAsking ? { asks: true as const } : {}),
    };
    return { ...kept, ...marks, ...defined({ previous }), current: passed.rollout, passed };
  });
  const isNeeded = former !== undefined && next.some(({ current = 0 }) => current < former);
  const entries = ledger.map((entry) => {
    if (entry.number !== passed.rollout) return entry;
    const passedIn = isUnasked ? (entry.passedIn ?? []) : [...new Set([...(entry.passedIn ?? []), name])];
    return entry.passed === true && entry.passedIn === undefined
      ? entry
      : { ...entry, passed: true as const, passedIn };
  });
  return { stages: next, ledger: entries, ...(isNeeded ? { former } : {}) };
}

/** A cluster has joined a stage that passed unasked: the stage has no current rollout until its approvers were asked. */
export function withAsked({ stages }: Pick<RolloutStateRow, "stages">, name: string): Pick<RolloutStateRow, "stages"> {
  return {
    stages: stages.map((stage) => {
      if (stage.name !== name || stage.unasked !== true) return stage;
      const { unasked: _unasked, current: _current, ...kept } = stage;
      return kept;
    }),
  };
}

/** The ledger after a stage got another name. */
export function withNameOfStage(
  { ledger }: Pick<RolloutStateRow, "ledger">,
  before: string,
  name: string,
): readonly LedgerEntry[] {
  return ledger.map((entry) => {
    const { passedIn } = entry;
    if (passedIn?.includes(before) !== true) return entry;
    return { ...entry, passedIn: passedIn.map((one) => (one === before ? name : one)) };
  });
}

/**
 * The newest rollout that a stage had passed and has no longer, because it was removed or its name has other clusters.
 * @param next - the stages after the edit.
 */
export function formerAfter({ former = 0, stages }: Passed, next: readonly StageRecord[]): number {
  const kept = new Map(next.map(({ name, current }) => [name, current]));
  return Math.max(former, ...stages.flatMap(({ name, current = 0 }) => (kept.get(name) === current ? [] : [current])));
}

/** By stage, the newest current rollout of the stages that its members come from. */
export function verifiedBy(
  members: readonly { readonly cluster: string; readonly stage: string }[],
  before: readonly { readonly cluster: string; readonly stage: string }[],
  { stages }: Pick<RolloutStateRow, "stages">,
): ReadonlyMap<string, number> {
  const current = new Map(stages.map((stage) => [stage.name, stage.current ?? 0]));
  const had = new Map(before.map(({ cluster, stage }) => [cluster, current.get(stage)]));
  const verified = new Map<string, number>();
  for (const { cluster, stage } of members) {
    const number = had.get(cluster);
    if (number !== undefined) verified.set(stage, Math.max(number, verified.get(stage) ?? 0));
  }
  return verified;
}

/**
 * The stages of the rollout state under the names of the present spec. A stage is known by its name. A new stage
 * inherits the current rollout of the stage after it, or, when it is the last, of the last one; of one that passed
 * unasked, it inherits the one before. A removed stage ends
 * its stage run, and the stage after it only takes what it had passed. No stage's current rollout is newer than that of
 * the stage before, or, after an edit, than what its clusters come from: a name that moves to other clusters tells
 * nothing about what those have verified. A stage run waits until a stage that is inserted before it has passed the
 * same rollout.
 */
export function stagesNamed(
  {
    stages: before,
    last,
    ledger = [],
  }: Pick<RolloutStateRow, "stages" | "last"> & { readonly ledger?: readonly LedgerEntry[] },
  names: readonly string[],
  { members, verified = new Map() }: StageMembers,
): readonly StageRecord[] {
  const known = new Map(before.map((stage) => [stage.name, stage]));
  const stages: StageRecord[] = [];
  for (const name of names.toReversed()) {
    const from: Partial<StageRecord> = stages[0] ?? before.at(-1) ?? {};
    // Nobody approved what a stage without clusters passed.
    const current = from.unasked === true ? from.previous : from.current;
    const fresh = {
      name,
      changing: 0,
      catchingUp: 0,
      failedCatchUps: 0,
      ...(current === undefined ? {} : { current }),
    };
    stages.unshift({ ...(known.get(name) ?? fresh), members: members.get(name) ?? 0 });
  }
  const inOrder = onNoMore(stages, verified, ledger);
  const waiting = inOrder.map((stage, index) => withAhead(stage, inOrder[index - 1]));
  return before.reduce<readonly StageRecord[]>((all, stage) => withBar(all, stage, { before, last }), waiting);
}

function withAhead({ ahead, ...stage }: StageRecord, before: StageRecord | undefined): StageRecord {
  const { updatingTo } = stage;
  if (updatingTo === undefined || before === undefined) return stage;
  return ahead === true || updatingTo.rollout > (before.current ?? 0) ? { ...stage, ahead: true } : stage;
}

/**
 * Limits each stage to the current rollout of the stage before it, and to what its clusters come from. A stage that went
 * back by itself keeps its rollback, which has a greater number.
 */
function onNoMore(
  stages: readonly StageRecord[],
  verified: ReadonlyMap<string, number>,
  ledger: readonly LedgerEntry[],
): readonly StageRecord[] {
  let most = Number.POSITIVE_INFINITY;
  return stages.map((stage) => {
    const { current = 0, ...rest } = stage;
    const had = standsFor({ ledger }, current);
    most = Math.min(most, had, verified.get(stage.name) ?? Number.POSITIVE_INFINITY);
    if (most === 0) return rest;
    return { ...rest, current: most === had ? current : most };
  });
}

/** By name of the stage. */
export interface StageMembers {
  /** Number of clusters that it has now. */
  readonly members: ReadonlyMap<string, number>;
  /** The newest current rollout of the former stages of its clusters; present when the stages' selection was edited. */
  readonly verified?: ReadonlyMap<string, number>;
}

/** The bar of a removed stage: stages in its place, and the next one that existed already, do without what it lacks. */
function withBar(
  stages: readonly StageRecord[],
  { name, current = 0 }: StageRecord,
  { before, last }: { readonly before: readonly StageRecord[]; readonly last: number },
): readonly StageRecord[] {
  const place = before.findIndex((stage) => stage.name === name);
  const isThere = stages.some((stage) => stage.name === name);
  if (isThere || place === before.length - 1 || current >= last) return stages;
  const earlier = new Set(before.slice(0, place).map((stage) => stage.name));
  const known = new Set(before.map((stage) => stage.name));
  const from = stages.findLastIndex((stage) => earlier.has(stage.name)) + 1;
  const next = stages.findIndex((stage, index) => index >= from && known.has(stage.name));
  const to = next === -1 ? stages.length : next + 1;
  return stages.map((stage, index) => {
    if (index < from || index >= to) return stage;
    const above = Math.max(stage.current ?? 0, Math.min(current, stage.bar?.above ?? current));
    return { ...stage, bar: { stage: name, above, upTo: last } };
  });
}
