import { membersAnew, readMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { sealLeg } from "#functions/rollout/seal-leg.ts";
import { clustersWithSyncs } from "#functions/rollout/state-entries.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { isThere } from "#shared/base/errors.ts";
import { subjectFields } from "#shared/fleet/log-fields.ts";
import { lastLegOf } from "#shared/fleet/rollout/feed.ts";
import { refOf } from "#shared/fleet/rollout/legs.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";

/**
 * Somebody read a list that is lost, or is not what was stored: the first such list is made anew, and what was assigned is
 * found again. @throws StarlingError when none is found to be.
 */
export async function mendList(known: Known, ports: PlannerPorts): Promise<Transaction> {
  const { unit, subject, legs } = known;
  const transaction = new Transaction(known, ports.clock.now());
  if (unit.members !== undefined && (await isLost(unit.members, known, ports))) {
    // Nobody who left is forgotten by it.
    const clusters = [...(await clustersWithSyncs(subject, ports.table))].sort();
    const before = clusters.map((cluster) => ({ cluster, uid: "", stage: "", labels: {}, values: {}, since: 0 }));
    return membersAnew(known, before, ports);
  }
  if (unit.sweep !== undefined && (await isLost(unit.sweep.clusters, known, ports))) {
    transaction.edit({ sweep: undefined });
    return transaction;
  }
  for (const [index, job] of unit.jobs.entries()) {
    if (!("clusters" in job) || !(await isLost(job.clusters, known, ports))) continue;
    const clusters = await ports.lists.store(await allOf(job, known, ports));
    transaction.edit({ jobs: unit.jobs.with(index, { ...job, clusters, at: 0 }) });
    return transaction;
  }
  for (const [stage, named] of unit.stages.entries()) {
    const leg = lastLegOf(named, legs);
    for (const { key } of leg?.pages ?? []) {
      if (leg === undefined || !(await isLost(key, known, ports))) continue;
      if (leg.phase !== "Passed") {
        await sealLeg(transaction, { stage, content: transaction.content(leg.content) }, ports);
        return transaction;
      }
      // It is read only for what could not be rendered: that is tried again as by a `reconcile`.
      if (leg.unrendered.length === 0) continue;
      transaction.putLeg({ ...leg, unrendered: [] });
      transaction.addJobs({ do: "retry", leg: refOf(leg) });
      return transaction;
    }
  }
  throw new Error(`a list of ${subject.name} is lost, and nobody knows which`);
}

async function isLost(key: string, { subject }: Known, { lists, log }: PlannerPorts): Promise<boolean> {
  if (await isThere(lists.read(key))) return false;
  log.warn("a list of clusters is lost, and made anew", { ...subjectFields(subject), key });
  return true;
}

/** Those whom a list that is lost may have named: whoever is where it is to be stays there. */
async function allOf({ do: what }: Job, known: Known, ports: PlannerPorts): Promise<readonly string[]> {
  const members = (await readMembers(known, ports)).map(({ cluster }) => cluster);
  if (what === "arrive") return members;
  return [...(await clustersWithSyncs(known.subject, ports.table)).difference(new Set(members))].sort();
}
