import { recallMembers } from "#functions/rollout/members.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Transaction } from "#functions/rollout/transaction.ts";
import { isConflict } from "#shared/base/errors.ts";
import { dueAttributes, watchdogAt } from "#shared/fleet/rows/due.ts";
import { keys, syncName } from "#shared/fleet/rows/keys.ts";
import type { Job } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

/** Members in one step. */
const pageSize = 20;

/** Every Sync of the members is looked at now, whatever its interval. */
export async function lookPage(
  transaction: Transaction,
  job: Extract<Job, { do: "look" }>,
  ports: PlannerPorts,
): Promise<Job | undefined> {
  const { known, now } = transaction;
  const { subject, unit } = known;
  const members = await recallMembers(known, ports);
  const page = members.slice(job.at, job.at + pageSize);
  const wanted = page.flatMap(({ cluster }) =>
    unit.templates.map((name) => keys.sync(cluster, subject.namespace, syncName(subject, name))),
  );
  await Promise.all(wanted.map((key) => askSync(key, { asked: job.number, now, ports })));
  transaction.messages.push(...page.map(({ cluster }) => ({ to: "apply" as const, cluster })));
  const at = job.at + page.length;
  return at < members.length ? { ...job, at } : undefined;
}

async function askSync(
  key: ReturnType<typeof keys.sync>,
  { asked, now, ports }: { readonly asked: number; readonly now: Date; readonly ports: PlannerPorts },
): Promise<void> {
  try {
    await ports.table.update({
      update: key,
      set: { reconcile: asked, ...dueAttributes(key, watchdogAt(now, 0)) },
      add: { version: 1 },
      when: [
        { attribute: "type", equals: "SyncOnCluster" },
        { attribute: "schema", lessThan: rowSchema + 1 },
      ],
    });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}
