import { askForLost } from "#functions/rollout/ask-lost.ts";
import { stateByRows } from "#functions/rollout/clusters-by-state.ts";
import { isAhead, rolloutFor } from "#functions/rollout/fill-catch-ups.ts";
import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { seeClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { desiredLater } from "#functions/rollout/restore-templates.ts";
import { startOver } from "#functions/rollout/retry.ts";
import { rowsAbout } from "#functions/rollout/rows-about.ts";
import { isSelected, stageNow } from "#functions/rollout/stage-now.ts";
import { stateEntries } from "#functions/rollout/state-entries.ts";
import { keptUnreadable, Transaction } from "#functions/rollout/transaction.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { stageRunsIn } from "#shared/fleet/rollout/feed.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Tally } from "#shared/fleet/sync/tally.ts";
import type { Table } from "#shared/ports.ts";

const pageSize = 20;

/**
 * Clusters that may answer again: the reported ones, or all that the index has as such. A deletion waits for every
 * cluster, and asks whether those that do not answer are still registered.
 */
export async function mayAnswerAgain(
  known: Known,
  clusters: ReadonlySet<string> | undefined,
  table: Table,
): Promise<string[]> {
  if (clusters !== undefined) return [...clusters];
  const { owner, rolloutState, row } = known;
  const entries = await stateEntries(owner, table, "Reachable");
  const answering = new Set(entries.map(({ cluster }) => cluster));
  // These wait for their turn anyway.
  const catchingUp =
    answering.size * rolloutState.catchUps.waiting > 0
      ? await rowsAbout(ranges.catchUps(owner, "waiting"), table)
      : none;
  const isGoing = row.operations.deletion !== undefined;
  const away = isGoing || catchingUp.rows.length > 0 ? await thoseAway(known, table) : [];
  return [
    ...answering
      .difference(new Set(catchingUp.rows.map(({ cluster }) => cluster)))
      .union(new Set(away.filter((cluster) => isGoing || answering.has(cluster))))
      .union(new Set(rolloutState.unreadable)),
  ];
}

const none = { rows: [] } as const;

/** Targets of stage runs that do not answer. */
async function thoseAway({ owner, rolloutState, stageRuns }: Known, table: Table): Promise<readonly string[]> {
  const away: string[] = [];
  for (const stageRun of stageRunsIn(rolloutState, stageRuns)) {
    // The stage run names them while they are few.
    const named = stageRun.away.length >= stageRun.counts.Unreachable;
    const { rows, unread } = named
      ? { rows: [], unread: stageRun.away }
      : await rowsAbout(ranges.targets(owner, stageRun), table);
    away.push(...rows.filter(({ state }) => state === "Unreachable").map(({ cluster }) => cluster), ...unread);
  }
  return away;
}

/**
 * Clusters that have to be asked whether they answer again, and what was read of those that were: an index may be
 * older.
 */
export interface Answering {
  readonly answering: string[];
  readonly states: Map<string, Tally>;
}

/**
 * Clusters that answer again wait for their turn: in the stage run that they are a target of, otherwise as a catch-up.
 * The index may lag, so that the clusters that it names are read.
 * @returns the next page of them, or undefined when all were asked.
 */
export async function restartReturned(
  known: Known,
  { answering, states }: Answering,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const page = answering.splice(0, pageSize);
  if (page.length === 0) return undefined;
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
    if (stage.current === undefined || (isAhead(rows, stage) && !isMissing) || isUnrendered) continue;
    // Nothing remains to be reported about it, and it would get nothing.
    const later = desiredLater(known, transaction.rollout(rolloutFor(syncs, stage, known)));
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

function answersAgain({ desired, observed, paused }: SyncRow): boolean {
  return (
    paused === undefined &&
    desired.action !== "orphan" &&
    observed?.attempt === desired.attempt &&
    observed.phase === "Reachable"
  );
}
