/**
 * The life of a stage run, in one function: what the run is now, whether a newer rollout may replace it, and when it
 * has to be examined again. Pure.
 */

import { defined } from "#shared/base/defined.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { gateBefore, validApprovals } from "#shared/fleet/rollout/approval.ts";
import { type BakeClock, bakeClock, gateAfter, isInGates } from "#shared/fleet/rollout/bake.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { promotionOf } from "#shared/fleet/rollout/gate-acts.ts";
import type { GateState, Timer } from "#shared/fleet/rollout/gate-state.ts";
import { frozenIn, heldIn } from "#shared/fleet/rollout/holding.ts";
import { isCaughtUp } from "#shared/fleet/rollout/order.ts";
import { rejectedText, rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import {
  changedSize,
  failuresOf,
  hasEnded,
  isSameStageRun,
  isStalled,
  isUnbegun,
  leftOf,
  type StagePace,
  type StageRunReason,
  stageRunKey,
  stageRunsIn,
  waitingOf,
} from "#shared/fleet/rollout/stage-runs.ts";
import { alsoFailed, type GoesBack, goesBack, takeBack } from "#shared/fleet/rollout/take-back.ts";
import { statedText } from "#shared/fleet/rows/act-text.ts";
import type { Act, Approval, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  RolloutRow,
  RolloutStateRow,
  StageRunPhase,
  StageRunRef,
  StageRunRow,
} from "#shared/fleet/rows/rollout-rows.ts";

/** Targets whose attempts cannot progress by themselves, and those of them whose failure would not count. */
export interface Doomed {
  readonly all: number;
  readonly preexisting: number;
}

/** The facts outside of the row that decide about a stage run. */
export interface StageRunFacts {
  /** Settings are read each time, so that a change helps at once. */
  readonly pace: StagePace;
  /** It deletes: it needs no evidence, and leaves no cluster behind. */
  readonly deletion?: boolean;
  /** Its stage has to verify a rollout on a cluster: see `mustVerify`. */
  readonly mustVerify?: boolean;
  /** A stage that an edit put before this one has not passed the rollout: the stage run waits. */
  readonly isAhead?: boolean;
  /** Why its rollout is rejected, by whom. */
  readonly rejected?: string | undefined;
  /** Later stages wait for it. */
  readonly isAwaited?: boolean;
  /** Number of its targets that keep a slot although their time is over, or cannot progress by themselves. */
  readonly stuck?: number;
  readonly doomed?: Doomed;
  /** A person has passed it. */
  readonly promoted?: Act | undefined;
  /** When the last suspension ended. */
  readonly resumedAt?: string | undefined;
  /** The nearest deadline of its attempts. */
  readonly deadline?: string | undefined;
  /** Without it, no bake ends. */
  readonly bakeClock?: BakeClock;
  /** Present when a failed rollout goes back by itself. */
  readonly goesBack?: GoesBack | undefined;
  /** Those of the owner, for any plan. */
  readonly approvals?: readonly Approval[] | undefined;
}

/** The gates of a stage run. */
export interface Gates {
  readonly before?: GateState | undefined;
  readonly after?: GateState | undefined;
}

export interface Advance {
  readonly phase: StageRunPhase;
  readonly reason: StageRunReason;
  readonly message: string;
  readonly timers: readonly Timer[];
  /** A newer rollout may replace the stage run. */
  readonly acceptsNewer: boolean;
  /** `supersede: finish` waits for it. */
  readonly inFlight: boolean;
}

type Assessment = Pick<Advance, "phase" | "reason" | "message">;

/** @returns what the stage run is with these facts, and what happens next. @param gates - other ones, in tests. */
export function advance(stageRun: StageRunRow, facts: StageRunFacts, gates: Gates = gatesOf(stageRun, facts)): Advance {
  const assessed = staying(stageRun, promoted(stageRun, assess(stageRun, facts, gates), facts), facts);
  switch (assessed.phase) {
    case "Gated": {
      // People who approve a rollout are not asked for a newer one before this one has begun.
      const isApproved = validApprovals(stageRun, facts.approvals ?? []).length > 0;
      return { ...assessed, timers: timersOf(gates.before), acceptsNewer: !isApproved, inFlight: false };
    }
    case "Baking":
      return { ...assessed, timers: timersOf(gates.after), acceptsNewer: false, inFlight: true };
    case "Updating": {
      // A bake goes on while a cluster that answers again gets its turn.
      const bakes = isInGates(stageRun);
      const stays = !bakes && (facts.isAhead === true || isHeld(stageRun, facts));
      return {
        ...assessed,
        timers: facts.deadline === undefined ? [] : [{ at: facts.deadline, why: "the deadline of an attempt" }],
        acceptsNewer: stays || (!bakes && wasSuspendedUnbegun(stageRun, facts)),
        inFlight: !stays,
      };
    }
    default:
      return { ...assessed, timers: [], acceptsNewer: true, inFlight: false };
  }
}

function gatesOf(stageRun: StageRunRow, { approvals = [], bakeClock: clock }: StageRunFacts): Gates {
  return { before: gateBefore(stageRun, approvals), after: gateAfter(stageRun, clock) };
}

function timersOf(gate: GateState | undefined): readonly Timer[] {
  return gate?.state === "waiting" ? gate.timers : [];
}

function assess(stageRun: StageRunRow, facts: StageRunFacts, { before, after }: Gates): Assessment {
  const { phase, reason, message } = stageRun;
  if (hasEnded(stageRun)) return { phase, reason: phase, message };
  if (facts.rejected !== undefined) return { phase: "Rejected", reason: "Rejected", message: facts.rejected };
  if (before !== undefined && before.state !== "passed" && isUnbegun(stageRun)) {
    if (before.state === "failed") return gateFailed(before.message);
    return { phase: "Gated", reason: "Gated", message: before.message };
  }
  const settled = assessTargets(stageRun, facts);
  if (settled.phase === "Halted" && isInGates(stageRun))
    return gateFailed(`during the ${stageRun.check === undefined ? "bake" : "check"}, ${settled.message}`);
  if (settled.phase !== "Passed") return settled;
  // A stage run that stood still goes on standing still until the stage before it has passed its rollout.
  if (facts.isAhead === true)
    return isStalled(stageRun) && phase !== "Rejected"
      ? { phase, reason: reason as StageRunReason, message }
      : updating(stageRun);
  if (after === undefined || after.state === "passed") return settled;
  if (after.state === "failed") return gateFailed(after.message);
  return { phase: "Baking", reason: "Baking", message: after.message };
}

function gateFailed(message: string): Assessment {
  return { phase: "GateFailed", reason: "GateFailed", message };
}

/** A failed stage run that does not go back by itself, although others do, says why. */
function staying(stageRun: StageRunRow, assessed: Assessment, { goesBack: back, pace }: StageRunFacts): Assessment {
  const taken = takeBack({ ...stageRun, phase: assessed.phase }, back, pace);
  return taken !== undefined && "stays" in taken
    ? { ...assessed, message: `${assessed.message}; ${taken.stays}` }
    : assessed;
}

/**
 * A person passes a stage run that lacks evidence or answers, and one whose gates have not passed. More failures than
 * the budget before any gate are not passed over, and neither is a stage that was inserted before.
 */
function promoted(stageRun: StageRunRow, assessed: Assessment, { promoted: act, isAhead }: StageRunFacts): Assessment {
  const { phase, message } = assessed;
  if (act === undefined || isAhead === true || !isPromotable({ ...stageRun, phase })) return assessed;
  return { phase: "Passed", reason: "Passed", message: `${statedText("promoted", act)}; ${message}` };
}

const promotable: readonly StageRunPhase[] = ["NothingVerified", "TooManyUnreachable", "Baking", "GateFailed"];

/**
 * A stage run that waits for an approval, or was not approved in time, never passes its stage. That also counts for one
 * without clusters, because the first cluster that joins would catch up with what nobody approved.
 */
export function isPromotable({
  phase,
  expired,
  gates,
  approvedBy,
}: Pick<StageRunRow, "phase" | "expired" | "gates" | "approvedBy">): boolean {
  const isUnapproved = gates?.before !== undefined && approvedBy === undefined;
  return expired !== true && !isUnapproved && promotable.includes(phase);
}

/**
 * Percentages are of the targets that the stage run changes; while some are unknown, of those that it may change.
 * Leaving is no evidence: a stage run whose targets have all left has verified nothing.
 */
function assessTargets(stageRun: StageRunRow, facts: StageRunFacts): Assessment {
  const { pace, deletion = false } = facts;
  const { counts, stage } = stageRun;
  const changed = changedSize(stageRun);
  // A cluster that was unhealthy before keeps its objects as well.
  const failures = deletion ? counts.Failed : failuresOf(stageRun);
  const cordoned = heldIn(stageRun, "cordon").length;
  // A cordoned cluster holds nobody back: the stage passes on the evidence of the others.
  const isOver = waitingOf(stageRun) - cordoned + counts.Assigned === 0;
  const budget = deletion ? 0 : resolveCount(pace.maxFailures, changed);
  const isBack = stageRun.rollback === true;
  const mayHalt = !isBack || (stageRun.takesBack !== undefined && isOver);
  if (failures > budget && mayHalt && (isOver || !deletion)) {
    const [first] = stageRun.failures;
    const why = first === undefined ? "" : `: ${first.cluster}: ${first.reason}`;
    const message = `${failures} of ${clustersText(changed)} failed in stage ${stage} (allowed: ${budget})${why}`;
    const reason = deletion ? "DeletionFailed" : "TooManyFailures";
    return { phase: "Halted", reason, message: alsoFailed(stageRun, message) };
  }
  if (!isOver) return updating(stageRun);
  if (isBack) return wentBack(stageRun);
  const allowed = deletion ? 0 : resolveCount(pace.maxUnreachable, changed, "up");
  if (counts.Unreachable > allowed) {
    const message = `${counts.Unreachable} of ${clustersText(changed)} unreachable in stage ${stage} (allowed: ${allowed})`;
    return { phase: "TooManyUnreachable", reason: "TooManyUnreachable", message };
  }
  if (cordoned > 0 && counts.Succeeded === 0) return updating(stageRun);
  if (!deletion && ((changed > 0 && counts.Succeeded === 0) || isLeft(stageRun, facts)))
    return { phase: "NothingVerified", reason: "NothingVerified", message: nothingVerified(stageRun) };
  return { phase: "Passed", reason: "Passed", message: passedText(stageRun) };
}

/** A rollback ends with what it could not take back: nothing waits for that, and clusters that answer again get it. */
function wentBack(stageRun: StageRunRow): Assessment {
  const { failures, away } = stageRun;
  const failed = failures.map(({ cluster, reason }) => `${cluster}: ${reason}`);
  const message = [passedText(stageRun), ...failed, ...away.map((cluster) => `${cluster}: Unreachable`)].join("; ");
  return { phase: "Passed", reason: "Passed", message };
}

function clustersText(count: number): string {
  return count === 1 ? "1 cluster" : `${count} clusters`;
}

function updating({ stage }: StageRunRow): Assessment {
  return { phase: "Updating", reason: "Updating", message: `stage ${stage} goes on` };
}

/**
 * True when all remaining targets wait for an uncordon, a freeze, a window, an idle worker, or a repair by others: none
 * of that ends by itself. A target that waits for a slot goes first, unless none can get one before the stage run
 * halts; later stages go first as well when the stage run passes at the deadline of the others.
 */
function isHeld(stageRun: StageRunRow, facts: StageRunFacts): boolean {
  if (stageRun.counts.Assigned !== (facts.stuck ?? 0)) return false;
  const end = phaseAtDeadline(stageRun, facts);
  if (end === "Passed" && facts.isAwaited === true) return false;
  return waitingOf(stageRun) === frozenIn(stageRun).length || end === "Halted";
}

/** The phase at the deadline of the attempts that cannot progress by themselves; undefined without such attempts. */
function phaseAtDeadline(stageRun: StageRunRow, { pace, doomed }: StageRunFacts): StageRunPhase | undefined {
  const { all, preexisting } = doomed ?? { all: 0, preexisting: 0 };
  if (all === 0) return undefined;
  const { Assigned, Failed } = stageRun.counts;
  const counts = { ...stageRun.counts, Assigned: Assigned - all, Failed: Failed + all };
  const preexistingFailures = stageRun.preexistingFailures + preexisting;
  return assessTargets({ ...stageRun, counts, preexistingFailures }, { pace }).phase;
}

/** A stage run that had assigned nothing when it was suspended gives way to what is desired at the resume. */
function wasSuspendedUnbegun(stageRun: StageRunRow, { resumedAt = "" }: StageRunFacts): boolean {
  return isUnbegun(stageRun) && stageRun.startedAt < resumedAt;
}

/** The rows of an owner that tell about its stage runs. */
interface OwnRows {
  readonly rolloutState: RolloutStateRow;
  readonly row: OwnerRow;
  readonly rollouts: ReadonlyMap<number, RolloutRow>;
}

/** The stage runs in progress, by `stageRunKey`. @param slots - what was found about their slots, by the same key. */
export function advanceAll(
  known: OwnRows & { readonly stageRuns: ReadonlyMap<string, StageRunRow> },
  slots: { readonly stuck: ReadonlyMap<string, number>; readonly doomed: ReadonlyMap<string, Doomed> },
): ReadonlyMap<string, Advance> {
  return new Map(
    stageRunsIn(known.rolloutState, known.stageRuns).map((stageRun) => {
      const key = stageRunKey(stageRun);
      const ofSlots = defined({ stuck: slots.stuck.get(key), doomed: slots.doomed.get(key) });
      return [key, advance(stageRun, { ...stageRunFacts(known, stageRun), ...ofSlots })] as const;
    }),
  );
}

/** The facts about a stage run in progress that its owner's rows tell. The ones about its slots come from the slots. */
export function stageRunFacts({ rolloutState, row, rollouts }: OwnRows, stageRun: StageRunRef): StageRunFacts {
  const { rollout } = relationOf(row);
  const index = rolloutState.stages.findIndex(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  const stage = rolloutState.stages[index];
  const rejection = rejectionOf(rolloutState, stage?.updatingTo?.rollout ?? 0);
  return {
    pace: rollout,
    deletion: rollouts.get(stageRun.rollout)?.plan.deletion !== undefined,
    mustVerify: stage !== undefined && mustVerify(rollout, stage.name),
    isAhead: stage?.ahead === true && !isCaughtUp(rolloutState, index),
    rejected: rejection && `rollout ${rejection.rollout} ${rejectedText(rejection)}`,
    isAwaited: index < rolloutState.stages.length - 1,
    promoted: promotionOf(row.operations, stageRun),
    resumedAt: row.operations.resumed?.at,
    deadline: rolloutState.deadline,
    approvals: row.operations.approvals,
    goesBack: stage && goesBack(row, rolloutState, stage),
    bakeClock: bakeClock(row.operations, rollout.progressDeadline),
  };
}

/** The first stage verifies on a cluster, unless it is optional. @param name - name of the stage. */
export function mustVerify({ stages }: Pick<RolloutStrategy, "stages">, name: string): boolean {
  const [first] = stages;
  return first?.name === name && first.optional !== true;
}

/**
 * All targets that the stage run was to change have left. Nothing was verified; clusters that joined since may verify
 * it.
 */
export function isLeft(stageRun: StageRunRow, facts: Pick<StageRunFacts, "mustVerify"> = {}): boolean {
  if (stageRun.size === 0) return facts.mustVerify === true;
  return changedSize(stageRun) === 0 && (leftOf(stageRun) > 0 || stageRun.left === true);
}

function nothingVerified({ size, stage, counts, preexistingFailures, takenOut, ...stageRun }: StageRunRow): string {
  if (size === 0)
    return `no cluster matches stage ${stage}; register one there, or set optional: true on the stage to pass without`;
  if (size === counts.Unchanged + counts.Skipped && takenOut === undefined) {
    const left = counts.Skipped === 0 ? "clusters" : counts.Skipped === 1 ? "1 cluster" : `${counts.Skipped} clusters`;
    const when =
      stageRun.left === true ? " before it was verified, or before this snapshot" : " before it was verified";
    return `nothing verified in stage ${stage}: ${left} left${when}`;
  }
  const parts = [
    counts.Unreachable === 0 ? "" : `${counts.Unreachable} Unreachable`,
    counts.Failed === 0 ? "" : `${counts.Failed} Failed`,
    preexistingFailures === 0 ? "" : `${preexistingFailures} of them not ready before`,
    takenOutText(takenOut),
  ];
  return `nothing verified in stage ${stage}: ${parts.filter((part) => part !== "").join(", ")}`;
}

/** `1 taken out by people: c1: skipped by ana: INC-1`. */
function takenOutText(takenOut: StageRunRow["takenOut"]): string {
  if (takenOut === undefined) return "";
  const [first] = takenOut.first;
  return `${takenOut.count} taken out by people${first === undefined ? "" : `: ${first.cluster}: ${first.reason}`}`;
}

function passedText({ size, stage, counts, holds, takenOut }: StageRunRow): string {
  if (size === 0) return `stage ${stage} is empty: passed at once`;
  const cordoned = heldIn({ holds }, "cordon").length;
  const parts = (["Succeeded", "Unchanged", "Failed", "Unreachable", "Skipped"] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state]} ${state.toLowerCase()}`);
  const others = [cordoned === 0 ? "" : `${cordoned} cordoned`, takenOutText(takenOut)].filter((part) => part !== "");
  return `stage ${stage} passed: ${[...parts, ...others].join(", ")}`;
}
