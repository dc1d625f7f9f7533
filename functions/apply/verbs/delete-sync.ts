import { deleteSet } from "#functions/apply/engine/delete-set.ts";
import { progressAfter, progressOf, unsettled } from "#functions/apply/progress.ts";
import { loadInventory, saveInventory } from "#functions/apply/sync-blobs.ts";
import { unrecordedIds } from "#functions/apply/unrecorded-ids.ts";
import { claimParent } from "#functions/apply/verbs/claim-parent.ts";
import { pruneFinding } from "#functions/apply/verbs/prune-finding.ts";
import { refusedFinding } from "#functions/apply/verbs/refused-finding.ts";
import type { VerbContext, VerbResult } from "#functions/apply/verbs/verb.ts";
import { changeInventory } from "#shared/domain/inventory.ts";
import { setIdOf } from "#shared/domain/parent-object.ts";

/** Deletes every member of the Sync from the cluster, and then its parent object. Called until it says `Gone`. */
export async function deleteSync(context: VerbContext): Promise<VerbResult> {
  const { row, client, claim, ports, deadline } = context;
  const before = await loadInventory(row, setIdOf(claim), ports.blobs);
  const parent = await claimParent(
    context,
    before.entries.map((entry) => entry.id),
  );
  if (parent.kind === "refused") return refusedFinding(context, parent);
  const begun = progressOf(before, row);
  const left = await unrecordedIds(
    parent.record.attempted,
    { desired: new Set(), defaultNamespace: row.desired.apply.defaultNamespace },
    ports.blobs,
  );
  const result = await deleteSet(client, {
    inventory: before,
    unrecorded: unsettled(left, begun),
    claim,
    clock: ports.clock,
    deadline,
  });
  if (result.outcome === "refused") return refusedFinding(context, result);
  const { settled } = result;
  const progress = result.timeWasUp ? progressAfter(begun, { settled }) : undefined;
  const after = changeInventory(before, { recorded: [], settled, progress });
  const inventory = await saveInventory(context, after);
  const stored = { clusterUid: parent.clusterUid, ...(inventory === undefined ? {} : { inventory }) };
  const objects = { total: after.entries.length, ready: 0, failed: 0, foreign: 0 };
  if (result.outcome === "done") {
    return { phase: "Gone", reason: "Deleted", message: "every object is gone", objects, troubles: [], ...stored };
  }
  return { ...pruneFinding(result, { waiting: "Deleting", failed: "DeleteFailed" }), objects, ...stored };
}
