/** What stages take next. */
import { frozenIn, isStalled, isUnbegun, stageRunKey, waitingOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

export interface Feed {
  /** Index of the stage. */
  readonly stage: number;
  /** Number of the content, or `newest` for the one that is wanted and has none yet. */
  readonly rollout: number | "newest";
}

export interface Feeding {
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  /** Something is wanted that no stage has taken: the first stage may. */
  readonly isNew: boolean;
  readonly supersede: "pipeline" | "finish";
  /**
   * How many of each leg have a slot, and have used it for nothing for as long as their time would be, or can do nothing with it;
   * by `stageRunKey`.
   */
  readonly stuck: ReadonlyMap<string, number>;
  /** Legs that halt as soon as the time is up of those that can do nothing with their slot; by `stageRunKey`. */
  readonly halting: ReadonlySet<string>;
  /** Those that pass then, and that later stages wait for. */
  readonly passing: ReadonlySet<string>;
  /** What is wanted is that nothing is left: it takes over from anything. */
  readonly deletion: boolean;
  /** When the last suspension ended. */
  readonly resumedAt?: string | undefined;
}

/**
 * The first stage that takes something: an idle one takes the newest content that the stage before it passed, the first
 * one the newest that is wanted. A stage with a leg keeps it until it has passed; only one that is stalled, held, or ahead of
 * the stage before it, or that had assigned nothing when it was suspended, lets another in.
 */
export function nextFeed(rolloutState: RolloutStateRow, feeding: Feeding): Feed | undefined {
  // Nobody could verify anything: clusters that are registered later take it through the stages.
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
    // Where the first stage is behind, and nothing new is wanted: a stage that was removed had taken the newest.
    const offered = feeding.deletion ? comingTo(rolloutState, index) : offeredTo(rolloutState, index);
    if (feeding.deletion && (feeding.isNew || offered !== rolloutState.last)) continue;
    const has = Math.max(stage.current ?? 0, stageRun?.rollout ?? 0);
    if (offered > has && isFree) return { stage: index, rollout: offered };
  }
  return undefined;
}

/** The newest content that comes to a stage: that the stage before it has passed, or, for the first one, the newest there is. */
function comingTo({ stages, ledger }: Pick<RolloutStateRow, "stages" | "ledger">, index: number): number {
  return (index === 0 ? ledger[0]?.number : stages[index - 1]?.current) ?? 0;
}

/** The newest content that a stage may take: less than what comes to it where a removed stage had not passed that. */
export function offeredTo(rolloutState: Pick<RolloutStateRow, "stages" | "ledger">, index: number): number {
  const coming = comingTo(rolloutState, index);
  const { bar } = rolloutState.stages[index] ?? {};
  return bar !== undefined && coming > bar.above && coming <= bar.upTo ? bar.above : coming;
}

/** What goes through a stage has passed the one before it, and nothing newer comes from there. */
export function isCaughtUp(rolloutState: Pick<RolloutStateRow, "stages" | "ledger">, index: number): boolean {
  const { rollout = 0 } = rolloutState.stages[index]?.updatingTo ?? {};
  return comingTo(rolloutState, index) >= rollout && offeredTo(rolloutState, index) <= rollout;
}

/** The first stage that takes less than what comes to it, and which removed stage had not passed that. */
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

/** The legs that go through its stages, in their order. */
export function stageRunsIn(
  { stages }: Pick<RolloutStateRow, "stages">,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): readonly StageRunRow[] {
  return stages.flatMap((stage) => stageRunOf(stage, stageRuns) ?? []);
}

/** The leg that goes through a stage, or else the one that passed it last. */
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
 * Everybody who is left waits for a freeze, for a worker that does nothing, or for what others have to mend: none of that ends by
 * itself. Who waits for a slot goes first, unless nobody can have one before the leg halts; so do later stages, where the leg
 * passes when the time of the others is up.
 */
function isHeld(stageRun: StageRunRow, { stuck, halting, passing }: Feeding): boolean {
  if (stageRun.counts.Assigned !== (stuck.get(stageRunKey(stageRun)) ?? 0) || passing.has(stageRunKey(stageRun)))
    return false;
  return waitingOf(stageRun) === frozenIn(stageRun).length || halting.has(stageRunKey(stageRun));
}

/** Whether a content is on its way that nothing keeps from arriving. */
function isInFlight(rolloutState: RolloutStateRow, feeding: Feeding): boolean {
  return rolloutState.stages.some((stage, index) => {
    const stageRun = stageRunOf(stage, feeding.stageRuns);
    if (stageRun !== undefined && stage.ahead !== true && !isStalled(stageRun) && !isHeld(stageRun, feeding))
      return true;
    return index > 0 && offeredTo(rolloutState, index) > Math.max(stage.current ?? 0, stageRun?.rollout ?? 0);
  });
}

/** True when every stage is on the newest content, and nothing goes through any. */
export function isThrough(rolloutState: RolloutStateRow): boolean {
  return rolloutState.stages.every(
    ({ current, updatingTo }) => updatingTo === undefined && current === rolloutState.last,
  );
}

/**
 * The unit's stages under the names that the spec has now. They are known by name: a new one inherits what the one after
 * it is on, the last one what the last one was, and what a removed one had under way ends: what follows it takes only what
 * it had passed. No stage is on more than the one before it, nor, after an edit, on more than what its clusters come
 * from: a name that goes to other clusters says nothing of what those have verified. What goes through a stage already
 * waits until a stage that is put before it has passed that.
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

/** Each on what the one before it is on, and on what its clusters come from, at most. */
function onNoMore(stages: readonly StageRecord[], verified: ReadonlyMap<string, number>): readonly StageRecord[] {
  let most = Number.POSITIVE_INFINITY;
  return stages.map((stage) => {
    most = Math.min(most, stage.current ?? 0, verified.get(stage.name) ?? Number.POSITIVE_INFINITY);
    if (stage.current === undefined || stage.current <= most) return stage;
    const { current: _on, ...rest } = stage;
    return most === 0 ? rest : { ...rest, current: most };
  });
}

/** Of each stage, by name. */
export interface StageMembers {
  /** How many clusters it has now. */
  readonly members: ReadonlyMap<string, number>;
  /** The newest content that a former stage of one of them is on; given where what stages select was edited. */
  readonly verified?: ReadonlyMap<string, number>;
}

/** Of a stage that is no more: those that are where it was, and the next one that was there already, do without what it lacks. */
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
