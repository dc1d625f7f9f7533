/** The facts that the planner decides on, as far as they were read. Pure. */

import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import {
  type DesiredPlan,
  type Member,
  type Relation,
  relationOf,
  stageOf,
} from "#shared/fleet/rollout/desired-plan.ts";
import { lastStageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { Cordon } from "#shared/fleet/rows/cordons-row.ts";
import type { Freeze, FreezeState } from "#shared/fleet/rows/freezes-row.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { FleetRow, FleetVersionRow, OwnerRow, Skip } from "#shared/fleet/rows/object-rows.ts";
import type {
  CatchUpRow,
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  StageRecord,
  StageRunRow,
  TargetRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { NewerRow } from "#shared/fleet/rows/row.ts";
import type { Paused, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { NamedWindow } from "#shared/fleet/rows/windows-row.ts";

/** Facts that grow with an owner's spec (including the clusters that it names), not with its fleet. */
export interface Known {
  readonly owner: Owner;
  readonly row: OwnerRow;
  /** The owner with the guard that is in force for it. */
  readonly guarded: OwnerRow;
  readonly rolloutState: RolloutStateRow;
  /** Current rollouts, those in progress, and the one that a removed stage had passed; by number. */
  readonly rollouts: ReadonlyMap<number, RolloutRow>;
  /** Stage runs in progress, and those that passed each stage last; by `stageRunKey`. */
  readonly stageRuns: ReadonlyMap<string, StageRunRow>;
  readonly desired: DesiredPlan;
  readonly freezeState: FreezeState;
  readonly windows: readonly NamedWindow[];
  /** Those of any cluster; some may have ended. */
  readonly cordons: readonly Cordon[];
  /** Version of the fleet that the owner may select from: when it changes, members may change. */
  readonly fleetVersion: string;
  /** The versions of the fleet's directory, when the owner depends on them. */
  readonly fleetParts: readonly FleetVersionRow[];
}

/** A suspension has ended, and the owner's status does not show it yet. */
export function isResumeNew({ row: { operations, status } }: Pick<Known, "row">): boolean {
  const { suspended, resumed } = operations;
  return suspended === undefined && (resumed?.number ?? 0) > (status.observedOperation ?? 0);
}

/** Targets or catch-ups failed because they could not be rendered, or may have. */
export function lacksRenderings({ rolloutState, stageRuns }: Pick<Known, "rolloutState" | "stageRuns">): boolean {
  const isAny = rolloutState.stages.some((stage) => lastStageRunOf(stage, stageRuns)?.unrendered[0] !== undefined);
  return isAny || rolloutState.catchUps.failed > 0;
}

/** The holder of a lease that only a newer version can read is unknown. */
export type FoundLease = LeaseRow | NewerRow;

/** The rows of one cluster, as far as they were asked for. */
export interface ClusterRows {
  readonly cluster: string;
  /** Absent when it is not registered. */
  readonly fleet?: FleetRow | undefined;
  readonly slot?: SlotRow | undefined;
  readonly lease?: FoundLease | undefined;
  readonly catchUps: readonly CatchUpRow[];
  /** Every Sync of the owner, including those of removed templates. */
  readonly syncs: readonly SyncRow[];
  /** Its targets in the stage runs in progress. */
  readonly targets: readonly TargetRow[];
  /** Its targets in the stage runs that passed last and left it behind, in its stage or another. */
  readonly left: readonly TargetRow[];
  /** Why some of the rows, other than the lease, are missing: only a newer version can read them. */
  readonly newer?: string | undefined;
}

/** It failed, did not answer, or was taken out when its stage run had finished with it. */
export function isLeftBehind({ state, takenOut }: TargetRow): boolean {
  return state === "Failed" || state === "Unreachable" || takenOut === true;
}

type Clock = Deadlines & { readonly now: Date };

/** A slot, with the rows of its cluster. */
export interface SeenSlot {
  readonly slot: SlotRow;
  readonly syncs: readonly SyncRow[];
  readonly catchUps: readonly CatchUpRow[];
  readonly clock: Clock;
  readonly verdict: Verdict;
  /** Why this attempt writes nothing more. */
  readonly paused: Paused | undefined;
  /** A person has skipped its target. */
  readonly skip: Skip | undefined;
  /** When its zone is down unless a worker of the zone runs before. Absent unless the cluster's worker is silent. */
  readonly downFrom?: string;
  /** The zone whose workers it waits for from now on: they are called. */
  readonly movedTo?: string;
  /** Read when a slot is released while a worker may be writing. */
  readonly lease: FoundLease | undefined;
}

export function isSelected({ row }: Pick<Known, "row">, fleet: FleetRow | undefined): fleet is FleetRow {
  return fleet !== undefined && selects(relationOf(row).clusters, fleet);
}

/**
 * The stage of a cluster by its present labels; undefined when it is not selected, or the rollout state has no such
 * stage yet.
 */
export function stageNow(
  { row, rolloutState }: Pick<Known, "row" | "rolloutState">,
  fleet: FleetRow | undefined,
): StageRecord | undefined {
  if (!isSelected({ row }, fleet)) return undefined;
  const own = stageOf(relationOf(row).rollout, fleet);
  return rolloutState.stages.find(({ name }) => name === own);
}

/** Longest lag of an index behind its table, as far as is known. */
export const lagSeconds = 30;

/** Number of clusters that a rollout state names as readable only by a newer version. */
export const keptUnreadable = 100;

/** The facts for the decisions of one step: the rows that were read, and the rollout state with its changes so far. */
export interface Deciding {
  readonly known: Known;
  readonly rolloutState: RolloutStateRow;
  readonly now: Date;
  /** The same time as text. */
  readonly at: string;
  /** @throws Error when no stage names the rollout. */
  rollout(number: number): RolloutRow;
}

export interface Verdict {
  readonly state: "Waiting" | "Assigned" | "Succeeded" | "Failed" | "Unreachable";
  readonly reason: string;
  /** When the time of an Assigned cluster ends. */
  readonly deadline?: string;
}

/** The freezes of one cluster. */
export interface Freezing {
  /** The freeze that covers it now. */
  readonly freeze?: Freeze | undefined;
  /** When a freeze last released it. */
  readonly releasedAt?: string | undefined;
}

/** The facts that limit a cluster's time. */
export interface Deadlines {
  /** Seconds without progress. */
  readonly progressSeconds: number;
  /** The time of a suspension does not count: the present one, and when the last ended. */
  readonly pausedAt?: string | undefined;
  readonly resumedAt?: string | undefined;
  /** The time of a freeze does not count either. */
  readonly freezing?: Freezing | undefined;
}

/** The fleet or the selection changed since the list of members was made, or a cluster could not be read then. */
export function mayHaveOtherMembers(known: Known): boolean {
  const { by, fleet } = selectedNow(known);
  const { selected } = known.rolloutState;
  return selected?.by !== by || selected.fleet !== fleet || (selected.unread ?? []).length > 0;
}

export function selectedNow({ row, fleetVersion }: Known): NonNullable<RolloutStateRow["selected"]> {
  const relation = relationOf(row);
  return { by: selectionOf(relation, stageNames(relation)), fleet: fleetVersion };
}

/** @param names - names of the stages, in order. */
function selectionOf({ clusters, rollout }: Relation, names: readonly string[]): string {
  const stages = rollout.stages.map((stage, index) => ({ name: names[index], clusters: stage.clusters }));
  return digestOf({ clusters, stages });
}

export function stageNames({ rollout }: Relation): readonly string[] {
  return rollout.stages.map(({ name }) => name);
}

/**
 * Maps old names to new ones when only names of stages changed, and no stage had one of the new names: then they are
 * the same stages. After any other change, a stage is known by its name.
 */
export function renamedStages({ rolloutState, row }: Known): ReadonlyMap<string, string> {
  const relation = relationOf(row);
  const [before, names] = [rolloutState.stages.map(({ name }) => name), stageNames(relation)];
  const renamed = before.flatMap((name, index) => (names[index] === name ? [] : [[name, names[index] ?? ""] as const]));
  const areNew = renamed.every(([, name]) => !before.includes(name));
  return new Map(areNew && rolloutState.selected?.by === selectionOf(relation, before) ? renamed : []);
}

/** Nothing that depends on members would change: the changed clusters are no members, and were none. */
export function isSame(
  { before, members }: Readonly<Record<"before" | "members", readonly Member[]>>,
  { rolloutState }: Pick<Known, "rolloutState">,
  now: Pick<RolloutStateRow, "missing"> & NonNullable<RolloutStateRow["selected"]>,
): boolean {
  // Without a version, unreadable clusters are counted again.
  const isCounted =
    rolloutState.members !== undefined && rolloutState.selected?.by === now.by && rolloutState.selected.fleet !== "";
  return isCounted && canonicalJson([before, rolloutState.missing]) === canonicalJson([members, now.missing]);
}
