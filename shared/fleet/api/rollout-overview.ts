/** An owner's stages at a glance: each stage's current rollout, its stage run in progress, and what is waited for. */
import { defined } from "#shared/base/defined.ts";
import { type RolloutPhase, rolloutPhase } from "#shared/fleet/api/rollout-phase.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { rejectionOf } from "#shared/fleet/rollout/rejection.ts";
import { changingOf, membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { boundOf, changedSize, stageRunKey, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { OwnerState } from "#shared/fleet/rows/object-rows.ts";
import type {
  LedgerEntry,
  RolloutStateRow,
  StageRecord,
  StageRunRow,
  WithheldChange,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Wait, WaitFacts } from "#shared/fleet/waits/wait.ts";
import { waitsOf } from "#shared/fleet/waits/waits.ts";

/** A rollout in a stage, and its budgets there. */
export interface OverviewStageRun
  extends Pick<
    StageRunRow,
    "rollout" | "snapshot" | "phase" | "reason" | "message" | "size" | "counts" | "preexistingFailures" | "planHash"
  > {
  readonly startedAt: string;
  /** Since when it has its present phase. */
  readonly since: string;
  readonly endedAt?: string;
  readonly allows: { readonly failures: number; readonly unreachable: number };
}

export interface OverviewStage {
  readonly name: string;
  /** Number of clusters in the stage now. */
  readonly members: number;
  /** The stage's current rollout: its clusters desire it. */
  readonly current?: number;
  /** Equal for current rollouts with an equal plan and equal inputs: a part of the hashes that people approve. */
  readonly identity?: string;
  /** The stage run in progress. */
  readonly updatingTo?: OverviewStageRun;
  /** The stage run that passed last. */
  readonly passed?: OverviewStageRun;
  /** Number of its clusters that have a slot. */
  readonly changing: number;
  /** The plan that people may approve before the rollout reaches the stage. */
  readonly ahead?: { readonly rollout: number; readonly plan: string; readonly clusters: number };
}

/** A rollout that is a stage's current one or in progress, the newest first. */
export interface OverviewRollout extends Pick<LedgerEntry, "number" | "revision" | "at"> {
  readonly phase: RolloutPhase;
}

export interface RolloutOverview {
  readonly apiVersion: typeof ourApiVersion;
  readonly kind: "RolloutOverview";
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion: string };
  /** The pace is read each time, so that this is what holds now. */
  readonly spec: { readonly owner: Owner; readonly strategy: RolloutStrategy };
  readonly status: {
    readonly state?: OwnerState;
    /** Number of the newest rollout; 0 when no cluster was ever selected. */
    readonly newest: number;
    /** Revision that no stage has taken yet. */
    readonly desired?: string;
    readonly rollouts: readonly OverviewRollout[];
    readonly stages: readonly OverviewStage[];
    /** Templates that clusters may have. */
    readonly templates: readonly string[];
    /** Number of clusters that may change at once. */
    readonly slots: { readonly used: number; readonly bound: number };
    /** Clusters that joined, returned or moved to another stage. */
    readonly catchUps: RolloutStateRow["catchUps"];
    /** The changes that a guard withholds, when there are any. */
    readonly withheld?: readonly WithheldChange[];
    readonly waits: readonly Wait[];
  };
}

export function rolloutOverview(facts: WaitFacts): RolloutOverview {
  const { row, rolloutState, stageRuns, desired } = facts;
  const { rollout } = relationOf(row);
  const { owner, guard: { withheld } = { withheld: [] } } = rolloutState;
  return {
    apiVersion: ourApiVersion,
    kind: "RolloutOverview",
    metadata: { name: owner.name, namespace: owner.namespace, resourceVersion: String(rolloutState.version) },
    spec: { owner, strategy: rollout },
    status: {
      ...defined({ state: row.status.state, desired }),
      newest: rolloutState.last,
      rollouts: rolloutsOf(rolloutState, stageRuns),
      stages: rolloutState.stages.map((stage) => overviewStage(stage, facts)),
      templates: rolloutState.templates,
      slots: { used: changingOf(rolloutState), bound: boundOf(rollout, membersOfAll(rolloutState)) },
      catchUps: rolloutState.catchUps,
      ...(withheld.length === 0 ? {} : { withheld }),
      waits: waitsOf(facts),
    },
  };
}

function rolloutsOf(
  rolloutState: RolloutStateRow,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): readonly OverviewRollout[] {
  const { ledger, stages, last } = rolloutState;
  const named = new Set([last, ...stages.flatMap(({ current, updatingTo }) => [current, updatingTo?.rollout])]);
  return ledger
    .filter(({ number }) => named.has(number))
    .map(({ number, revision, at }) => {
      const own = [...stageRuns.values()].filter(({ rollout }) => rollout === number);
      return {
        number,
        revision,
        at,
        phase: rolloutPhase(number, stages, own, rejectionOf(rolloutState, number)).phase,
      };
    });
}

function overviewStage(stage: StageRecord, { row, stageRuns, rolloutState }: WaitFacts): OverviewStage {
  const { name, members, current, changing, gated } = stage;
  const { rollout } = relationOf(row);
  const updatingTo = stageRunOf(stage, stageRuns);
  const passed = stage.passed === undefined ? undefined : stageRuns.get(stageRunKey(stage.passed));
  return {
    name,
    members,
    changing,
    ...defined({
      current,
      identity: rolloutState.ledger.find(({ number }) => number === current)?.identity,
      ahead: gated && { rollout: gated.rollout, plan: gated.planHash, clusters: gated.parts.size },
      updatingTo: updatingTo && overviewStageRun(updatingTo, rollout),
      passed: passed && overviewStageRun(passed, rollout),
    }),
  };
}

function overviewStageRun(stageRun: StageRunRow, { maxFailures, maxUnreachable }: RolloutStrategy): OverviewStageRun {
  const { rollout, snapshot, phase, reason, message, size, counts, preexistingFailures, startedAt, endedAt, planHash } =
    stageRun;
  const changed = changedSize(stageRun);
  return {
    ...{ rollout, snapshot, phase, reason, message, size, counts, preexistingFailures, startedAt },
    since: stageRun.transitions.at(-1)?.at ?? startedAt,
    ...defined({ endedAt, planHash }),
    allows: { failures: resolveCount(maxFailures, changed), unreachable: resolveCount(maxUnreachable, changed, "up") },
  };
}
