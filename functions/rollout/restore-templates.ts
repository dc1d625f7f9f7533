import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { type ClusterRows, seeClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { startOver } from "#functions/rollout/retry.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { readSnapshot } from "#shared/adapters/snapshot-targets.ts";
import { takenBack } from "#shared/fleet/rollout/assignments.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { lastStageRunOf } from "#shared/fleet/rollout/feed.ts";
import { isDisabledFor } from "#shared/fleet/rollout/override.ts";
import { isSameStageRun, refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Job, RolloutRow, RolloutStateRow, SlotRow, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isAway, type SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Targets checked in one step. */
const pageSize = 30;

/**
 * When templates were put back that a rollout is deleting from a stage, clusters that have lost them get them as the
 * stage has them. A template that is dropped once more, and may have been restored, is deleted by a rollout of its own,
 * because this one has finished with those clusters.
 * @returns undefined when no template was put back, or deleted again, since the last check.
 */
export function restoreTemplates(known: Known, ports: PlannerPorts): Transaction | undefined {
  const transaction = new Transaction(known, ports.clock.now());
  for (const stage of known.rolloutState.stages) {
    const stageRun = lastStageRunOf(stage, known.stageRuns);
    if (stageRun === undefined || stage.current === undefined) continue;
    const before = new Set(stageRun.putBack);
    const putBack = templatesDesired(known).intersection(
      stage.updatingTo === undefined ? before : takenBy(stageRun, stage.current, transaction),
    );
    if (putBack.symmetricDifference(before).size === 0) continue;
    transaction.putStageRun({ ...stageRun, putBack: [...putBack] });
    if (!before.isSubsetOf(putBack) && stageRun.rollout === known.rolloutState.last) takeAwayAnew(transaction);
    if (putBack.isSubsetOf(before)) continue;
    transaction.addJobs({ do: "restore", stageRun: refOf(stageRun), from: stage.current });
  }
  return transaction.hasChanged() ? transaction : undefined;
}

/** The same plan with another number: clusters that have something that it does not have lose that. */
export function takeAwayAnew(transaction: Transaction): void {
  transaction.edit({ inputsVersion: transaction.known.rolloutState.inputsVersion + 1 });
}

/** Templates that a stage has, and that its stage run deletes. */
function takenBy({ rollout }: StageRunRow, current: number, transaction: Transaction): ReadonlySet<string> {
  return templatesOf(transaction.rollout(current)).difference(templatesOf(transaction.rollout(rollout)));
}

function templatesOf({ plan }: Pick<RolloutRow, "plan">): ReadonlySet<string> {
  return new Set(plan.templates.map(({ name }) => name));
}

/** Templates that the spec has now, for any cluster or for this one. */
function templatesDesired({ row }: Pick<Known, "row">, fleet?: FleetRow): ReadonlySet<string> {
  const templates = row.operations.deletion === undefined ? relationOf(row).templates : [];
  const own = templates.filter((template) => fleet === undefined || !isDisabledFor(template, fleet));
  return new Set(own.map(({ name }) => name));
}

/** The names of their Syncs. */
export function desiredNames(known: Known, fleet?: FleetRow): ReadonlySet<string> {
  return named(known, templatesDesired(known, fleet));
}

/** Names of the desired Syncs that a cluster lost by a rollout, including those that were restored and did not arrive. */
export function lostOf(
  known: Known,
  rollout: RolloutRow,
  { fleet, syncs }: Pick<ClusterRows, "fleet" | "syncs">,
): ReadonlySet<string> {
  const isThere = (sync: SyncRow) =>
    sync.desired.rollout > rollout.number || (sync.paused === undefined && !isAway(sync));
  const has = syncs.filter((sync) => sync.desired.action === "apply" && isThere(sync)).map(({ name }) => name);
  return named(known, templatesOf(rollout).intersection(templatesDesired(known, fleet))).difference(new Set(has));
}

/**
 * The Syncs that a cluster was losing in a slot that ends without a withdrawal: they are missing afterwards.
 * @returns the rollout that has them; undefined when none of them is desired again.
 */
export function missedIn(
  { known, rolloutState, now }: Transaction,
  slot: Pick<SlotRow, "stage">,
  syncs: readonly SyncRow[],
): number | undefined {
  const desired = desiredNames(known);
  const isMissed = syncs.some((sync) => desired.has(sync.name) && takenBack(sync, now) !== undefined);
  return isMissed ? hadBefore(rolloutState, slot) : undefined;
}

/** The current rollout of a slot's stage; when that stage was removed, the newest rollout that such a stage had passed. */
export function hadBefore({ stages, former }: RolloutStateRow, slot: Pick<SlotRow, "stage">): number | undefined {
  return stages.find(({ name }) => name === slot.stage)?.current ?? former;
}

/** Names of the Syncs that a rollout neither assigns nor deletes: they are desired, and come with another one. */
export function desiredLater(known: Known, rollout: RolloutRow): ReadonlySet<string> {
  return named(known, templatesDesired(known).difference(templatesOf(rollout)));
}

function named({ owner }: Known, templates: Iterable<string>): ReadonlySet<string> {
  return new Set([...templates].map((name) => syncName(owner, name)));
}

/**
 * Targets that have lost something catch up with their stage for it, under whichever snapshot they lost it. Clusters
 * that joined the stage after its snapshot do the same, because the stage that they left may have lost it to that
 * rollout.
 */
export async function restorePage(
  transaction: Transaction,
  job: Extract<Job, { do: "restore" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const { stageRun: ref, from, at = 0 } = job;
  const stageRun = transaction.stageRun(ref);
  if (stageRun === undefined) return undefined;
  const { table } = ports;
  const late = await lateIn(transaction, stageRun, ports);
  const orders = Array.from({ length: Math.max(0, Math.min(pageSize, stageRun.size - at)) }, (_, index) => at + index);
  const snapshot = [...(await readSnapshot(stageRun, orders, ports.lists)).values()].map(({ cluster }) => cluster);
  // The list of members stays as it is while there are jobs.
  const clusters = orders.length > 0 ? snapshot : late.slice(at - stageRun.size, at - stageRun.size + pageSize);
  const found = await seeClusters(transaction, { clusters, with: ["slot", "catchUps", "syncs"] }, table);
  for (const [index, cluster] of clusters.entries()) {
    if (transaction.room() < 4) return { ...job, at: at + index };
    const rows = found.get(cluster);
    if (rows === undefined || !hasLost(transaction, { rows, stageRun, rollout: transaction.rollout(from) })) continue;
    startOver(transaction, { ...rows, left: [] });
    transaction.putCatchUp(cluster, "waiting", { why: "returned", rollout: from });
  }
  const next = at + clusters.length;
  return next < stageRun.size + late.length ? { ...job, at: next } : undefined;
}

/** Members that joined its stage after the snapshot. */
async function lateIn(
  { known, rolloutState }: Transaction,
  stageRun: StageRunRow,
  ports: PlannerPorts,
): Promise<readonly string[]> {
  const stage = rolloutState.stages.find(({ updatingTo, passed }) => isSameStageRun(updatingTo ?? passed, stageRun));
  if (stage === undefined || stageRun.membersVersion === rolloutState.membersVersion) return [];
  const members = await readMembers(known, ports);
  return members.flatMap(({ cluster, stage: own, since }) =>
    own === stage.name && since > stageRun.membersVersion ? [cluster] : [],
  );
}

/** An empty cluster has lost nothing; and the Syncs of a slot are withdrawn within that slot. */
function hasLost(
  { known }: Transaction,
  {
    rows: { slot, fleet, syncs },
    stageRun,
    rollout,
  }: { readonly rows: ClusterRows; readonly stageRun: StageRunRow; readonly rollout: RolloutRow },
): boolean {
  const inSlot = slot === undefined || slot.releasing !== undefined ? [] : Object.keys(slot.attempts);
  const lost = lostOf(known, rollout, { fleet, syncs }).intersection(named(known, stageRun.putBack ?? []));
  return !lost.isSubsetOf(new Set(inSlot)) && syncs.some(({ desired }) => desired.action === "apply");
}
