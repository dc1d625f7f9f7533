import { storeList } from "#functions/rollout/fleet.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { stateEntries } from "#functions/rollout/state-entries.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { arrivalStates, clusterOf, keys, ranges, stateIndex, syncName } from "#shared/fleet/rows/keys.ts";
import { isNewer, type RowKey } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

const pageSize = 20;

/**
 * Clusters that may answer again: those of which something was told, or all that the index says it of. A deletion waits for
 * everybody, and asks whether those that do not answer are registered still.
 */
export async function thoseToAsk(
  known: Known,
  clusters: ReadonlySet<string> | undefined,
  table: Table,
): Promise<string[]> {
  if (clusters !== undefined) return [...clusters];
  const entries = await stateEntries(known.subject, table, "Reachable");
  const answering = entries.flatMap(({ sort }) => stateIndex.parse(sort)?.cluster ?? []);
  const away = known.row.operations.deletion === undefined ? [] : await thoseAway(known, table);
  return [...new Set([...answering, ...away, ...(known.unit.unreadable ?? [])])];
}

async function thoseAway({ subject, unit }: Known, table: Table): Promise<readonly string[]> {
  const legs = unit.stages.flatMap(({ moving }) => moving ?? []);
  const targets = await Promise.all(
    legs.map((leg) => Array.fromAsync(allItems((start) => table.query({ ...ranges.targets(subject, leg), ...start })))),
  );
  return targets.flat().flatMap(({ state, cluster }) => (state === "Unreachable" ? [cluster] : []));
}

/**
 * Clusters that did not answer and do now wait for their turn again: in the leg that they are a target of, else to come to
 * what their stage is on. The index may be behind: what it names is read.
 */
export async function letComeBack(
  known: Known,
  clusters: string[],
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const page = clusters.splice(0, pageSize);
  if (page.length === 0) return undefined;
  const { subject, unit, row } = known;
  const transaction = new Transaction(known, ports.clock.now());
  const rows = await ports.table.getMany(
    page.flatMap((cluster) => [
      keys.fleet(cluster),
      keys.slot(subject, cluster),
      ...arrivalStates.map((state) => keys.arrival(subject, state, cluster)),
      ...unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name))),
      ...unit.stages.flatMap(({ moving }) => (moving === undefined ? [] : [keys.target(subject, moving, cluster)])),
    ]),
    { newer: "kept" },
  );
  transaction.see(rows);
  const relation = relationOf(row);
  const unread = new Set(rows.filter(isNewer).map(clusterIn));
  const readable = page.filter((cluster) => unit.unreadable?.includes(cluster) && !unread.has(cluster));
  const strayed: string[] = [];
  for (const cluster of page) {
    if (unread.has(cluster)) continue;
    const fleet = rows.filter((one) => one.type === "Fleet").find(({ name }) => name === cluster);
    const syncs = rows.filter((one) => one.type === "SyncOnCluster").filter((one) => one.cluster === cluster);
    const hasSlot = rows.some((one) => one.type === "Slot" && one.cluster === cluster);
    const isGone = row.operations.deletion !== undefined && fleet === undefined;
    const isAgain = isGone || readable.includes(cluster) || syncs.some(answersAgain);
    if (hasSlot || !isAgain || transaction.room() < 4) continue;
    const targets = rows.filter((one) => one.type === "Target").filter((one) => one.cluster === cluster);
    const target = targets.find(({ state }) => state === "Unreachable");
    const leg = target === undefined ? undefined : transaction.leg(target.leg);
    if (target !== undefined && leg !== undefined && leg.endedAt === undefined) {
      transaction.retry(target);
      continue;
    }
    if (row.operations.deletion !== undefined) continue;
    if (fleet === undefined || !selects(relation.clusters, fleet)) {
      if (readable.includes(cluster)) strayed.push(cluster);
      continue;
    }
    const stage = unit.stages.find(({ name }) => name === stageOf(relation.rollout, fleet));
    const isAhead = stage !== undefined && legOf(stage, known.legs) !== undefined && targets.length > 0;
    if (stage?.on === undefined || isAhead) continue;
    transaction.putArrival(cluster, "waiting", { why: "returned", reason: "" });
  }
  if (readable.length > 0)
    transaction.edit({ unreadable: (unit.unreadable ?? []).filter((cluster) => !readable.includes(cluster)) });
  if (strayed.length > 0) {
    const job = { do: "leave" as const, clusters: await storeList(ports.blobs, strayed), at: 0 };
    transaction.edit({ jobs: [...unit.jobs, job] });
  }
  return transaction.hasChanged() ? transaction : letComeBack(known, clusters, ports);
}

function clusterIn(row: RowKey): string {
  const parts = keys.slot.parse(row) ?? keys.target.parse(row) ?? keys.arrival.parse(row);
  return parts?.cluster ?? clusterOf(row);
}

function answersAgain({ desired, observed, hold }: SyncRow): boolean {
  return (
    hold === undefined &&
    desired.action !== "orphan" &&
    observed?.attempt === desired.attempt &&
    observed.phase === "Reachable"
  );
}
