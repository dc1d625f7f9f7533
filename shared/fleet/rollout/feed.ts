/** Decides which rollout a stage takes next. */
import { frozenIn, isStalled, isUnbegun, stageRunKey, waitingOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

export interface Feed {
  /** Index of the stage. */
  readonly stage: number;
  /** Number of the rollout, or `newest` for the desired one that has no number yet. */
  readonly rollout: number | "newest";
}

export interface Feeding {
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  /** Something is desired that no stage has taken: the first stage may take it. */
  readonly isNew: boolean;
  readonly supersede: "pipeline" | "finish";
  /**
   * By `stageRunKey`, the number of targets with a slot whose deadline has passed without progress, or whose attempt
   * cannot progress.
   */
  readonly stuck: ReadonlyMap<string, number>;
  /** By `stageRunKey`, stage runs that halt as soon as the deadline of attempts that cannot progress has passed. */
  readonly halting: ReadonlySet<string>;
  /** Stage runs that pass then, and that later stages wait for. */
  readonly passing: ReadonlySet<string>;
  /** The desired state is a deletion: it replaces everything. */
  readonly deletion: boolean;
  /** When the last suspension ended. */
  readonly resumedAt?: string | undefined;
}

/**
 * Finds the first stage that takes a rollout. An idle stage takes the newest rollout that the stage before has passed,
 * and the first stage the newest desired one. A stage keeps its stage run until it passes. It only lets another in when
 * it is stalled, held, ahead of the stage before it, or had assigned nothing when it was suspended.
 */
export function nextFeed(rolloutState: RolloutStateRow, feeding: Feeding): Feed | undefined {
  // No cluster could verify anything: clusters that are registered later take it through the stages.
  if (rolloutState.stages.every(({ members }) => members === 0) && !feeding.deletion) return undefined;
  for (const [index, stage] of rolloutState.stages.entries()) {
    const stageRun = stageRunOf(stage, feeding.stageRuns);
    const isFree = stageRun === undefined || letsIn(stage, stageRun, feeding) || feeding.deletion;
    const before = rolloutState.stages[index - 1];
    if (before === undefined && feeding.isNew) {
      const waits = feeding.supersede === "finish" && !feeding.deletion && isInFlight(rolloutState, feeding);
      if (isFree && !waits) return { stage: index, rollout: "newest" };
      continue;
    }
    // The first stage is behind although nothing new is desired: a removed stage had taken the newest.
    const offered = feeding.deletion ? comingTo(rolloutState, index) : offeredTo(rolloutState, index);
    if (feeding.deletion && (feeding.isNew || offered !== rolloutState.last)) continue;
    const has = Math.max(stage.current ?? 0, stageRun?.rollout ?? 0);
    if (offered > has && isFree) return { stage: index, rollout: offered };
  }
  return undefined;
}

/**
 * The newest rollout that reaches a stage: the one that the stage before has passed, or, for the first stage, the
 * newest.
 */
function comingTo({ stages, ledger }: Pick<RolloutStateRow, "stages" | "ledger">, index: number): number {
  return (index === 0 ? ledger[0]?.number : stages[index - 1]?.current) ?? 0;
}

/** The newest rollout that a stage may take: an older one when a removed stage had not passed the one that reaches it. */
export function offeredTo(rolloutState: Pick<RolloutStateRow, "stages" | "ledger">, index: number): number {
  const coming = comingTo(rolloutState, index);
  const { bar } = rolloutState.stages[index] ?? {};
  return bar !== undefined && coming > bar.above && coming <= bar.upTo ? bar.above : coming;
}

/** The stage run's rollout has passed the stage before, and nothing newer comes from there. */
export function isCaughtUp(rolloutState: Pick<RolloutStateRow, "stages" | "ledger">, index: number): boolean {
  const { rollout = 0 } = rolloutState.stages[index]?.updatingTo ?? {};
  return comingTo(rolloutState, index) >= rollout && offeredTo(rolloutState, index) <= rollout;
}

/** The first stage that takes less than what reaches it, and the removed stage that had not passed that. */
export function barredIn(
  rolloutState: Pick<RolloutStateRow, "stages" | "ledger">,
): { readonly stage: string; readonly removed: string; readonly rollout: number } | undefined {
  for (const [index, { name, bar, current = 0 }] of rolloutState.stages.entries()) {
    const rollout = comingTo(rolloutState, index);
    if (bar !== undefined && rollout > Math.max(current, offeredTo(rolloutState, index)))
      return { stage: name, removed: bar.stage, rollout };
  }
  return undefined;
}

export function stageRunOf(
  { updatingTo }: StageRecord,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): StageRunRow | undefined {
  return updatingTo === undefined ? undefined : stageRuns.get(stageRunKey(updatingTo));
}

/** The stage runs in progress, in the order of stages. */
export function stageRunsIn(
  { stages }: Pick<RolloutStateRow, "stages">,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): readonly StageRunRow[] {
  return stages.flatMap((stage) => stageRunOf(stage, stageRuns) ?? []);
}

/** The stage run in progress, otherwise the one that passed last. */
export function lastStageRunOf(
  { updatingTo, passed }: StageRecord,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): StageRunRow | undefined {
  const ref = updatingTo ?? passed;
  return ref === undefined ? undefined : stageRuns.get(stageRunKey(ref));
}

function letsIn({ ahead }: StageRecord, stageRun: StageRunRow, feeding: Feeding): boolean {
  const { resumedAt = "" } = feeding;
  return (
    ahead === true ||
    isStalled(stageRun) ||
    isHeld(stageRun, feeding) ||
    (isUnbegun(stageRun) && stageRun.startedAt < resumedAt)
  );
}

/**
 * True when all remaining targets wait for a freeze, an idle worker, or a repair by others: none of that ends by
 * itself. A target that waits for a slot goes first, unless none can get one before the stage run halts; later stages
 * go first as well when the stage run passes at the deadline of the others.
 */
function isHeld(stageRun: StageRunRow, { stuck, halting, passing }: Feeding): boolean {
  if (stageRun.counts.Assigned !== (stuck.get(stageRunKey(stageRun)) ?? 0) || passing.has(stageRunKey(stageRun)))
    return false;
  return waitingOf(stageRun) === frozenIn(stageRun).length || halting.has(stageRunKey(stageRun));
}

/** Whether a rollout is in progress that nothing keeps from reaching the stage. */
function isInFlight(rolloutState: RolloutStateRow, feeding: Feeding): boolean {
  return rolloutState.stages.some((stage, index) => {
    const stageRun = stageRunOf(stage, feeding.stageRuns);
    if (stageRun !== undefined && stage.ahead !== true && !isStalled(stageRun) && !isHeld(stageRun, feeding))
      return true;
    return index > 0 && offeredTo(rolloutState, index) > Math.max(stage.current ?? 0, stageRun?.rollout ?? 0);
  });
}

/** True when the newest rollout is every stage's current one, and no stage run is in progress. */
export function isThrough(rolloutState: RolloutStateRow): boolean {
  return rolloutState.stages.every(
    ({ current, updatingTo }) => updatingTo === undefined && current === rolloutState.last,
  );
}

/**
 * The stages of the rollout state under the names of the present spec. A stage is known by its name. A new stage
 * inherits the current rollout of the stage after it, or, when it is the last, of the last one. A removed stage ends
 * its stage run, and the stage after it only takes what it had passed. No stage's current rollout is newer than that of
 * the stage before, or, after an edit, than what its clusters come from: a name that moves to other clusters tells
 * nothing about what those have verified. A stage run waits until a stage that is inserted before it has passed the
 * same rollout.
 */
export function stagesNamed(
  { stages: before, last }: Pick<RolloutStateRow, "stages" | "last">,
  names: readonly string[],
  { members, verified = new Map() }: StageMembers,
): readonly StageRecord[] {
  const known = new Map(before.map((stage) => [stage.name, stage]));
  const stages: StageRecord[] = [];
  for (const name of names.toReversed()) {
    const { current } = stages[0] ?? before.at(-1) ?? {};
    const fresh = {
      name,
      changing: 0,
      catchingUp: 0,
      failedCatchUps: 0,
      ...(current === undefined ? {} : { current }),
    };
    stages.unshift({ ...(known.get(name) ?? fresh), members: members.get(name) ?? 0 });
  }
  const inOrder = onNoMore(stages, verified);
  const waiting = inOrder.map((stage, index) => withAhead(stage, inOrder[index - 1]));
  return before.reduce<readonly StageRecord[]>((all, stage) => withBar(all, stage, { before, last }), waiting);
}

function withAhead({ ahead, ...stage }: StageRecord, before: StageRecord | undefined): StageRecord {
  const { updatingTo } = stage;
  if (updatingTo === undefined || before === undefined) return stage;
  return ahead === true || updatingTo.rollout > (before.current ?? 0) ? { ...stage, ahead: true } : stage;
}

/** Limits each stage to the current rollout of the stage before it, and to what its clusters come from. */
function onNoMore(stages: readonly StageRecord[], verified: ReadonlyMap<string, number>): readonly StageRecord[] {
  let most = Number.POSITIVE_INFINITY;
  return stages.map((stage) => {
    most = Math.min(most, stage.current ?? 0, verified.get(stage.name) ?? Number.POSITIVE_INFINITY);
    if (stage.current === undefined || stage.current <= most) return stage;
    const { current: _on, ...rest } = stage;
    return most === 0 ? rest : { ...rest, current: most };
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
  const later = new Set(before.slice(place + 1).map((stage) => stage.name));
  const from = stages.findLastIndex((stage) => earlier.has(stage.name)) + 1;
  const next = stages.findIndex((stage, index) => index >= from && later.has(stage.name));
  const to = next === -1 ? stages.length : next + 1;
  return stages.map((stage, index) => {
    if (index < from || index >= to) return stage;
    const above = Math.max(stage.current ?? 0, Math.min(current, stage.bar?.above ?? current));
    return { ...stage, bar: { stage: name, above, upTo: last } };
  });
}
