import { readRenderings } from "#functions/rollout/decide.ts";
import type { Waiting } from "#functions/rollout/fill-leg.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { readClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { makeArrivals } from "#functions/rollout/retry.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { readSealed } from "#shared/adapters/sealed-targets.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isRenderFailure } from "#shared/fleet/rollout/assignments.ts";
import { lastLegOf } from "#shared/fleet/rollout/feed.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { sealedTarget } from "#shared/fleet/rollout/plan.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { LegRow, SealedTarget } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

const pageSize = 40;

/** Who could not be rendered for and could be by now: nothing was assigned there, and they have another turn. */
export async function retryRendered(
  known: Known,
  asked: Waiting,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  for (const stage of known.unit.stages) {
    const leg = lastLegOf(stage, known.legs);
    if (leg === undefined) continue;
    const orders = leg.unrendered.filter((order) => !asked.has(`unrendered ${legKey(leg)} ${order}`));
    for (const page of inParts(orders, pageSize)) {
      for (const order of page) asked.add(`unrendered ${legKey(leg)} ${order}`);
      const transaction = await retryTargets(known, { leg, orders: page }, ports);
      if (transaction.hasChanged()) return transaction;
    }
  }
  return known.unit.arrivals.failed === 0 ? undefined : retryArrivals(known, asked, ports);
}

async function retryTargets(
  known: Known,
  { leg, orders }: { readonly leg: LegRow; readonly orders: readonly number[] },
  ports: PlannerPorts,
): Promise<Transaction> {
  const transaction = new Transaction(known, ports.clock.now());
  const sealed = await readSealed(leg, orders, ports.lists);
  const rendered = await renderedOf([...sealed.values()], ports.table);
  const clusters = rendered.map(({ cluster }) => cluster);
  const targets = await ports.table.getMany(
    clusters.map((cluster) => keys.target(known.subject, leg, cluster)),
    { newer: "kept" },
  );
  const found = targets.filter((row) => row.type === "Target");
  if (leg.phase !== "Passed") for (const target of found) transaction.amend(target);
  else if (found.length > 0) {
    const left = new Set(found.map(({ order }) => order));
    await makeArrivals(transaction, { leg, clusters: found.map(({ cluster }) => cluster) }, ports);
    transaction.putLeg({ ...leg, unrendered: leg.unrendered.filter((order) => !left.has(order)) });
  }
  return transaction;
}

/** Clusters that came to a stage. */
async function retryArrivals(
  known: Known,
  asked: Waiting,
  { table, clock }: PlannerPorts,
): Promise<Transaction | undefined> {
  const { subject, unit, contents } = known;
  const range = { ...ranges.arrivals(subject, "failed"), limit: pageSize, newer: "kept" } as const;
  for await (const page of allPages((start) => table.query({ ...range, ...start }))) {
    const arrivals = page
      .filter((row) => !isNewer(row))
      .filter(({ cluster, reason }) => isRenderFailure(reason) && !asked.has(`unrendered ${cluster}`));
    for (const { cluster } of arrivals) asked.add(`unrendered ${cluster}`);
    const clusters = arrivals.map(({ cluster }) => cluster);
    const rows = await readClusters(known, { clusters, with: ["arrivals"] }, table);
    const targets = arrivals.flatMap(({ cluster, stage }) => {
      const content = contents.get(unit.stages.find(({ name }) => name === stage)?.on ?? 0);
      const { fleet, newer } = rows.get(cluster) ?? {};
      return fleet === undefined || newer !== undefined || content === undefined
        ? []
        : [sealedTarget({ ...fleet, cluster }, content.plan)];
    });
    const transaction = new Transaction(known, clock.now());
    for (const { cluster } of await renderedOf(targets, table)) {
      transaction.see(rows.get(cluster)?.arrivals ?? []);
      for (const arrival of arrivals) if (arrival.cluster === cluster) transaction.dropArrival(arrival);
      transaction.putArrival(cluster, "waiting", { why: "returned", reason: "" });
    }
    if (transaction.hasChanged()) return transaction;
  }
  return undefined;
}

/** Those for which everything is rendered by now. */
async function renderedOf(targets: readonly SealedTarget[], table: Table): Promise<readonly SealedTarget[]> {
  // A path that says nothing for a cluster says nothing later either.
  const possible = targets.filter(({ inputs }) => inputs.every((input) => "digest" in input));
  const { rows } = await readRenderings(possible, table);
  return possible.filter(({ inputs }) =>
    inputs.every((input) => "digest" in input && rows.get(input.digest)?.state === "Done"),
  );
}
