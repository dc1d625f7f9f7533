import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { renewArtifacts } from "#functions/rollout/write/renew-artifacts.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { isThere } from "#shared/base/errors.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";

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
  const named = listsOf(known);
  if (named.size === 0) return undefined;
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

/** Includes rollouts that are history: clusters that are behind have them. */
async function rolloutsOf({ owner, rolloutState }: Known, { table }: PlannerPorts): Promise<readonly RolloutRow[]> {
  const rows = await table.getMany(
    rolloutState.ledger.map(({ number }) => keys.rollout(owner, number)),
    { newer: "kept" },
  );
  return rows.filter((row) => !isNewer(row));
}
