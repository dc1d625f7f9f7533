/** Counts targets by state: every view uses these functions. */
import type { OwnerStatus } from "#shared/fleet/rows/object-rows.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";

/** From best to worst: a cluster has the state of its worst Sync, so that a problem is never hidden. */
export const tallies = ["ready", "drifted", "changing", "waiting", "unreachable", "failed"] as const;
export type Tally = (typeof tallies)[number];

/** The effect of a Sync's phase on its cluster; none for Syncs that are ready, gone or forgotten. */
export const phaseTallies: Readonly<Record<string, Exclude<Tally, "drifted">>> = {
  Assigned: "changing",
  // The index has it as one on its way; its stage run or catch-up counts its cluster as waiting.
  Rejected: "changing",
  Applying: "changing",
  Verifying: "changing",
  Retrying: "changing",
  Reachable: "unreachable",
  Unreachable: "unreachable",
  Failed: "failed",
} satisfies Record<Exclude<Phase, "Ready" | "Gone"> | "Assigned" | "Rejected", Tally>;

/** By the states of the index: a ready Sync with permanent drift has a state of its own. */
export const indexTallies: Readonly<Record<string, Tally>> = { ...phaseTallies, Drifted: "drifted" };

export function worseOf<Among extends Tally>(a: Among, b: Among): Among {
  return tallies.indexOf(a) > tallies.indexOf(b) ? a : b;
}

/** The clusters of a group by state. */
export type ClusterTallies = NonNullable<OwnerStatus["clusters"]>;

/** The counts sum to the selected clusters, although some counted clusters may have left. The ready ones are the rest. */
export function clusterCounts(
  selected: number,
  counts: Readonly<Record<Exclude<Tally, "ready" | "drifted">, number>> & { readonly drifted?: number | undefined },
): ClusterTallies {
  let ready = selected;
  const among = (count: number) => {
    const some = Math.min(ready, count);
    ready -= some;
    return some;
  };
  const [failed, unreachable] = [among(counts.failed), among(counts.unreachable)];
  const [changing, waiting] = [among(counts.changing), among(counts.waiting)];
  const drifted = among(counts.drifted ?? 0);
  return { selected, ready, changing, failed, unreachable, waiting, ...(drifted === 0 ? {} : { drifted }) };
}

/** Clusters that have what is desired, whether or not somebody changed it there since. */
export function haveDesired({ ready, drifted = 0 }: Pick<ClusterTallies, "ready" | "drifted">): number {
  return ready + drifted;
}

/** The targets of one cluster; those that are not ready by state, with the name of one of them. */
export interface TargetCounts {
  readonly total: number;
  readonly ready: number;
  readonly others: readonly { readonly state: string; readonly count: number; readonly example: string }[];
}

/** @param targets - each by the one state that every view shows. */
export function countTargets(targets: readonly { readonly state: string; readonly name: string }[]): TargetCounts {
  const byState = Map.groupBy(targets, ({ state }) => state);
  const ready = byState.get("Ready")?.length ?? 0;
  const others = [...byState].flatMap(([state, those]) => {
    const [first] = those;
    return state === "Ready" || first === undefined ? [] : [{ state, count: those.length, example: first.name }];
  });
  return { total: targets.length, ready, others };
}
