import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import type { RolloutRow, SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

type Member = Parameters<typeof snapshotTarget>[0];
type Rollout = Pick<RolloutRow, "number" | "rollback" | "plan">;

/** The entries of clusters in a snapshot of a rollout: a rollback gives a cluster the inputs that it had. */
export function targetsWithInputs(
  owner: Owner,
  ports: PlannerPorts,
): (member: Member, rollout: Rollout) => Promise<SnapshotTarget> {
  const known = new Map<number, Promise<ReadonlyMap<string, SnapshotTarget>>>();
  return async (member, rollout) => {
    const given = known.get(rollout.number) ?? inputsBefore(owner, rollout, ports);
    known.set(rollout.number, given);
    const before = (await given).get(member.cluster);
    return before?.uid === member.uid ? before : snapshotTarget(member, rollout.plan);
  };
}

/** By cluster, the entries of the snapshots of the rollout that a rollback goes back to; a lost one is left out. */
async function inputsBefore(
  owner: Owner,
  { number, rollback }: Pick<RolloutRow, "number" | "rollback">,
  { table, lists }: PlannerPorts,
): Promise<ReadonlyMap<string, SnapshotTarget>> {
  const found = new Map<string, SnapshotTarget>();
  if (rollback === undefined) return found;
  // When the older rollout is no longer kept, the rollback's own snapshots have its inputs.
  for (const rollout of [number, rollback]) {
    const rows = await stageRunsOf(owner, rollout, table);
    for (const { pages } of rows.toSorted((a, b) => a.snapshot - b.snapshot))
      for (const { key } of pages)
        for (const target of await unlessLost(lists.read<SnapshotTarget>(key), () => []))
          found.set(target.cluster, target);
  }
  return found;
}

/** The stage runs of one rollout, without those that only a newer version can read. */
export async function stageRunsOf(owner: Owner, rollout: number, table: Table): Promise<readonly StageRunRow[]> {
  const range = { ...ranges.stageRuns(owner, rollout), newer: "kept" } as const;
  const rows = await Array.fromAsync(allItems((start) => table.query({ ...range, ...start })));
  return rows.filter((row) => !isNewer(row));
}
