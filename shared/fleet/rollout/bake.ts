/**
 * The bake of a stage run: how long its clusters must stay within the budgets before the rollout passes the stage, and
 * the check of each of them at the end. Pure.
 */

import { secondsOf } from "#shared/fleet/kinds/quantities.ts";
import { alarmFailure, alarmsAwaited, isEndedByAlarm } from "#shared/fleet/rollout/alarms.ts";
import { freezeOfBake, frozenSeconds } from "#shared/fleet/rollout/bake-freezes.ts";
import { checkGate, isEndedByCheck } from "#shared/fleet/rollout/check-gate.ts";
import type { GateState } from "#shared/fleet/rollout/gate-state.ts";
import { changedSize } from "#shared/fleet/rollout/stage-runs.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import type { Bake, StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Observed, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { phaseTallies } from "#shared/fleet/sync/tally.ts";

/** The facts about an owner that its bakes depend on. */
export interface BakeClock {
  /** Seconds of all suspensions that have ended. */
  readonly stood: number;
  /** When the present suspension began; undefined without one. */
  readonly suspendedAt: string | undefined;
  /** Seconds that the check at the end may take. */
  readonly progressSeconds: number;
  readonly resumedAt: string | undefined;
}

export function bakeClock(
  { suspended, resumed }: Pick<Operations, "suspended" | "resumed">,
  progressDeadline: string,
): BakeClock {
  return {
    stood: (suspended ?? resumed)?.stood ?? 0,
    suspendedAt: suspended?.at,
    resumedAt: resumed?.at,
    progressSeconds: secondsOf(progressDeadline),
  };
}

/** The duration of the stage run's bake; undefined when it has none. */
export function bakeOf({ gates }: Pick<StageRunRow, "gates">): string | undefined {
  return gates?.after?.find(({ bake }) => bake !== undefined)?.bake;
}

/** Whether the gates after the targets of the stage run have begun. */
export function isInGates({ bake, check }: Pick<StageRunRow, "bake" | "check">): boolean {
  return (bake ?? check) !== undefined;
}

/** The stage run before the gates after its targets: they begin anew. */
export function withoutGates({ bake: _bake, check: _check, ...stageRun }: StageRunRow): StageRunRow {
  return stageRun;
}

/** An alarm or a check has ended the gates: no cluster has failed there that could get another turn. */
export function isEndedFromOutside(stageRun: Pick<StageRunRow, "phase" | "bake" | "check">): boolean {
  return isEndedByAlarm(stageRun) || isEndedByCheck(stageRun);
}

/** A stage run that changes nothing has no gates, unless clusters may have its content from attempts that did not pass. */
function hasGates(stageRun: StageRunRow): boolean {
  return isInGates(stageRun) || stageRun.adopts === true || changedSize(stageRun) > 0;
}

/** @returns the state of the gates after the stage run's targets; undefined when it has none. */
export function gateAfter(stageRun: StageRunRow, clock: BakeClock | undefined): GateState | undefined {
  if (!hasGates(stageRun)) return undefined;
  const bake = bakeGate(stageRun, clock);
  return bake === undefined || bake.state === "passed" ? (checkGate(stageRun) ?? bake) : bake;
}

/** @returns the state of the bake with its alarms; undefined when the stage run has none. */
export function bakeGate(stageRun: StageRunRow, clock: BakeClock | undefined): GateState | undefined {
  const duration = bakeOf(stageRun);
  if (duration === undefined) return undefined;
  const { bake, stage, size } = stageRun;
  const failed = alarmFailure(stageRun);
  if (failed !== undefined) return failed;
  const what = `stage ${stage} bakes for ${duration}`;
  if (bake === undefined) return { state: "waiting", message: what, timers: [] };
  if (bake.check !== undefined) {
    if (bake.check.seen >= size) {
      const awaited = alarmsAwaited(stageRun);
      if (awaited === undefined) return { state: "passed" };
      return { state: "waiting", message: `stage ${stage} has baked for ${duration}: ${awaited}`, timers: [] };
    }
    const at = clock && checkEnd(bake.check, clock);
    const why = "the end of the check after a bake";
    const message = `stage ${stage} has baked for ${duration}: each cluster is checked once more`;
    return { state: "waiting", message, timers: at === undefined ? [] : [{ at, why }] };
  }
  const at = clock && bakedAt(stageRun, clock);
  if (at === undefined) return { state: "waiting", message: what, timers: [] };
  return { state: "waiting", message: `${what}, until ${at}`, timers: [{ at, why: "the end of a bake" }] };
}

/** The clock starts; a suspension does not run it. */
export function bakeFrom({ stood, suspendedAt }: BakeClock, now: Date): Bake {
  const standing = suspendedAt === undefined ? 0 : Math.max(0, now.getTime() - Date.parse(suspendedAt)) / 1000;
  return { from: now.toISOString(), stood: stood + standing };
}

/** When the bake is over; undefined while its owner is suspended or every target is frozen, or before it has begun. */
export function bakedAt(stageRun: StageRunRow, { stood, suspendedAt }: BakeClock): string | undefined {
  const { bake } = stageRun;
  const duration = bakeOf(stageRun);
  if (bake === undefined || duration === undefined || suspendedAt !== undefined) return undefined;
  if (freezeOfBake(bake) !== undefined) return undefined;
  return later(bake.from, secondsOf(duration) + Math.max(0, stood - bake.stood) + frozenSeconds(bake));
}

/** When a cluster that has not been checked counts as unreachable; undefined while the owner is suspended. */
export function checkEnd(
  { since }: NonNullable<Bake["check"]>,
  { suspendedAt, resumedAt = "", progressSeconds }: BakeClock,
): string | undefined {
  if (suspendedAt !== undefined) return undefined;
  return later(since > resumedAt ? since : resumedAt, progressSeconds);
}

/** Its clusters are being checked at the end of the bake: their reports come one after the other, and nobody counts meanwhile. */
export function isCheckedAfterBake({ phase, bake, size }: Pick<StageRunRow, "phase" | "bake" | "size">): boolean {
  return phase === "Baking" && bake?.check !== undefined && bake.check.seen < size;
}

/** The number by which workers report this check. Those of people's requests are positive. */
export function checkNumber({ snapshot }: Pick<StageRunRow, "snapshot">): number {
  return -snapshot;
}

/** Whether the target tells something about the bake of its stage run: what it did not change is not its fault. */
export function isBaked({ adopts }: Pick<StageRunRow, "adopts">, { state }: Pick<TargetRow, "state">): boolean {
  return state === "Succeeded" || (state === "Unchanged" && adopts === true);
}

type Attempted = Pick<TargetRow, "attempts" | "state">;

/** The Syncs of a cluster that have what the target assigned, or found there. */
function ownSyncs({ attempts, state }: Attempted, syncs: readonly SyncRow[]): readonly SyncRow[] {
  return syncs.filter(({ name, desired }) =>
    state === "Unchanged" ? desired.action === "apply" : attempts[name] === desired.attempt,
  );
}

/** The worker's report about the newest attempt of a Sync; undefined when its worker has not reported about it. */
function seenOf({ desired, observed }: SyncRow): Observed | undefined {
  return observed?.attempt === desired.attempt ? observed : undefined;
}

/** The report of a failure on a target; undefined when none of its Syncs does. */
export function failureIn(target: Attempted, syncs: readonly SyncRow[]): Observed | undefined {
  return ownSyncs(target, syncs)
    .flatMap((sync) => seenOf(sync) ?? [])
    .find(({ phase }) => phaseTallies[phase] === "failed");
}

/**
 * The result of a target at the check at the end of a bake; undefined while a Sync of it was not checked. A later request
 * of people is answered by a check as well, and so is the check by an attempt that was assigned after it began.
 * @param asked - the number of the check, and when it began.
 */
export function checkedAs(
  target: Attempted,
  syncs: readonly SyncRow[],
  { number, since }: { readonly number: number; readonly since: string },
): "ready" | "failed" | "changing" | undefined {
  const own = ownSyncs(target, syncs).filter(({ paused }) => paused === undefined);
  const isAnswered = (sync: SyncRow) => {
    const seen = seenOf(sync);
    if (seen === undefined || phaseTallies[seen.phase] === "unreachable") return false;
    if (sync.desired.assignedAt > since) return true;
    const asked = sync.reconcile === undefined || sync.reconcile === number ? number : sync.reconcile;
    return seen.handledReconcile === asked;
  };
  if (!own.every(isAnswered)) return undefined;
  if (failureIn(target, own) !== undefined) return "failed";
  return own.some((sync) => phaseTallies[seenOf(sync)?.phase ?? ""] === "changing") ? "changing" : "ready";
}
