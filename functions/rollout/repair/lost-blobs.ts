/** Lists, renderings and artifacts that are lost, or would be soon. */

import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { stageRunsOf } from "#functions/rollout/read/inputs-before.ts";
import { type PlannerPorts, readMembers } from "#functions/rollout/read/planner-ports.ts";
import { clustersWithSyncs, readRenderings, valuedEntries } from "#functions/rollout/read/read-clusters.ts";
import { askRenderings } from "#functions/rollout/write/ask-renderings.ts";
import { renewArtifacts, startStageRun } from "#functions/rollout/write/take-snapshot.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { membersAnew } from "#functions/rollout/write/write-members.ts";
import { isThere } from "#shared/base/errors.ts";
import { ownerFields } from "#shared/fleet/log-fields.ts";
import { requestOf } from "#shared/fleet/rollout/decide.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import type { ClusterRows, Known } from "#shared/fleet/rollout/facts.ts";
import { lastStageRunOf, refOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Job, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * Stores every named list once more before it expires, and every artifact of a rollout: whatever is named later was
 * stored later. Blobs that no row names expire, including those of a worker that died. A lost blob is made or fetched
 * again when it is needed. @returns undefined while all are young.
 */
export async function renewOwnerBlobs(
  known: Known,
  _work: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const { lists, clock } = ports;
  const transaction = new Transaction(known, clock.now());
  const own = listsOf(known);
  if (own.size === 0) return undefined;
  const named = own.union(await snapshotsOf(known, ports));
  for (const key of named) await isThere(lists.read(key).then((list) => lists.store(list)));
  await renewArtifacts(await rolloutsOf(known, ports), ports);
  transaction.edit({ blobsAt: transaction.at });
  return transaction;
}

/** Jobs have ended by then. */
function listsOf({ rolloutState, stageRuns }: Known): ReadonlySet<string> {
  const ofStageRuns = [...stageRuns.values()].flatMap(({ pages }) => pages.map(({ key }) => key));
  return new Set(
    [rolloutState.members, rolloutState.sweep?.clusters, ...ofStageRuns].filter((key) => key !== undefined),
  );
}

/** The snapshots of every kept rollout: a rollback gives clusters the inputs that they had. */
async function snapshotsOf(
  { owner, rolloutState: { ledger } }: Known,
  { table }: PlannerPorts,
): Promise<ReadonlySet<string>> {
  const stageRuns = await Promise.all(ledger.map(({ number }) => stageRunsOf(owner, number, table)));
  return new Set(stageRuns.flat().flatMap(({ pages }) => pages.map(({ key }) => key)));
}

/** Includes rollouts that are history: clusters that are behind have them. */
async function rolloutsOf({ owner, rolloutState }: Known, { table }: PlannerPorts): Promise<readonly RolloutRow[]> {
  const rows = await table.getMany(
    rolloutState.ledger.map(({ number }) => keys.rollout(owner, number)),
    { newer: "kept" },
  );
  return rows.filter((row) => !isNewer(row));
}

/**
 * A list that was read is lost, or differs from what was stored: the first such list is made again, and its assignments
 * are found again. @throws StarlingError when no list is lost.
 */
export async function repairList(known: Known, ports: PlannerPorts): Promise<Transaction> {
  const { rolloutState, owner, stageRuns } = known;
  const transaction = new Transaction(known, ports.clock.now());
  if (rolloutState.members !== undefined && (await isLost(rolloutState.members, known, ports))) {
    // No cluster that left is forgotten because of it.
    const clusters = [...(await clustersWithSyncs(owner, ports.table))].sort();
    const before = clusters.map((cluster) => ({ cluster, uid: "", stage: "", labels: {}, values: {}, since: 0 }));
    return membersAnew(known, before, ports);
  }
  if (rolloutState.sweep !== undefined && (await isLost(rolloutState.sweep.clusters, known, ports))) {
    transaction.edit({ sweep: undefined });
    return transaction;
  }
  for (const [index, job] of rolloutState.jobs.entries()) {
    if (!("clusters" in job) || !(await isLost(job.clusters, known, ports))) continue;
    const clusters = await ports.lists.store(await allOf(job, known, ports));
    transaction.edit({ jobs: rolloutState.jobs.with(index, { ...job, clusters, at: 0 }) });
    return transaction;
  }
  for (const [stage, named] of rolloutState.stages.entries()) {
    const stageRun = lastStageRunOf(named, stageRuns);
    for (const { key } of stageRun?.pages ?? []) {
      if (stageRun === undefined || !(await isLost(key, known, ports))) continue;
      if (stageRun.phase !== "Passed") {
        await startStageRun(transaction, { stage, rollout: transaction.rollout(stageRun.rollout) }, ports);
        return transaction;
      }
      // The snapshot is only read for targets that could not be rendered: they are tried again, as by a `reconcile`.
      if (stageRun.unrendered.length === 0) continue;
      transaction.putStageRun({ ...stageRun, unrendered: [] });
      transaction.addJobs({ do: "retry", stageRun: refOf(stageRun) });
      return transaction;
    }
  }
  throw new Error(`a list of ${owner.name} is lost, and nobody knows which`);
}

async function isLost(key: string, { owner }: Known, { lists, log }: PlannerPorts): Promise<boolean> {
  if (await isThere(lists.read(key))) return false;
  log.warn("a list of clusters is lost, and made anew", { ...ownerFields(owner), key });
  return true;
}

/** The clusters that a lost list may have named: a cluster that is where it belongs stays there. */
async function allOf({ do: what }: Job, known: Known, ports: PlannerPorts): Promise<readonly string[]> {
  const members = (await readMembers(known, ports)).map(({ cluster }) => cluster);
  if (what === "catchUp") return members;
  return [...(await clustersWithSyncs(known.owner, ports.table)).difference(new Set(members))].sort();
}

/**
 * The row of a rendering that a cluster misses makes it again. When that row has expired too, the rendering is
 * requested again, with the plan of the rollout that the cluster was given. When that rollout is no longer kept, the
 * next one replaces it.
 */
export async function askForLost(
  transaction: Transaction,
  clusters: readonly ClusterRows[],
  ports: PlannerPorts,
): Promise<void> {
  const { owner, rollouts } = transaction.known;
  const missing = clusters.filter(({ syncs }) => syncs.some(misses));
  if (missing.length === 0) return;
  const valued = await valuedEntries(missing, ports.table);
  for (const { cluster, syncs } of missing) {
    const fleet = valued.get(cluster);
    if (fleet === undefined) continue;
    for (const { desired } of syncs.filter(misses)) {
      const rollout = rollouts.get(desired.rollout) ?? (await ports.table.get(keys.rollout(owner, desired.rollout)));
      if (rollout === undefined) continue;
      const target = snapshotTarget({ ...fleet, cluster }, rollout.plan);
      const { rows, newer } = await readRenderings([target], ports.table);
      const requests = target.inputs.flatMap((input, index) =>
        "digest" in input && input.digest === desired.input && !rows.has(input.digest) && !newer.has(input.digest)
          ? requestOf({ rollout, target }, index)
          : [],
      );
      await askRenderings(transaction, { requests, renderings: rows }, ports);
    }
  }
}

function misses({ desired, observed }: SyncRow): boolean {
  return observed?.reason === "RenderingLost" && observed.attempt === desired.attempt && desired.action === "apply";
}
