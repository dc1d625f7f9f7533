import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { liveEntries } from "#functions/rollout/read/read-clusters.ts";
import { renumber, Transaction } from "#functions/rollout/write/transaction.ts";
import { identityNow } from "#shared/fleet/rollout/desired-plan.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { isThrough, newestPlanned } from "#shared/fleet/rollout/order.ts";
import { keys, templateOf } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { type ClusterTallies, haveDesired } from "#shared/fleet/sync/tally.ts";

/** When every cluster has what is desired, none should have a template any more that is not desired. */
export function mayForget({ rolloutState, known }: Transaction, settled: ClusterTallies): boolean {
  const isGoing = known.row.operations.deletion !== undefined;
  return haveDesired(settled) === settled.selected && isThrough(rolloutState) && !isGoing && leftBehind(known).size > 0;
}

/** Templates that may be on a cluster and that the newest rollout does not have. */
function leftBehind({ rolloutState, rollouts }: Known): ReadonlySet<string> {
  const newest = rollouts.get(rolloutState.last);
  if (newest === undefined) return new Set();
  return new Set(rolloutState.templates).difference(new Set(newest.plan.templates.map(({ name }) => name)));
}

/**
 * Forgets the templates that no cluster has anything of. A Sync that is found nevertheless is searched for as long as
 * it exists; when a member has one that no rollout will reach, another rollout deletes it.
 * @returns that step; undefined when nothing is to be done.
 */
export async function forgetTemplates(transaction: Transaction, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { known, rolloutState } = transaction;
  const gone = leftBehind(known);
  const syncs = await syncsOf(known, gone, ports);
  if (syncs.length === 0) {
    transaction.edit({ templates: rolloutState.templates.filter((name) => !gone.has(name)) });
    return undefined;
  }
  const applied = syncs.flatMap((row) => (!isNewer(row) && row.desired.action === "apply" ? [row.cluster] : []));
  if (applied.length === 0 || !isNewestDesired(known)) return undefined;
  const members = new Set((await readMembers(known, ports)).map(({ cluster }) => cluster));
  if (!applied.some((cluster) => members.has(cluster))) return undefined;
  const anew = new Transaction(known, ports.clock.now());
  renumber(anew);
  return anew;
}

/** Found by the state index, which may lag, and read. */
async function syncsOf({ owner }: Known, templates: ReadonlySet<string>, { table }: PlannerPorts) {
  const entries = (await liveEntries(owner, table)).filter(({ sync }) => templates.has(templateOf(owner, sync)));
  const desired = entries.map(({ cluster, sync }) => keys.sync(cluster, owner.namespace, sync));
  const rows = await table.getMany(desired, { newer: "kept" });
  return rows.filter((row) => isNewer(row) || !["Gone", "Orphaned"].includes(syncStateOf(row)));
}

/** Otherwise another rollout follows, which reaches every cluster. */
function isNewestDesired(known: Known): boolean {
  const { desired, rolloutState } = known;
  return desired.ok && newestPlanned(rolloutState.ledger)?.identity === identityNow(known, desired.plan);
}
