import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { syncKeys } from "#functions/rollout/read/read-clusters.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import { isConflict } from "#shared/base/errors.ts";
import { dueAttributes, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { nextWork } from "#shared/fleet/rows/next-work.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** Members in one step. */
const pageSize = 20;

type CheckJob = Extract<Job, { do: "check" }>;

/** Requests a check of every Sync on one page of members, whatever its interval. @returns the job for the next page. */
export async function checkPage(
  transaction: Transaction,
  job: CheckJob,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const { known, now } = transaction;
  const clusters = await clustersOf(transaction, job, ports);
  const page = clusters.slice(job.at, job.at + pageSize);
  const desired = page.flatMap((cluster) => syncKeys(known, cluster));
  const rows = await ports.table.getMany(desired, { newer: "kept" });
  const syncs = rows.filter((row) => row.type === "SyncOnCluster");
  const asked = await Promise.all(syncs.map((sync) => askSync(sync, { asked: job.number, now, ports })));
  if (asked.length > 0) transaction.noteOtherWrites();
  // The rest of the page has its turn with the next step.
  if (asked.includes(false)) return job;
  transaction.messages.push(...page.map((cluster) => ({ to: "apply" as const, cluster })));
  const at = job.at + page.length;
  return at < clusters.length ? { ...job, at } : undefined;
}

/** The members, or the targets of the job's stage run; none when that has ended. */
async function clustersOf(
  transaction: Transaction,
  { stageRun: ref }: CheckJob,
  ports: PlannerPorts,
): Promise<readonly string[]> {
  if (ref === undefined) return (await readMembers(transaction.known, ports)).map(({ cluster }) => cluster);
  const stageRun = transaction.stageRun(ref);
  if (stageRun === undefined) return [];
  const orders = Array.from({ length: stageRun.size }, (_, order) => order);
  return [...(await readSnapshot(stageRun, orders, ports.lists)).values()].map(({ cluster }) => cluster);
}

/** @returns false when another writer changed it meanwhile: it may be another assignment now. */
async function askSync(
  sync: SyncRow,
  { asked, now, ports }: { readonly asked: number; readonly now: Date; readonly ports: PlannerPorts },
): Promise<boolean> {
  // A Sync that must not be checked would be due for ever.
  if (sync.reconcile === asked || nextWork({ ...sync, reconcile: asked }) === undefined) return true;
  const key = keys.sync(sync.cluster, sync.namespace, sync.name);
  try {
    await ports.table.update({
      update: key,
      set: { reconcile: asked, ...dueAttributes(key, watchdogAt(now, 0)) },
      add: { version: 1 },
      when: [{ attribute: "version", equals: sync.version }],
    });
    return true;
  } catch (error) {
    if (!isConflict(error)) throw error;
    return false;
  }
}
