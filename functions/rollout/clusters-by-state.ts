import type { Known } from "#functions/rollout/read-subject.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { stateEntries } from "#functions/rollout/state-entries.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { membersOfAll } from "#shared/fleet/rollout/slots.ts";
import { ranges, stateIndex, syncName } from "#shared/fleet/rows/keys.ts";
import type { SubjectStatus } from "#shared/fleet/rows/object-rows.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

export type ClusterCounts = NonNullable<SubjectStatus["clusters"]>;
type ClusterState = Exclude<keyof ClusterCounts, "selected">;

/** From best to worst: a cluster is what its worst Sync is. */
const severity: readonly ClusterState[] = ["ready", "changing", "waiting", "unreachable", "failed"];

/** What the index says of Syncs that are not as they are to be. */
const stateOfPhase: Readonly<Record<Exclude<Phase, "Ready" | "Gone"> | "Assigned", ClusterState>> = {
  Assigned: "changing",
  Applying: "changing",
  Verifying: "changing",
  Retrying: "changing",
  Reachable: "unreachable",
  Unreachable: "unreachable",
  Failed: "failed",
};

/** What a phase of a Sync makes of its cluster; undefined for those that are ready, gone or forgotten. */
export function clusterStateOf(phase: string): ClusterState | undefined {
  return Object.entries(stateOfPhase).find(([name]) => name === phase)?.[1];
}

export function worseOf(a: ClusterState, b: ClusterState): ClusterState {
  return severity.indexOf(a) > severity.indexOf(b) ? a : b;
}

/** Names of the Syncs that a cluster of the subject is to have. */
export function syncNames({ subject, row }: Pick<Known, "subject" | "row">): readonly string[] {
  if (row.operations.deletion !== undefined) return [];
  return relationOf(row).templates.map(({ name }) => syncName(subject, name));
}

/** Those, and those of templates that are gone and may not be deleted everywhere yet. */
export function everySyncName(known: Pick<Known, "subject" | "row" | "unit">): readonly string[] {
  const given = known.unit.templates.map((name) => syncName(known.subject, name));
  return [...new Set([...syncNames(known), ...given])];
}

/**
 * Counts of the members by their worst Sync. Only those that are not ready are read, from the state index: a moment behind,
 * put right by the next look.
 */
export async function clustersByState({ subject, unit, legs }: Known, table: Table): Promise<ClusterCounts> {
  const [entries, arrivals] = await Promise.all([
    Promise.all(Object.keys(stateOfPhase).map((phase) => stateEntries(subject, table, phase))),
    unit.arrivals.failed === 0 ? { rows: [] } : rowsAbout(ranges.arrivals(subject, "failed"), table),
  ]);
  const worst = new Map<string, ClusterState>([
    ...(unit.unreadable ?? []).map((cluster) => [cluster, "unreachable"] as const),
    ...arrivals.rows.map(({ cluster }) => [cluster, "failed"] as const),
  ]);
  for (const { sort } of entries.flat()) {
    const { state: phase = "", cluster = "" } = stateIndex.parse(sort) ?? {};
    const state = clusterStateOf(phase);
    if (state !== undefined) worst.set(cluster, worseOf(worst.get(cluster) ?? "ready", state));
  }
  const counts = { ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
  for (const state of worst.values()) counts[state]++;
  // Nothing was ever assigned for these, so that the index has nothing of them.
  const unrendered = [...legs.values()].reduce(
    (sum, leg) => sum + (leg.endedAt === undefined ? 0 : leg.unrendered.length),
    0,
  );
  const selected = membersOfAll(unit);
  const others = counts.changing + counts.failed + counts.unreachable + counts.waiting + unrendered;
  return {
    ...counts,
    selected,
    failed: counts.failed + unrendered,
    ready: Math.max(0, selected - others),
  };
}
