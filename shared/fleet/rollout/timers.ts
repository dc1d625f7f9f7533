/** The timers of an owner: whether something still goes on, and when it is examined although nobody reports anything. Pure. */

import type { Advance } from "#shared/fleet/rollout/advance.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import type { Timer } from "#shared/fleet/rollout/gate-state.ts";
import { namesHolding } from "#shared/fleet/rollout/holding.ts";
import { holdInForce } from "#shared/fleet/rollout/rollout-hold.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { stageRunOf, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import { jittered, later, watchdogAt } from "#shared/fleet/rows/due.ts";
import { isInForce } from "#shared/fleet/rows/freezes-row.ts";
import type { OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { RolloutStateRow, StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { windowsNamed } from "#shared/fleet/rows/windows-row.ts";
import { nextOpening } from "#shared/fleet/windows/calendar.ts";

/** Seconds between two checks of an owner with nothing to do, for lost messages. */
const idleSeconds = 600;
/** Seconds while clusters change outside its stage runs, or just did in one: the index that shows it lags. */
const changingSeconds = 60;

type Phased = { readonly phase: StageRunPhase };

/**
 * `moving`: a cluster changes, or a stage run may give slots. `waiting`: something is unfinished, and waits for people,
 * for a time, or for another stage. `idle`: nothing is unfinished.
 */
export type Activity = "moving" | "waiting" | "idle";

/** @param facts.stopped - waiting catch-ups that are not tried before somebody asks: nothing goes on for them. */
export function activityOf(facts: {
  readonly rolloutState: Pick<RolloutStateRow, "stages" | "catchUps">;
  readonly stageRuns: ReadonlyMap<string, Phased>;
  readonly stopped?: number | undefined;
}): Activity {
  const { rolloutState, stageRuns, stopped = 0 } = facts;
  const mayGoOn = rolloutState.stages.some(
    (stage) => stage.ahead !== true && stageRunOf(stage, stageRuns)?.phase === "Updating",
  );
  if (changingOf(rolloutState) > 0 || mayGoOn) return "moving";
  const isWaiting = rolloutState.catchUps.waiting > stopped || stageRunsIn(rolloutState, stageRuns).length > 0;
  return isWaiting ? "waiting" : "idle";
}

/** The timers of an owner, without the check for lost messages. @param runs - its stage runs in progress. */
export function timersOf(
  {
    rolloutState,
    freezeState: { freezes },
    row,
    ...known
  }: Pick<Known, "rolloutState" | "stageRuns" | "freezeState" | "windows" | "cordons"> & {
    readonly row: Pick<OwnerRow, "operations">;
  },
  runs: Iterable<Pick<Advance, "timers">>,
  now: Date,
): readonly Timer[] {
  const { deadline, guard } = rolloutState;
  const { until } = holdInForce(row, now) ?? {};
  const resumes = row.operations.suspended?.until;
  const thaws = freezes.filter((one) => isInForce(one, now)).flatMap(({ until }) => until ?? []);
  const stageRuns = { rolloutState, stageRuns: known.stageRuns };
  const cordoned = namesHolding(stageRuns, "cordon");
  const uncordons = known.cordons.flatMap(({ cluster, until: end }) => (cordoned.has(cluster) ? (end ?? []) : []));
  const closed = [...namesHolding(stageRuns, "window")];
  const openings = closed.flatMap((name) => nextOpening(windowsNamed(known.windows, name), now) ?? []);
  return [
    ...[...runs].flatMap(({ timers }) => timers),
    // Catch-ups have slots as well, and a stage run that stands still may have some left.
    ...(deadline === undefined ? [] : [{ at: deadline, why: "the deadline of an attempt" }]),
    ...uncordons.map((at) => ({ at, why: "the end of a cordon" })),
    ...thaws.map((at) => ({ at, why: "the end of a freeze" })),
    ...openings.map((at) => ({ at: at.toISOString(), why: "the next opening of a window" })),
    ...(resumes === undefined ? [] : [{ at: resumes, why: "the end of a suspension" }]),
    ...(until === undefined ? [] : [{ at: until, why: "the end of a hold" }]),
    ...(guard?.withheld ?? []).flatMap(({ until: at }) => (at === undefined ? [] : [{ at, why: "room in a guard" }])),
  ];
}

/**
 * The check for lost messages. While something moves, a worker reports soon. Otherwise the next report is people's, or
 * a timer comes first: a stage run that bakes is not examined more often than an owner with nothing to do.
 * @param isSettled - the index shows what the rows have.
 */
export function watchdogOf(
  { activity, isSettled, pk }: { readonly activity: Activity; readonly isSettled: boolean; readonly pk: string },
  now: Date,
): Timer {
  const seconds = jittered(isSettled ? idleSeconds : changingSeconds, `${pk}${now.toISOString()}`);
  return { at: activity === "moving" ? watchdogAt(now, 0) : later(now, seconds), why: "a message may be lost" };
}

/** The earliest of some timers: the row is due then. */
export function earliestOf(timers: readonly Timer[]): string | undefined {
  return timers.map(({ at }) => at).sort()[0];
}
