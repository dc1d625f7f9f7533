import { inspectSync } from "#functions/apply/operations/inspect-sync.ts";
import { deletionWarningsOf } from "#functions/apply/steps/object-reports.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { placesIn } from "#functions/apply/steps/rendering-places.ts";
import { claimParent, recallInventory } from "#functions/apply/steps/set-records.ts";
import { loadRendering } from "#functions/apply/steps/sync-blobs.ts";
import { withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { pruneSet } from "#shared/kube/engine/prune-set.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";
import { everyObject } from "#shared/source/rendering.ts";

/**
 * Deletes the members that no inventory recorded and that somebody has accepted. Each is deleted under the uid that was
 * shown, as a prune deletes: with proof of membership, marks and guards. Members that git or the inventory has by now
 * stay. The routine inspection follows.
 */
export async function pruneAccepted(context: OperationContext): Promise<OperationResult> {
  const { row, client, claim, ports, deadline } = context;
  const asked = row.operations?.prune;
  const { renderDigest, apply } = row.desired;
  const recalled = await recallInventory(context);
  if (!("reported" in recalled)) return recalled;
  if (asked === undefined || renderDigest === undefined || recalled.reported.rebuilt !== undefined)
    return inspectSync(context);
  const { inventory } = recalled;
  const inGit = placesIn(everyObject(await loadRendering(renderDigest, ports.blobs)), apply.defaultNamespace);
  const recorded = new Set(inventory.entries.map(({ uid }) => uid));
  const candidates = asked.objects.filter(({ id, uid }) => !inGit.has(objectIdKey(id)) && !recorded.has(uid));
  const parent = await claimParent(
    context,
    [...inventory.entries, ...candidates].map(({ id }) => id),
  );
  if (parent.kind === "refused") return refusedFinding(context, parent);
  const { setId } = inventory;
  const heldFor = await context.siblings.desiringOrWhy(candidates.map(({ id }) => id));
  if ("reason" in heldFor) return withheldFinding("nothing is pruned", heldFor);
  const common = { setId, unrecorded: [], heldFor, keepUids: recorded, claim, clock: ports.clock, deadline };
  const result = await pruneSet(client, { ...common, candidates });
  const deletions = deletionWarningsOf(result);
  if (result.outcome === "done") {
    const check = await inspectSync(context);
    return { ...check, warnings: [...(check.warnings ?? []), ...deletions], handledPrune: asked.number };
  }
  const finding = { ...pruneFinding(result, { waiting: "Pruning", failed: "PruneFailed" }), warnings: deletions };
  // A permanent refusal is reported, and needs a new request after the cause was fixed.
  return finding.phase === "Failed" ? { ...finding, handledPrune: asked.number } : finding;
}
