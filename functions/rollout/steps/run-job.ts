import { behindPage } from "#functions/rollout/jobs/behind-page.ts";
import { catchUpPage } from "#functions/rollout/jobs/catch-up-page.ts";
import { checkPage } from "#functions/rollout/jobs/check-page.ts";
import { leavePage } from "#functions/rollout/jobs/leave.ts";
import { restorePage } from "#functions/rollout/jobs/restore-page.ts";
import { clearPage, renamePage, retryPage, skipPage } from "#functions/rollout/jobs/retry.ts";
import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";

/** Clusters in one step of a job. */
const pageSize = 20;

/** Does one page of the first job. @returns undefined when there is none. */
export async function runJob(known: Known, _work: CallWork, ports: PlannerPorts): Promise<Transaction | undefined> {
  const [job, ...others] = known.rolloutState.jobs;
  if (job === undefined) return undefined;
  const transaction = new Transaction(known, ports.clock.now());
  const next = await runPage(transaction, job, ports);
  transaction.edit({ jobs: next === undefined ? others : [next, ...others] });
  return transaction;
}

/** @returns the rest of the job. */
async function runPage(transaction: Transaction, job: Job, ports: PlannerPorts): Promise<Job | undefined> {
  if (job.do === "retry") return retryPage(transaction, job, ports);
  if (job.do === "skip") return skipPage(transaction, job, ports);
  if (job.do === "clear") return clearPage(transaction, job, ports);
  if (job.do === "restore") return restorePage(transaction, job, ports);
  if (job.do === "check") return checkPage(transaction, job, ports);
  if (job.do === "rename") return renamePage(transaction, job, ports);
  const clusters = await ports.lists.read<string>(job.clusters);
  const page = clusters.slice(job.at, job.at + pageSize);
  const doPage = job.do === "leave" ? leavePage : job.only === "behind" ? behindPage : catchUpPage;
  const at = job.at + (await doPage(transaction, page, ports));
  return at < clusters.length ? { ...job, at } : undefined;
}
