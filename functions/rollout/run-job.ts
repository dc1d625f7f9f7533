import { arrivePage } from "#functions/rollout/arrive.ts";
import { leavePage } from "#functions/rollout/leave.ts";
import { lookPage } from "#functions/rollout/look.ts";
import { clustersWithSyncs, recallMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { clearPage, retryPage } from "#functions/rollout/retry.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { isBlobLost } from "#shared/base/errors.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";

/** Clusters in one step of a job. */
const pageSize = 20;

/** One page of the first job. @returns undefined when there is none. */
export async function runJob(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const [job, ...others] = known.unit.jobs;
  if (job === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const next = await runPage(transaction, job, ports);
  transaction.edit({ jobs: next === undefined ? others : [next, ...others] });
  return transaction;
}

/** @returns what is left of the job. */
async function runPage(transaction: Transaction, job: Job, ports: PlannerPorts): Promise<Job | undefined> {
  if (job.do === "retry") return retryPage(transaction, job, ports);
  if (job.do === "clear") return clearPage(transaction, job, ports);
  if (job.do === "look") return lookPage(transaction, job, ports);
  const clusters = await findList(job.clusters, transaction.known, ports);
  if (clusters === undefined)
    return { ...job, clusters: await ports.lists.store(await allOf(job, transaction, ports)), at: 0 };
  const page = clusters.slice(job.at, job.at + pageSize);
  const done =
    job.do === "leave" ? await leavePage(transaction, page, ports) : await arrivePage(transaction, page, ports);
  const at = job.at + done;
  return at < clusters.length ? { ...job, at } : undefined;
}

/** A list of clusters by its key. @returns undefined when it is lost. */
export async function findList(
  key: string,
  { subject }: Pick<Known, "subject">,
  ports: PlannerPorts,
): Promise<readonly string[] | undefined> {
  try {
    return await ports.lists.read<string>(key);
  } catch (error) {
    if (!isBlobLost(error)) throw error;
    ports.log.warn("a list of clusters is lost", { ...subject, key });
    return undefined;
  }
}

/** Those whom a list that is lost may have named: whoever is where it is to be stays there. */
async function allOf({ do: what }: Job, { known }: Transaction, ports: PlannerPorts): Promise<readonly string[]> {
  const members = (await recallMembers(known, ports)).map(({ cluster }) => cluster);
  if (what === "arrive") return members;
  return [...(await clustersWithSyncs(known.subject, ports.table)).difference(new Set(members))].sort();
}
