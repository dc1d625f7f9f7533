import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { stateByRows } from "#functions/rollout/read/clusters-by-state.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { askForLost } from "#functions/rollout/repair/lost-blobs.ts";
import { startOver } from "#functions/rollout/write/another-turn.ts";
import { seeClusters, seeRollout, Transaction } from "#functions/rollout/write/transaction.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { failureIn, isBaked, isInGates } from "#shared/fleet/rollout/bake.ts";
import { type ClusterRows, isSelected, type Known, keptUnreadable, stageNow } from "#shared/fleet/rollout/facts.ts";
import { reasonOf } from "#shared/fleet/rollout/judge.ts";
import { desiredLater } from "#shared/fleet/rollout/lost-templates.ts";
import { catchUpRollout, isAhead, newestOf } from "#shared/fleet/rollout/order.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

const pageSize = 20;

/**
 * Clusters that answer again wait for their turn: in the stage run that they are a target of, otherwise as a catch-up.
 * The index may lag, so that the clusters that it names are read.
 * Asks the next page of them.
 */
export async function restartReturned(
  known: Known,
  { answering, states }: CallWork,
  ports: PlannerPorts,
): Promise<Transaction> {
  const page = answering.splice(0, pageSize);
  const { row } = known;
  const { unreadable = [] } = known.rolloutState;
  const transaction = new Transaction(known, ports.clock.now());
  const parts = ["slot", "catchUps", "syncs", "targets", "left"] as const;
  const found = await seeClusters(transaction, { clusters: page, with: parts }, ports.table);
  const readable = page.filter((cluster) => unreadable.includes(cluster) && found.has(cluster));
  await askForLost(transaction, [...found.values()], ports);
  const strayed: string[] = [];
  for (const rows of found.values()) {
    const { cluster, fleet, syncs, targets } = rows;
    if (isSelected(known, fleet)) states.set(cluster, stateByRows(syncs));
    failInBake(transaction, rows);
    // A cluster that was registered again has nothing of the former one, and nothing reports that.
    const isClear = fleet === undefined || syncs.every(({ desired }) => desired.action === "orphan");
    const isGone = row.operations.deletion !== undefined && isClear;
    const isAgain = isGone || readable.includes(cluster) || syncs.some(answersAgain);
    if (rows.slot !== undefined || !isAgain) continue;
    const away = targets.find(({ state }) => state === "Unreachable");
    if (away !== undefined) {
      startOver(transaction, { ...rows, left: [] });
      transaction.amend(away);
      continue;
    }
    if (row.operations.deletion !== undefined) continue;
    if (!isSelected(known, fleet)) {
      if (readable.includes(cluster)) strayed.push(cluster);
      continue;
    }
    const stage = stageNow(known, fleet);
    if (stage === undefined) continue;
    // A cluster that could not be rendered for fails again, whether it answers or not.
    const isUnrendered = rows.catchUps.some(({ reason }) => isRenderFailure(reason));
    const isMissing = rows.catchUps.some(({ rollout }) => rollout !== undefined);
    if (stage.current === undefined || (isAhead(stage, rows) && !isMissing) || isUnrendered) continue;
    // Nothing remains to be reported about it, and it would get nothing.
    const rollout = catchUpRollout(known.rolloutState, stage, newestOf(syncs));
    if (rollout === undefined) continue;
    const later = desiredLater(known, await seeRollout(transaction, rollout, ports.table));
    const isNoted = rows.catchUps.length + rows.left.length > 0 || readable.includes(cluster);
    if (!isNoted && syncs.every((sync) => !answersAgain(sync) || later.has(sync.name))) continue;
    startOver(transaction, rows);
    transaction.putCatchUp(cluster, "waiting", { why: "returned" });
  }
  if (readable.length > 0) {
    const left = transaction.rolloutState.unreadable?.filter((cluster) => !readable.includes(cluster)) ?? [];
    // For clusters that could not be read, the members have the earlier facts.
    const { selected } = transaction.rolloutState;
    transaction.edit({ unreadable: left, selected: selected && { ...selected, fleet: "" } });
    if (unreadable.length >= keptUnreadable) {
      // There may be more than the named ones: all that is known about each is that it was a member.
      const members = (await readMembers(known, ports)).map((member) => ({ ...member, uid: "" }));
      transaction.edit({ members: await ports.lists.store(members) });
    }
  }
  if (strayed.length > 0) transaction.addJobs({ do: "leave", clusters: await ports.lists.store(strayed), at: 0 });
  return transaction;
}

/** A cluster that fails while its stage run bakes counts as failed there at once. */
function failInBake(transaction: Transaction, { targets, syncs }: Pick<ClusterRows, "targets" | "syncs">): void {
  for (const target of targets) {
    const stageRun = transaction.stageRun(target.stageRun);
    if (stageRun === undefined || !isInGates(stageRun) || !isBaked(stageRun, target)) continue;
    const failure = failureIn(target, syncs);
    if (failure !== undefined) transaction.amend(target, { state: "Failed", reason: reasonOf(failure) });
  }
}

function answersAgain({ desired, observed, paused }: SyncRow): boolean {
  return (
    (paused === undefined || paused.zone !== undefined) &&
    desired.action !== "orphan" &&
    observed?.attempt === desired.attempt &&
    observed.phase === "Reachable"
  );
}
