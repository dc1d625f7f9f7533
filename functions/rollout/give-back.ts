import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { seeClusters } from "#functions/rollout/read-clusters.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { readPage, startOver } from "#functions/rollout/retry.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { refOf } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { ranges, syncName } from "#shared/fleet/rows/keys.ts";
import type { ContentRow, Job } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * Where templates were put back that a content is taking away from a stage, who is through with that gets them as the stage
 * has them. @returns undefined where nothing was put back, or taken away again, since the last look.
 */
export function giveBack(known: Known, ports: PlannerPorts): Transaction | undefined {
  const transaction = new Transaction(known, ports.clock.now());
  for (const stage of known.unit.stages) {
    const leg = legOf(stage, known.legs);
    if (leg === undefined || stage.on === undefined) continue;
    const names = templatesOf(transaction, stage.on).difference(templatesOf(transaction, leg.content));
    const [putBack, before] = [wantedOf(known).intersection(names), new Set(leg.putBack)];
    if (putBack.symmetricDifference(before).size === 0) continue;
    transaction.putLeg({ ...leg, putBack: [...putBack] });
    if (putBack.isSubsetOf(before)) continue;
    transaction.addJobs({ do: "restore", leg: refOf(leg), from: stage.on });
  }
  return transaction.hasChanged() ? transaction : undefined;
}

function templatesOf(transaction: Transaction, content: number): ReadonlySet<string> {
  return new Set(transaction.content(content).plan.templates.map(({ name }) => name));
}

/** Templates that the spec has now. */
function wantedOf({ row }: Pick<Known, "row">): ReadonlySet<string> {
  return new Set(row.operations.deletion === undefined ? relationOf(row).templates.map(({ name }) => name) : []);
}

/** Names of the Syncs that a cluster lost of a content, and that are wanted. */
export function lostOf({ subject, row }: Known, { plan }: ContentRow, syncs: readonly SyncRow[]): ReadonlySet<string> {
  const wanted = wantedOf({ row });
  const names = plan.templates.filter(({ name }) => wanted.has(name)).map(({ name }) => syncName(subject, name));
  return new Set(names).difference(
    new Set(syncs.filter(({ desired }) => desired.action === "apply").map(({ name }) => name)),
  );
}

/** They come to their stage once more, for what they lost. */
export async function restorePage(
  transaction: Transaction,
  job: Extract<Job, { do: "restore" }>,
  { table }: PlannerPorts,
): Promise<Job | undefined> {
  const range = ranges.targets(transaction.known.subject, job.leg);
  const { rows, rest } = await readPage(transaction, { range, job }, table);
  const given = rows.filter(({ attempts }) => Object.keys(attempts).length > 0).map(({ cluster }) => cluster);
  const found = await seeClusters(transaction, { clusters: given, with: ["arrivals"] }, table);
  for (const [cluster, rows] of found) {
    startOver(transaction, rows);
    transaction.putArrival(cluster, "waiting", { why: "returned", content: job.from });
  }
  return rest;
}
