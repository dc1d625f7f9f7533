import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-owner.ts";
import { Transaction } from "#functions/rollout/transaction.ts";
import { isThere } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { isToRenew, youngSince } from "#shared/fleet/blob-life.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";

/**
 * Stores every named list once more before it expires, and every artifact of a rollout: whatever is named later was
 * stored later. Blobs that no row names expire, including those of a worker that died. A lost blob is made or fetched
 * again when it is needed. @returns undefined while all are young.
 */
export async function renewOwnerBlobs(known: Known, ports: PlannerPorts): Promise<Transaction | undefined> {
  const { lists, clock } = ports;
  const transaction = new Transaction(known, clock.now());
  const named = listsOf(known);
  if (named.size === 0 || !isToRenew(known.rolloutState.blobsAt, transaction.now)) return undefined;
  for (const key of named) await isThere(lists.read(key).then((list) => lists.store(list)));
  await renewArtifacts(await rolloutsOf(known, ports), ports);
  transaction.edit({ blobsAt: transaction.at });
  return transaction;
}

/** The artifacts of a rollout, for as long as its row exists. */
export async function renewArtifacts(
  rollouts: readonly Pick<RolloutRow, "plan">[],
  { blobs, clock }: Pick<PlannerPorts, "blobs" | "clock">,
): Promise<void> {
  const pins = rollouts.flatMap(({ plan }) => plan.templates.flatMap((one) => [one, ...(one.besides ?? [])]));
  const before = youngSince(clock.now());
  for (const digest of new Set(pins.map(({ artifactDigest }) => artifactDigest)))
    await isThere(blobs.renew(blobKeys.artifact(digest), before));
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
