/** Every SyncGroup and every Sync that a user wrote, with its state and the versions that its clusters run. */
import { defined } from "#shared/base/defined.ts";
import type { ApiObject } from "#shared/fleet/api/objects.ts";
import { stageRunOf, stageRunsIn } from "#shared/fleet/rollout/stage-runs.ts";
import type { OwnerRow, OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import type { LedgerEntry, RolloutStateRow, StageRecord, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { type ClusterTallies, clusterCounts, haveDesired } from "#shared/fleet/sync/tally.ts";

/** A rollout, and the number of clusters that run it by their stages. */
export interface VersionInFleet extends Pick<LedgerEntry, "number" | "revision" | "at"> {
  readonly clusters: number;
  /** Stages with clusters that run it, in order. */
  readonly stages: readonly string[];
}

export interface OwnerInFleet extends Omit<ApiObject<"SyncGroup" | "Sync", never, OwnerStatus>, "spec" | "apiVersion"> {
  /** The newest rollout, whether or not a cluster runs it, and the others that clusters run, the newest first. */
  readonly versions: readonly VersionInFleet[];
  /** Clusters that wait for closed windows, by the names of the windows over them; absent where none waits. */
  readonly windowWaits?: readonly { readonly window: string; readonly clusters: number }[];
  /** Number of clusters that no rollout has reached yet. `versions` and these are all selected clusters. */
  readonly bare: number;
}

/** @param stageRuns - at least those in progress. */
export function ownerInFleet(
  row: OwnerRow,
  {
    rolloutState,
    stageRuns,
  }: { readonly rolloutState: RolloutStateRow | undefined; readonly stageRuns: ReadonlyMap<string, StageRunRow> },
): OwnerInFleet {
  const { type, name, namespace, uid, generation, version, createdAt, operations, status } = row;
  const known = rolloutState?.uid === uid ? rolloutState : undefined;
  return {
    kind: type,
    metadata: { name, namespace, uid, generation, resourceVersion: String(version), creationTimestamp: createdAt },
    ...(Object.keys(operations).length === 0 ? {} : { operations }),
    status,
    ...versionsOf(known, stageRuns),
    ...windowWaitsOf(known, stageRuns),
  };
}

/** Targets and catch-ups that closed windows hold back. */
function windowWaitsOf(
  rolloutState: RolloutStateRow | undefined,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): Pick<OwnerInFleet, "windowWaits"> {
  if (rolloutState === undefined) return {};
  const { catchUps, catchUpsHeld } = rolloutState;
  const held = [
    ...stageRunsIn(rolloutState, stageRuns).flatMap(({ holds }) =>
      holds.map((hold) => ({ ...hold, clusters: hold.clusters.length })),
    ),
    ...(catchUps.waiting === 0 ? [] : (catchUpsHeld?.holds ?? [])),
  ].filter(({ cause, clusters }) => cause === "window" && clusters > 0);
  if (held.length === 0) return {};
  const windowWaits = [...Map.groupBy(held, ({ name = "" }) => name)].map(([window, holds]) => ({
    window,
    clusters: holds.reduce((total, { clusters }) => total + clusters, 0),
  }));
  return { windowWaits };
}

/** Clusters of an owner that do not run its newest rollout. */
export interface BehindInFleet {
  /** Older rollouts that clusters run. */
  readonly older: readonly VersionInFleet[];
  /** Clusters that no rollout has reached. */
  readonly bare: number;
  /** Clusters whose stage has the newest rollout, but which were not seen with it: they failed, wait or do not answer. */
  readonly unseen: number;
}

export function behindIn({ versions, bare, status: { clusters } }: OwnerInFleet): BehindInFleet {
  const older = versions.slice(1).filter((version) => version.clusters > 0);
  const known = bare + older.reduce((sum, version) => sum + version.clusters, 0);
  const lacking = clusters === undefined ? known : clusters.selected - haveDesired(clusters);
  return { older, bare, unseen: Math.max(0, lacking - known) };
}

/** The planner's last counts; clusters that it has not counted yet, and that nothing has reached, wait. */
export function clustersIn({ versions, bare, status }: OwnerInFleet): ClusterTallies {
  if (status.clusters !== undefined) return status.clusters;
  const selected = bare + versions.reduce((sum, { clusters }) => sum + clusters, 0);
  return clusterCounts(selected, { changing: 0, failed: 0, unreachable: 0, waiting: selected });
}

function versionsOf(
  rolloutState: RolloutStateRow | undefined,
  stageRuns: ReadonlyMap<string, StageRunRow>,
): Pick<OwnerInFleet, "versions" | "bare"> {
  const parts = (rolloutState?.stages ?? []).flatMap((stage) => partsOf(stage, stageRunOf(stage, stageRuns)));
  const versions = (rolloutState?.ledger ?? []).flatMap(({ number, revision, at }): readonly VersionInFleet[] => {
    const own = parts.filter(({ rollout }) => rollout === number);
    if (own.length === 0 && number !== rolloutState?.last) return [];
    return [{ number, revision, at, clusters: sum(own), stages: [...new Set(own.map(({ stage }) => stage))] }];
  });
  const reported = new Set(versions.map(({ number }) => number));
  return { versions, bare: sum(parts.filter(({ rollout }) => rollout === undefined || !reported.has(rollout))) };
}

interface Part {
  readonly stage: string;
  readonly rollout?: number;
  readonly clusters: number;
}

/** In an updating stage, finished clusters run its rollout, and the others the stage's current one. */
function partsOf({ name, current, members }: StageRecord, stageRun: StageRunRow | undefined): readonly Part[] {
  const moved = stageRun === undefined ? 0 : Math.min(members, stageRun.counts.Succeeded + stageRun.counts.Unchanged);
  const parts: readonly Part[] = [
    { stage: name, ...defined({ rollout: stageRun?.rollout }), clusters: moved },
    { stage: name, ...defined({ rollout: current }), clusters: members - moved },
  ];
  return parts.filter(({ clusters }) => clusters > 0);
}

function sum(parts: readonly Part[]): number {
  return parts.reduce((total, { clusters }) => total + clusters, 0);
}
