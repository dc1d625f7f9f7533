/** Every SyncGroup and every Sync that a user wrote, with how it is, and which version its clusters run. */
import { defined } from "#shared/base/defined.ts";
import type { ApiObject } from "#shared/fleet/api/objects.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import type { SubjectRow, SubjectStatus } from "#shared/fleet/rows/object-rows.ts";
import type { LedgerEntry, LegRow, UnitRow, UnitStage } from "#shared/fleet/rows/rollout-rows.ts";
import { type ClusterTallies, clusterCounts, haveWanted } from "#shared/fleet/sync/tally.ts";

/** A content, and the clusters that it is on by what their stages say. */
export interface VersionInFleet extends Pick<LedgerEntry, "number" | "revision" | "at"> {
  readonly clusters: number;
  /** Those with clusters on it, in their order. */
  readonly stages: readonly string[];
}

export interface SubjectInFleet
  extends Omit<ApiObject<"SyncGroup" | "Sync", never, SubjectStatus>, "spec" | "apiVersion"> {
  /** The newest first: the newest of all, whether or not a cluster is on it, and those that clusters are on. */
  readonly versions: readonly VersionInFleet[];
  /** Clusters that no content was brought to yet. `versions` and these are all clusters that are selected. */
  readonly bare: number;
}

/** @param legs - at least those that go through a stage of the unit. */
export function subjectInFleet(
  row: SubjectRow,
  { unit, legs }: { readonly unit: UnitRow | undefined; readonly legs: ReadonlyMap<string, LegRow> },
): SubjectInFleet {
  const { type, name, namespace, uid, generation, version, createdAt, operations, status } = row;
  const known = unit?.uid === uid ? unit : undefined;
  return {
    kind: type,
    metadata: { name, namespace, uid, generation, resourceVersion: String(version), creationTimestamp: createdAt },
    ...(Object.keys(operations).length === 0 ? {} : { operations }),
    status,
    ...versionsOf(known, legs),
  };
}

/** Clusters of a subject that are not on its newest content. */
export interface BehindInFleet {
  /** Older contents that clusters are on. */
  readonly older: readonly VersionInFleet[];
  /** Clusters that nothing ever came to. */
  readonly bare: number;
  /** Clusters whose stage is on the newest content, and that were not seen to have it: they failed, wait or do not answer. */
  readonly unseen: number;
}

export function behindIn({ versions, bare, status: { clusters } }: SubjectInFleet): BehindInFleet {
  const older = versions.slice(1).filter((version) => version.clusters > 0);
  const known = bare + older.reduce((sum, version) => sum + version.clusters, 0);
  const lacking = clusters === undefined ? known : clusters.selected - haveWanted(clusters);
  return { older, bare, unseen: Math.max(0, lacking - known) };
}

/** As the planner counted them last; of what it has not counted yet, those that nothing came to wait. */
export function clustersIn({ versions, bare, status }: SubjectInFleet): ClusterTallies {
  if (status.clusters !== undefined) return status.clusters;
  const selected = bare + versions.reduce((sum, { clusters }) => sum + clusters, 0);
  return clusterCounts(selected, { changing: 0, failed: 0, unreachable: 0, waiting: selected });
}

function versionsOf(
  unit: UnitRow | undefined,
  legs: ReadonlyMap<string, LegRow>,
): Pick<SubjectInFleet, "versions" | "bare"> {
  const parts = (unit?.stages ?? []).flatMap((stage) => partsOf(stage, legOf(stage, legs)));
  const versions = (unit?.ledger ?? []).flatMap(({ number, revision, at }): readonly VersionInFleet[] => {
    const own = parts.filter(({ content }) => content === number);
    if (own.length === 0 && number !== unit?.last) return [];
    return [{ number, revision, at, clusters: sum(own), stages: [...new Set(own.map(({ stage }) => stage))] }];
  });
  const told = new Set(versions.map(({ number }) => number));
  return { versions, bare: sum(parts.filter(({ content }) => content === undefined || !told.has(content))) };
}

interface Part {
  readonly stage: string;
  readonly content?: number;
  readonly clusters: number;
}

/** Of a stage that something goes through, those that it came to are on it, and the others on what the stage was. */
function partsOf({ name, on, members }: UnitStage, leg: LegRow | undefined): readonly Part[] {
  const moved = leg === undefined ? 0 : Math.min(members, leg.counts.Succeeded + leg.counts.Unchanged);
  const parts: readonly Part[] = [
    { stage: name, ...defined({ content: leg?.content }), clusters: moved },
    { stage: name, ...defined({ content: on }), clusters: members - moved },
  ];
  return parts.filter(({ clusters }) => clusters > 0);
}

function sum(parts: readonly Part[]): number {
  return parts.reduce((total, { clusters }) => total + clusters, 0);
}
