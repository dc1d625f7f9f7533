import { clusterStateOf, everySyncName, syncNames, worseOf } from "#functions/rollout/clusters-by-state.ts";
import { readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { clockOf } from "#functions/rollout/settle-slots.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { lastLegOf, legOf } from "#shared/fleet/rollout/feed.ts";
import { refOf } from "#shared/fleet/rollout/legs.ts";
import { changingOf } from "#shared/fleet/rollout/slots.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Job, Looking } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Clusters asked about at once. */
const pageSize = 25;

/**
 * Takes a `reconcile` up: what failed of the legs under way and of the arrivals gets another turn, and every Sync is looked
 * at. It skips neither evidence nor bounds. @returns undefined when there is none.
 */
export function takeUpReconcile(known: Known, ports: PlannerPorts): Transaction | undefined {
  const { unit, row, legs } = known;
  const asked = row.operations.reconcile?.number;
  if (asked === undefined || unit.handledReconcile === asked || unit.members === undefined) return undefined;
  if (row.operations.suspended !== undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  // Of a stage that nothing goes through, those that what passed it left behind.
  const failed = unit.stages.flatMap((stage): readonly Job[] => {
    const leg = lastLegOf(stage, legs);
    return leg === undefined || leg.counts.Failed === 0 ? [] : [{ do: "retry", leg: refOf(leg) }];
  });
  const arrivals: readonly Job[] = unit.arrivals.failed > 0 ? [{ do: "retry" }] : [];
  const counts = { ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
  transaction.edit({
    jobs: [...unit.jobs, ...failed, ...arrivals, { do: "look", number: asked, at: 0 }],
    handledReconcile: asked,
    looking: { number: asked, since: transaction.at, looked: 0, counts },
  });
  return transaction;
}

/**
 * Who has been looked at since, cluster by cluster in their order: by the number that the worker says it has handled. What
 * the state index says may be from before.
 * @returns undefined when nothing new was seen of it.
 */
export async function followReconcile(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { unit, row } = known;
  const before = unit.looking;
  // What is on its way is counted when it has arrived.
  if (before === undefined || unit.jobs.length > 0 || isMoving(known)) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const { at, now } = transaction;
  // A suspension spends no deadline: workers stand still meanwhile.
  if (row.operations.suspended !== undefined) return undefined;
  const members = await readMembers(known, ports);
  const since = [before.since, unit.resumedAt ?? ""].sort().at(-1) ?? before.since;
  const isLate = later(since, clockOf(known, now).progressSeconds) <= at;
  const names = everySyncName(known);
  const wantedNames = new Set(syncNames(known));
  let looking: Looking = before;
  for (let isOver = false; looking.looked < members.length && !isOver; ) {
    const page = members.slice(looking.looked, looking.looked + pageSize);
    const wanted = page.flatMap(({ cluster }) =>
      names.map((name) => keys.sync(cluster, known.subject.namespace, name)),
    );
    const found = await ports.table.getMany(wanted, { newer: "kept" });
    const rows = Map.groupBy(
      found.filter((one) => one.type === "SyncOnCluster"),
      ({ cluster }) => cluster,
    );
    for (const { cluster } of page) {
      const state = stateSince(rows.get(cluster) ?? [], { number: before.number, names: wantedNames });
      // Who waits longer than a cluster may take waits for nobody; the time begins anew with every one that is done.
      isOver = state === undefined && !isLate;
      if (isOver) break;
      const counted = state ?? "changing";
      looking = {
        ...looking,
        looked: looking.looked + 1,
        counts: { ...looking.counts, [counted]: looking.counts[counted] + 1 },
      };
    }
  }
  if (looking === before && looking.looked < members.length) return undefined;
  if (looking.looked < members.length) transaction.edit({ looking: { ...looking, since: at } });
  else {
    const { failed, unreachable, changing } = looking.counts;
    transaction.edit({ looking: undefined, lately: { at, failed, unreachable, changing } });
  }
  return transaction;
}

function isMoving({ unit, legs }: Known): boolean {
  if (changingOf(unit) > 0) return true;
  return unit.stages.some((stage) => legOf(stage, legs)?.phase === "Moving");
}

/** @returns undefined when the cluster has not been looked at since, or is still changing because of it. */
function stateSince(
  syncs: readonly SyncRow[],
  asked: { readonly number: number; readonly names: ReadonlySet<string> },
): keyof Looking["counts"] | undefined {
  const found = syncs.filter((sync) => asked.names.has(sync.name)).length;
  let worst: keyof Looking["counts"] = found < asked.names.size ? "waiting" : "ready";
  for (const { desired, observed, parked, reconcile = 0 } of syncs) {
    if (desired.action === "orphan") {
      worst = worseOf(worst, "waiting");
      continue;
    }
    // It waits for the planner's word, not for a worker's look.
    if (parked !== undefined) {
      worst = worseOf(worst, "failed");
      continue;
    }
    if (observed?.attempt !== desired.attempt) return undefined;
    const state = clusterStateOf(observed.phase) ?? "ready";
    const waitsForTurn = observed.phase === "Reachable";
    // What nobody was asked to look at was not there yet: all that is seen of it was seen since.
    const isLookedAt = reconcile < asked.number || (observed.handledReconcile ?? 0) >= asked.number;
    if (!waitsForTurn && !isLookedAt) return undefined;
    if (!waitsForTurn && (observed.phase === "Applying" || observed.phase === "Verifying")) return undefined;
    worst = worseOf(worst, state);
  }
  return worst;
}
