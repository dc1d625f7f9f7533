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

/** Targets looked at in one step. */
const pageSize = 30;

/**
 * Where templates were put back that a content is taking away from a stage, who has lost them gets them as the stage has
 * them. What is dropped once more that may have been given back goes with a content of its own: this one is through with
 * those who have it.
 * @returns undefined where nothing was put back, or taken away again, since the last look.
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

/** The same once more, with another number: who has something that it does not have loses that. */
export function takeAwayAnew(transaction: Transaction): void {
  transaction.edit({ inputsVersion: transaction.known.rolloutState.inputsVersion + 1 });
}

/** Templates that a stage has, and that the content of its leg takes away. */
function takenBy({ rollout }: StageRunRow, current: number, transaction: Transaction): ReadonlySet<string> {
  return templatesOf(transaction.rollout(current)).difference(templatesOf(transaction.rollout(rollout)));
}

function templatesOf({ plan }: Pick<RolloutRow, "plan">): ReadonlySet<string> {
  return new Set(plan.templates.map(({ name }) => name));
}

/** Templates that the spec has now, for anybody or for this cluster. */
function templatesDesired({ row }: Pick<Known, "row">, fleet?: FleetRow): ReadonlySet<string> {
  const templates = row.operations.deletion === undefined ? relationOf(row).templates : [];
  const own = templates.filter((template) => fleet === undefined || !isDisabledFor(template, fleet));
  return new Set(own.map(({ name }) => name));
}

/** Of their Syncs. */
export function desiredNames(known: Known, fleet?: FleetRow): ReadonlySet<string> {
  return named(known, templatesDesired(known, fleet));
}

/**
 * Names of the Syncs that a cluster lost of a content, and that are wanted; also of those that were given back and did not
 * get there.
 */
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
 * What a cluster was losing in a slot that ends while nothing is taken back in that: it is missed afterwards.
 * @returns the content that has it; undefined where nothing that it was losing is wanted again.
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

/** What the stage of a slot is on; where that is no more, the newest content that such a one had passed. */
export function hadBefore({ stages, former }: RolloutStateRow, slot: Pick<SlotRow, "stage">): number | undefined {
  return stages.find(({ name }) => name === slot.stage)?.current ?? former;
}

/** Names of the Syncs that a content neither gives nor takes away: they are wanted, and come with another one. */
export function desiredLater(known: Known, rollout: RolloutRow): ReadonlySet<string> {
  return named(known, templatesDesired(known).difference(templatesOf(rollout)));
}

function named({ owner }: Known, templates: Iterable<string>): ReadonlySet<string> {
  return new Set([...templates].map((name) => syncName(owner, name)));
}

/**
 * Targets that have lost something come to their stage once more, for that; whatever seal they lost it under. So does who came
 * to the stage since its leg was sealed: what that takes away the stage that it was in may have taken from it.
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
  // The list of members stays what it is for as long as there are jobs.
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

/** Members of its stage since it was sealed. */
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

/** A bare cluster lost nothing; and what a slot is for is taken back in that. */
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
