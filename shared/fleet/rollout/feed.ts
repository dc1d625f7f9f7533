/** What stages take next. */
import { frozenIn, isStalled, isUnbegun, legKey, waitingOf } from "#shared/fleet/rollout/legs.ts";
import type { LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";

export interface Feed {
  /** Index of the stage. */
  readonly stage: number;
  /** Number of the content, or `newest` for the one that is wanted and has none yet. */
  readonly content: number | "newest";
}

export interface Feeding {
  readonly legs: ReadonlyMap<string, LegRow>;
  /** Something is wanted that no stage has taken: the first stage may. */
  readonly isNew: boolean;
  readonly supersede: "pipeline" | "finish";
  /**
   * How many of each leg have a slot, and have used it for nothing for as long as their time would be, or can do nothing with it;
   * by `legKey`.
   */
  readonly stuck: ReadonlyMap<string, number>;
  /** Legs that halt as soon as the time is up of those that can do nothing with their slot; by `legKey`. */
  readonly halting: ReadonlySet<string>;
  /** Those that pass then, and that later stages wait for. */
  readonly passing: ReadonlySet<string>;
  /** What is wanted is that nothing is left: it takes over from anything. */
  readonly farewell: boolean;
  /** When the last suspension ended. */
  readonly resumedAt?: string | undefined;
}

/**
 * The first stage that takes something: an idle one takes the newest content that the stage before it passed, the first
 * one the newest that is wanted. A stage with a leg keeps it until it has passed; only one that is stalled, held, or ahead of
 * the stage before it, or that had assigned nothing when it was suspended, lets another in.
 */
export function nextFeed(unit: UnitRow, feeding: Feeding): Feed | undefined {
  // Nobody could verify anything: clusters that are registered later take it through the stages.
  if (unit.stages.every(({ members }) => members === 0) && !feeding.farewell) return undefined;
  for (const [index, stage] of unit.stages.entries()) {
    const leg = legOf(stage, feeding.legs);
    const isFree = leg === undefined || letsIn(stage, leg, feeding) || feeding.farewell;
    const before = unit.stages[index - 1];
    if (before === undefined && feeding.isNew) {
      const waits = feeding.supersede === "finish" && !feeding.farewell && isInFlight(unit, feeding);
      if (isFree && !waits) return { stage: index, content: "newest" };
      continue;
    }
    // Where the first stage is behind, and nothing new is wanted: a stage that was removed had taken the newest.
    const offered = feeding.farewell ? comingTo(unit, index) : offeredTo(unit, index);
    if (feeding.farewell && (feeding.isNew || offered !== unit.last)) continue;
    const has = Math.max(stage.on ?? 0, leg?.content ?? 0);
    if (offered > has && isFree) return { stage: index, content: offered };
  }
  return undefined;
}

/** The newest content that comes to a stage: that the stage before it has passed, or, for the first one, the newest there is. */
function comingTo({ stages, ledger }: Pick<UnitRow, "stages" | "ledger">, index: number): number {
  return (index === 0 ? ledger[0]?.number : stages[index - 1]?.on) ?? 0;
}

/** The newest content that a stage may take: less than what comes to it where a removed stage had not passed that. */
export function offeredTo(unit: Pick<UnitRow, "stages" | "ledger">, index: number): number {
  const coming = comingTo(unit, index);
  const { bar } = unit.stages[index] ?? {};
  return bar !== undefined && coming > bar.above && coming <= bar.upTo ? bar.above : coming;
}

/** What goes through a stage has passed the one before it, and nothing newer comes from there. */
export function isCaughtUp(unit: Pick<UnitRow, "stages" | "ledger">, index: number): boolean {
  const { content = 0 } = unit.stages[index]?.moving ?? {};
  return comingTo(unit, index) >= content && offeredTo(unit, index) <= content;
}

/** The first stage that takes less than what comes to it, and which removed stage had not passed that. */
export function barredIn(
  unit: Pick<UnitRow, "stages" | "ledger">,
): { readonly stage: string; readonly removed: string; readonly content: number } | undefined {
  for (const [index, { name, bar, on = 0 }] of unit.stages.entries()) {
    const content = comingTo(unit, index);
    if (bar !== undefined && content > Math.max(on, offeredTo(unit, index)))
      return { stage: name, removed: bar.stage, content };
  }
  return undefined;
}

export function legOf({ moving }: UnitStage, legs: ReadonlyMap<string, LegRow>): LegRow | undefined {
  return moving === undefined ? undefined : legs.get(legKey(moving));
}

/** The legs that go through its stages, in their order. */
export function legsIn({ stages }: Pick<UnitRow, "stages">, legs: ReadonlyMap<string, LegRow>): readonly LegRow[] {
  return stages.flatMap((stage) => legOf(stage, legs) ?? []);
}

/** The leg that goes through a stage, or else the one that passed it last. */
export function lastLegOf({ moving, passed }: UnitStage, legs: ReadonlyMap<string, LegRow>): LegRow | undefined {
  const ref = moving ?? passed;
  return ref === undefined ? undefined : legs.get(legKey(ref));
}

function letsIn({ ahead }: UnitStage, leg: LegRow, feeding: Feeding): boolean {
  const { resumedAt = "" } = feeding;
  return ahead === true || isStalled(leg) || isHeld(leg, feeding) || (isUnbegun(leg) && leg.startedAt < resumedAt);
}

/**
 * Everybody who is left waits for a freeze, for a worker that does nothing, or for what others have to mend: none of that ends by
 * itself. Who waits for a slot goes first, unless nobody can have one before the leg halts; so do later stages, where the leg
 * passes when the time of the others is up.
 */
function isHeld(leg: LegRow, { stuck, halting, passing }: Feeding): boolean {
  if (leg.counts.Assigned !== (stuck.get(legKey(leg)) ?? 0) || passing.has(legKey(leg))) return false;
  return waitingOf(leg) === frozenIn(leg).length || halting.has(legKey(leg));
}

/** Whether a content is on its way that nothing keeps from arriving. */
function isInFlight(unit: UnitRow, feeding: Feeding): boolean {
  return unit.stages.some((stage, index) => {
    const leg = legOf(stage, feeding.legs);
    if (leg !== undefined && stage.ahead !== true && !isStalled(leg) && !isHeld(leg, feeding)) return true;
    return index > 0 && offeredTo(unit, index) > Math.max(stage.on ?? 0, leg?.content ?? 0);
  });
}

/** True when every stage is on the newest content, and nothing goes through any. */
export function isThrough(unit: UnitRow): boolean {
  return unit.stages.every(({ on, moving }) => moving === undefined && on === unit.last);
}

/**
 * The unit's stages under the names that the spec has now. They are known by name: a new one inherits what the one after
 * it is on, the last one what the last one was, and what a removed one had under way ends: what follows it takes only what
 * it had passed. No stage is on more than the one before it, nor, after an edit, on more than what its clusters come
 * from: a name that goes to other clusters says nothing of what those have verified. What goes through a stage already
 * waits until a stage that is put before it has passed that.
 */
export function stagesNamed(
  { stages: before, last }: Pick<UnitRow, "stages" | "last">,
  names: readonly string[],
  { members, verified = new Map() }: StageMembers,
): readonly UnitStage[] {
  const known = new Map(before.map((stage) => [stage.name, stage]));
  const stages: UnitStage[] = [];
  for (const name of names.toReversed()) {
    const { on } = stages[0] ?? before.at(-1) ?? {};
    const fresh = { name, changing: 0, arriving: 0, failedArrivals: 0, ...(on === undefined ? {} : { on }) };
    stages.unshift({ ...(known.get(name) ?? fresh), members: members.get(name) ?? 0 });
  }
  const inOrder = onNoMore(stages, verified);
  const waiting = inOrder.map((stage, index) => withAhead(stage, inOrder[index - 1]));
  return before.reduce<readonly UnitStage[]>((all, stage) => withBar(all, stage, { before, last }), waiting);
}

function withAhead({ ahead, ...stage }: UnitStage, before: UnitStage | undefined): UnitStage {
  const { moving } = stage;
  if (moving === undefined || before === undefined) return stage;
  return ahead === true || moving.content > (before.on ?? 0) ? { ...stage, ahead: true } : stage;
}

/** Each on what the one before it is on, and on what its clusters come from, at most. */
function onNoMore(stages: readonly UnitStage[], verified: ReadonlyMap<string, number>): readonly UnitStage[] {
  let most = Number.POSITIVE_INFINITY;
  return stages.map((stage) => {
    most = Math.min(most, stage.on ?? 0, verified.get(stage.name) ?? Number.POSITIVE_INFINITY);
    if (stage.on === undefined || stage.on <= most) return stage;
    const { on: _on, ...rest } = stage;
    return most === 0 ? rest : { ...rest, on: most };
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
  stages: readonly UnitStage[],
  { name, on = 0 }: UnitStage,
  { before, last }: { readonly before: readonly UnitStage[]; readonly last: number },
): readonly UnitStage[] {
  const place = before.findIndex((stage) => stage.name === name);
  const isThere = stages.some((stage) => stage.name === name);
  if (isThere || place === before.length - 1 || on >= last) return stages;
  const earlier = new Set(before.slice(0, place).map((stage) => stage.name));
  const later = new Set(before.slice(place + 1).map((stage) => stage.name));
  const from = stages.findLastIndex((stage) => earlier.has(stage.name)) + 1;
  const next = stages.findIndex((stage, index) => index >= from && later.has(stage.name));
  const to = next === -1 ? stages.length : next + 1;
  return stages.map((stage, index) => {
    if (index < from || index >= to) return stage;
    const above = Math.max(stage.on ?? 0, Math.min(on, stage.bar?.above ?? on));
    return { ...stage, bar: { stage: name, above, upTo: last } };
  });
}
