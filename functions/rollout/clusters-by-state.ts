import type { StoredMember } from "#functions/rollout/fleet.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { stateEntries } from "#functions/rollout/state-entries.ts";
import { stateIndex, syncName } from "#shared/fleet/rows/keys.ts";
import type { SubjectStatus } from "#shared/fleet/rows/object-rows.ts";
import type { Table } from "#shared/ports.ts";

export type ClusterCounts = NonNullable<SubjectStatus["clusters"]>;
type ClusterState = Exclude<keyof ClusterCounts, "selected">;

/** From best to worst: a cluster is what its worst Sync is. */
const severity: readonly ClusterState[] = ["ready", "changing", "waiting", "unreachable", "failed"];

const stateOfPhase: Readonly<Record<string, ClusterState>> = {
  Ready: "ready",
  Assigned: "changing",
  Applying: "changing",
  Verifying: "changing",
  Retrying: "changing",
  Reachable: "unreachable",
  Unreachable: "unreachable",
  Failed: "failed",
};

/** What a phase of a Sync makes of its cluster; undefined for those that are gone or forgotten. */
export function clusterStateOf(phase: string): ClusterState | undefined {
  return stateOfPhase[phase];
}

export function worseOf(a: ClusterState, b: ClusterState): ClusterState {
  return severity.indexOf(a) > severity.indexOf(b) ? a : b;
}

export const noClusters: ClusterCounts = { selected: 0, ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };

/** Names of the Syncs that a cluster of the subject is to have. */
export function syncNames({ subject, desired, head }: Known): readonly string[] {
  const templates = desired.ok ? desired.plan.templates.map((template) => template.name) : (head?.templates ?? []);
  return templates.map((template) => syncName(subject, template));
}

/** Those, and those of templates that are gone and may not be deleted everywhere yet. */
export function everySyncName(known: Known): readonly string[] {
  const gone = (known.head?.templates ?? []).map((template) => syncName(known.subject, template));
  return [...new Set([...syncNames(known), ...gone])];
}

export interface CountedClusters {
  readonly members: readonly StoredMember[];
  /** Those of them of which a row cannot be read: they may be in any state. */
  readonly unreadable: ReadonlySet<string>;
}

/**
 * Counts of the selected clusters by their worst Sync, from the state index: a moment behind, put right by the next
 * look. A cluster that lacks a Sync waits for it, and one that the last rollout could assign nothing has failed.
 */
export async function clustersByState(
  known: Known,
  { members, unreadable }: CountedClusters,
  table: Table,
): Promise<ClusterCounts> {
  const names = new Set(syncNames(known));
  const worst = new Map<string, ClusterState>();
  const found = new Map<string, number>();
  for (const { sort } of await stateEntries(known.subject, table)) {
    const { state: phase = "", cluster = "", sync = "" } = stateIndex.parse(sort) ?? {};
    const state = clusterStateOf(phase);
    if (state === undefined) continue;
    worst.set(cluster, worseOf(worst.get(cluster) ?? "ready", state));
    if (names.has(sync)) found.set(cluster, (found.get(cluster) ?? 0) + 1);
  }
  const unassigned = new Set(known.head?.unassigned);
  const counts = { ...noClusters, selected: members.length };
  for (const { cluster } of members) {
    const missing = (found.get(cluster) ?? 0) < names.size ? "waiting" : "ready";
    const seen = unassigned.has(cluster) ? "failed" : worseOf(worst.get(cluster) ?? "ready", missing);
    counts[unreadable.has(cluster) ? "unreachable" : seen]++;
  }
  return counts;
}
