import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { ClusterRows } from "#functions/rollout/read-clusters.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { defined } from "#shared/base/defined.ts";
import { arrivalStates, clusterOf, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ArrivalRow, Job, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, type RowRange } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Rows in one step: of an arrival two are written. */
export const failedInPage = 30;

/** Targets of a leg that failed, or arrivals, get another turn, and count anew. */
export async function retryPage(
  transaction: Transaction,
  job: Extract<Job, { do: "retry" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const { subject } = transaction.known;
  const leg = job.leg && transaction.leg(job.leg);
  if (leg === undefined && job.leg !== undefined) return undefined;
  const range = leg === undefined ? ranges.arrivals(subject, "failed") : ranges.targets(subject, leg);
  const { rows, rest } = await readPage<"Target" | "Arrival">(transaction, { range, job }, table);
  const failed = rows.filter((row) => row.type === "Arrival" || row.state === "Failed");
  await tryAgain(transaction, failed, table);
  if (leg !== undefined) transaction.putLeg({ ...(transaction.leg(leg) ?? leg), retriedAt: transaction.at });
  return rest;
}

/** Who failed has another turn: in its leg; outside of it where that has passed, or where it came later. */
export async function tryAgain(
  transaction: Transaction,
  failed: readonly (TargetRow | ArrivalRow)[],
  table: Table,
): Promise<void> {
  const { subject } = transaction.known;
  const wanted = failed.flatMap(({ cluster }) => arrivalStates.map((state) => keys.arrival(subject, state, cluster)));
  transaction.see(await table.getMany(wanted, { newer: "kept" }));
  for (const row of failed) {
    if (row.type === "Target" && transaction.leg(row.leg)?.phase !== "Passed") {
      transaction.amend(row);
      continue;
    }
    if (row.type === "Arrival") transaction.dropArrival(row);
    else transaction.catchUp([row]);
    // Also what one that had joined is rendered from is asked for again: somebody wants it.
    const { content } = row.type === "Arrival" ? row : {};
    transaction.putArrival(row.cluster, "waiting", { why: "returned", ...defined({ content }) });
  }
}

/** It is to come to a stage: what became of it there before is over, and what it lost is missed still. */
export function startOver(transaction: Transaction, { arrivals, left }: Pick<ClusterRows, "arrivals" | "left">): void {
  for (const arrival of arrivals) {
    if (keys.arrival.read(arrival).state === "waiting") continue;
    transaction.dropArrival(arrival);
    const { cluster, content } = arrival;
    if (content !== undefined) transaction.putArrival(cluster, "waiting", { why: "returned", content });
  }
  transaction.catchUp(left);
}

/** Those that nothing came of as arrivals to a stage are targets of what it has passed since, or arrive at that. */
export async function clearPage(
  transaction: Transaction,
  job: Extract<Job, { do: "clear" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const range = ranges.arrivalsBehind(transaction.known.subject);
  const { rows, rest } = await readPage(transaction, { range, job }, table);
  const others = new Set(transaction.unit.stages.flatMap(({ name }) => (name === job.stage ? [] : [name])));
  // Also one that failed in a stage that is no more.
  const over = rows.filter(({ stage = "" }) => !others.has(stage));
  for (const arrival of over) if (arrival.content === undefined) transaction.dropArrival(arrival);
  // What was to be put back is missed still.
  const missing = over.filter(({ content }) => content !== undefined);
  await tryAgain(transaction, missing, table);
  return rest;
}

/** @returns the rows that can be read, and what is left of the job. */
export async function readPage<Type extends "Target" | "Arrival">(
  transaction: Transaction,
  { range, job }: { readonly range: RowRange<Type>; readonly job: Extract<Job, { after?: string }> },
  table: Table,
) {
  const start = { limit: failedInPage, ...defined({ after: job.after }) };
  const { items, next } = await table.query<Type, "kept">({ ...range, ...start, newer: "kept" });
  for (const row of items) if (isNewer(row)) transaction.cannotRead(clusterOf(row));
  const rest = next === undefined ? undefined : { ...job, after: next };
  return { rows: items.filter((row) => !isNewer(row)), rest };
}
