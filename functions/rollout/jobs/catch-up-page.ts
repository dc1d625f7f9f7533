import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { releaseTemplates, startOver } from "#functions/rollout/write/another-turn.ts";
import { snapshotPageSize, startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { seeClusters, type Transaction } from "#functions/rollout/write/transaction.ts";
import { withEffectiveValues } from "#shared/adapters/read-cluster-values.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { isSelected, stageNow } from "#shared/fleet/rollout/facts.ts";
import { withAsked } from "#shared/fleet/rollout/order.ts";
import { isSameStageRun, isStalled, stageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { SnapshotTarget, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Clusters that joined a stage get its current rollout. When nothing has passed yet, they join the stage run in
 * progress, and otherwise wait for the next one. @returns the number of clusters that had their turn.
 */
export async function catchUpPage(
  transaction: Transaction,
  page: readonly string[],
  ports: PlannerPorts,
): Promise<number> {
  const { known } = transaction;
  const found = await seeClusters(transaction, { clusters: page, with: ["catchUps", "targets", "left"] }, ports.table);
  const late = new Map<StageRunRow, FleetRow[]>();
  let done = 0;
  for (const cluster of page) {
    const rows = found.get(cluster);
    if (transaction.room() < 4 + (rows === undefined ? 0 : rows.targets.length + rows.left.length)) break;
    done++;
    const fleet = rows?.fleet;
    if (rows === undefined || fleet === undefined) continue;
    await releaseTemplates(transaction, rows.targets, ports);
    if (isSelected(known, fleet)) startOver(transaction, rows);
    const stage = stageNow(known, fleet);
    const stageRun = stage && stageRunOf(stage, known.stageRuns);
    // Includes a cluster that is in no stage at the moment: the next list tells its stage, or that it left.
    if (stage?.unasked === true) transaction.edit(withAsked(transaction.rolloutState, stage.name));
    if (stage === undefined || (stage.current !== undefined && stage.unasked !== true))
      transaction.putCatchUp(cluster, "waiting", { why: "joined" });
    else if (stageRun !== undefined) late.set(stageRun, [...(late.get(stageRun) ?? []), fleet]);
  }
  for (const [stageRun, fleet] of late) await append(transaction, { stageRun, fleet }, ports);
  return done;
}

/**
 * The one exception to a snapshot: until a rollout has passed the stage, clusters that join the stage also join its
 * stage run.
 */
async function append(
  transaction: Transaction,
  { stageRun, fleet }: { readonly stageRun: StageRunRow; readonly fleet: readonly FleetRow[] },
  ports: PlannerPorts,
): Promise<void> {
  const { lists, table } = ports;
  const rollout = transaction.rollout(stageRun.rollout);
  const pages = await Promise.all(stageRun.pages.map(({ key }) => lists.read<SnapshotTarget>(key)));
  const known = new Map(pages.flat().map(({ cluster, uid }) => [cluster, uid]));
  // A stage run has one target of a name: with clusters that were registered again it takes a new snapshot, unless it
  // stands still.
  const isAnew = fleet.some(({ name, uid }) => known.has(name) && known.get(name) !== uid);
  const stage = transaction.rolloutState.stages.findIndex(({ updatingTo }) => isSameStageRun(updatingTo, stageRun));
  if (isAnew && !isStalled(stageRun)) return startStageRun(transaction, { stage, rollout }, ports);
  const others = await withEffectiveValues(
    fleet.filter(({ name }) => !known.has(name)),
    table,
  );
  const fresh = others.map((row) => snapshotTarget({ ...row, cluster: row.name }, rollout.plan));
  if (fresh.length === 0) return;
  if (stageRun.gates?.before !== undefined) {
    // People approve a plan with its clusters: another cluster makes another plan, or comes after the stage run.
    if (stageRun.phase === "Gated") await startStageRun(transaction, { stage, rollout }, ports);
    return;
  }
  // Most clusters join one by one: if each had a page of its own, the row would grow with them.
  const last = pages.at(-1) ?? [];
  const isFull = last.length >= snapshotPageSize;
  const key = await lists.store(isFull ? fresh : [...last, ...fresh]);
  const first = stageRun.size - (isFull ? 0 : last.length);
  // Targets of the same page may have left it.
  const now = transaction.stageRun(stageRun) ?? stageRun;
  transaction.putStageRun({
    ...now,
    size: now.size + fresh.length,
    pages: [...now.pages.filter((page) => page.first < first), { key, first }],
    counts: { ...now.counts, Waiting: now.counts.Waiting + fresh.length },
  });
}
