import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { clusterOf, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { Job, LegRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";

/** Targets, or arrivals, read in one step. */
const pageSize = 40;

/** Targets of a leg that failed, or arrivals, get another turn, and count anew. */
export async function retryPage(
  transaction: Transaction,
  job: Extract<Job, { do: "retry" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  if (job.leg === undefined) return retryArrivals(transaction, job, ports);
  const leg = transaction.leg(job.leg);
  if (leg === undefined || leg.phase === "Superseded") return undefined;
  const range = { ...ranges.targets(transaction.known.subject, leg), limit: pageSize, newer: "kept" } as const;
  const { items, next } = await ports.table.query({ ...range, ...defined({ after: job.after }) });
  for (const row of items) if (isNewer(row)) transaction.cannotRead(clusterOf(row));
  const failed = items.filter((row) => !isNewer(row)).filter(({ state }) => state === "Failed");
  if (leg.phase === "Passed") {
    const clusters = failed.map(({ cluster }) => cluster);
    await makeArrivals(transaction, { leg, clusters }, ports);
    const orders = new Set(failed.map(({ order }) => order));
    transaction.putLeg({ ...leg, unrendered: leg.unrendered.filter((order) => !orders.has(order)) });
  } else for (const target of failed) transaction.amend(target);
  transaction.putLeg({ ...(transaction.leg(leg) ?? leg), retriedAt: transaction.at });
  return next === undefined ? undefined : { ...job, after: next };
}

/** A stage that has passed left them behind: they are arrivals. */
export async function makeArrivals(
  transaction: Transaction,
  { leg, clusters }: { readonly leg: LegRow; readonly clusters: readonly string[] },
  { table }: PlannerPorts,
): Promise<void> {
  const found = await readClusters(transaction.known, { clusters, with: ["arrivals"] }, table);
  for (const { cluster, arrivals, newer } of found.values()) {
    if (newer !== undefined) transaction.cannotRead(cluster);
    else if (arrivals.length === 0) transaction.bringBack(cluster, leg.stage, "failed");
  }
}

async function retryArrivals(
  transaction: Transaction,
  job: Extract<Job, { do: "retry" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const { known } = transaction;
  const range = { ...ranges.arrivals(known.subject, "failed"), limit: pageSize / 2, newer: "kept" } as const;
  const { items, next } = await table.query({ ...range, ...defined({ after: job.after }) });
  for (const row of items) if (isNewer(row)) transaction.cannotRead(clusterOf(row));
  const failed = items.filter((row) => !isNewer(row));
  const waiting = failed.map(({ cluster }) => keys.arrival(known.subject, "waiting", cluster));
  if (waiting.length > 0) transaction.see(await table.getMany(waiting, { newer: "kept" }));
  for (const arrival of failed) {
    transaction.dropArrival(arrival);
    // Also what one that had joined is rendered from is asked for again: somebody wants it.
    transaction.putArrival(arrival.cluster, "waiting", { why: "returned", reason: "" });
  }
  return next === undefined ? undefined : { ...job, after: next };
}

/** Those that failed as arrivals to a stage are targets of what it has passed since, or arrive at that. */
export async function clearPage(
  transaction: Transaction,
  job: Extract<Job, { do: "clear" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const range = { ...ranges.arrivals(transaction.known.subject, "failed"), limit: pageSize, newer: "kept" } as const;
  const { items, next } = await table.query({ ...range, ...defined({ after: job.after }) });
  for (const arrival of items) if (!isNewer(arrival) && arrival.stage === job.stage) transaction.dropArrival(arrival);
  return next === undefined ? undefined : { ...job, after: next };
}
