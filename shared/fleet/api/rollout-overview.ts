/** A subject's stages at one glance: what each is on, what goes through it, and what is waited for. */
import { defined } from "#shared/base/defined.ts";
import { contentPhase, type RolloutPhase } from "#shared/fleet/api/content-phase.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { boundOf, changedSize, legKey } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { changingOf, membersOfAll } from "#shared/fleet/rollout/slots.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";
import type { SubjectState } from "#shared/fleet/rows/object-rows.ts";
import type { LedgerEntry, LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import type { Wait, WaitFacts } from "#shared/fleet/waits/wait.ts";
import { waitsOf } from "#shared/fleet/waits/waits.ts";

/** A content in a stage, and what it may bear there. */
export interface OverviewLeg
  extends Pick<
    LegRow,
    "content" | "seal" | "phase" | "reason" | "message" | "size" | "counts" | "preexistingFailures"
  > {
  readonly startedAt: string;
  /** Since when it stands where it does. */
  readonly since: string;
  readonly endedAt?: string;
  readonly allows: { readonly failures: number; readonly unreachable: number };
}

export interface OverviewStage {
  readonly name: string;
  /** Clusters that are in it now. */
  readonly members: number;
  /** The content that it passed last: what its clusters want. */
  readonly on?: number;
  /** What goes through it. */
  readonly moving?: OverviewLeg;
  /** What it passed last, as that ended. */
  readonly passed?: OverviewLeg;
  /** Of its clusters, those that have a slot. */
  readonly changing: number;
}

/** One that a stage is on or moves to, the newest first. */
export interface OverviewContent extends Pick<LedgerEntry, "number" | "revision" | "at"> {
  readonly phase: RolloutPhase;
}

export interface RolloutOverview {
  readonly apiVersion: typeof ourApiVersion;
  readonly kind: "RolloutOverview";
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion: string };
  /** Pace is read live: this is what holds now. */
  readonly spec: { readonly subject: Subject; readonly strategy: RolloutStrategy };
  readonly status: {
    readonly state?: SubjectState;
    /** Number of the newest content; 0 where no cluster was ever selected. */
    readonly newest: number;
    /** Revision that no stage has taken yet. */
    readonly wanted?: string;
    readonly contents: readonly OverviewContent[];
    readonly stages: readonly OverviewStage[];
    /** Clusters that may be changing at once. */
    readonly slots: { readonly used: number; readonly bound: number };
    /** Clusters that joined, came back or moved to another stage. */
    readonly arrivals: UnitRow["arrivals"];
    readonly waits: readonly Wait[];
  };
}

export function rolloutOverview(facts: WaitFacts): RolloutOverview {
  const { row, unit, legs, wanted } = facts;
  const { rollout } = relationOf(row);
  const { subject } = unit;
  return {
    apiVersion: ourApiVersion,
    kind: "RolloutOverview",
    metadata: { name: subject.name, namespace: subject.namespace, resourceVersion: String(unit.version) },
    spec: { subject, strategy: rollout },
    status: {
      ...defined({ state: row.status.state, wanted }),
      newest: unit.last,
      contents: contentsOf(unit, legs),
      stages: unit.stages.map((stage) => overviewStage(stage, facts)),
      slots: { used: changingOf(unit), bound: boundOf(rollout, membersOfAll(unit)) },
      arrivals: unit.arrivals,
      waits: waitsOf(facts),
    },
  };
}

function contentsOf({ ledger, stages, last }: UnitRow, legs: ReadonlyMap<string, LegRow>): readonly OverviewContent[] {
  const named = new Set([last, ...stages.flatMap(({ on, moving }) => [on, moving?.content])]);
  return ledger
    .filter(({ number }) => named.has(number))
    .map(({ number, revision, at }) => {
      const own = [...legs.values()].filter(({ content }) => content === number);
      return { number, revision, at, phase: contentPhase(number, stages, own).phase };
    });
}

function overviewStage(stage: UnitStage, { row, legs }: WaitFacts): OverviewStage {
  const { name, members, on, changing } = stage;
  const { rollout } = relationOf(row);
  const moving = legOf(stage, legs);
  const passed = stage.passed === undefined ? undefined : legs.get(legKey(stage.passed));
  return {
    name,
    members,
    changing,
    ...defined({ on, moving: moving && overviewLeg(moving, rollout), passed: passed && overviewLeg(passed, rollout) }),
  };
}

function overviewLeg(leg: LegRow, { maxFailures, maxUnreachable }: RolloutStrategy): OverviewLeg {
  const { content, seal, phase, reason, message, size, counts, preexistingFailures, startedAt, endedAt } = leg;
  const changed = changedSize(leg);
  return {
    ...{ content, seal, phase, reason, message, size, counts, preexistingFailures, startedAt },
    since: leg.transitions.at(-1)?.at ?? startedAt,
    ...defined({ endedAt }),
    allows: { failures: resolveCount(maxFailures, changed), unreachable: resolveCount(maxUnreachable, changed, "up") },
  };
}
