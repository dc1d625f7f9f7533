import { deletionWarningsOf } from "#functions/apply/steps/object-reports.ts";
import type { OperationContext, OperationResult } from "#functions/apply/steps/operation.ts";
import { progressAfter, progressOf, unsettledIds } from "#functions/apply/steps/progress.ts";
import { pruneFinding } from "#functions/apply/steps/prune-finding.ts";
import { findForeign } from "#functions/apply/steps/rebuild-inventory.ts";
import { refusedFinding } from "#functions/apply/steps/refused-finding.ts";
import { unrecordedIds } from "#functions/apply/steps/rendering-places.ts";
import { claimParent, type Recalled, recallInventory, reportedWith } from "#functions/apply/steps/set-records.ts";
import { saveInventory } from "#functions/apply/steps/sync-blobs.ts";
import { withheldFinding } from "#functions/apply/steps/withheld-finding.ts";
import { defined } from "#shared/base/defined.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { deleteSet } from "#shared/kube/engine/delete-set.ts";
import { changeInventory } from "#shared/kube/inventory.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

const maxNamed = 3;

/**
 * Deletes every member of the Sync from the cluster, and then its parent object. It is called until it returns `Gone`.
 * Members that no inventory recorded are not deleted without a request, and block the deletion.
 */
export async function deleteSync(asked: OperationContext): Promise<OperationResult> {
  const recalled = await recallInventory(asked);
  if (!("reported" in recalled)) return recalled;
  return reportedWith(recalled, await deleteOver(recalled));
}

async function deleteOver({ context, inventory: before, reported }: Recalled): Promise<OperationResult> {
  const { row, client, claim, ports, deadline } = context;
  const { desired, observed } = row;
  const named = reported.foreign ?? observed?.foreign ?? [];
  const parent = await claimParent(
    context,
    [...before.entries, ...named].map(({ id }) => id),
  );
  if (parent.kind === "refused") return refusedFinding(context, parent);
  const begun = progressOf(before, row);
  const unrecorded = await unrecordedIds(
    parent.record.attempted,
    { desired: new Set(), defaultNamespace: desired.apply.defaultNamespace },
    ports.blobs,
  );
  const mayBeLeft = named.some(({ member }) => member) || unrecorded.lost.length > 0;
  const foreign = mayBeLeft ? await findForeign(context, before) : [];
  const asked = row.operations?.prune;
  const accepted = (asked?.objects ?? []).filter(({ uid }) => foreign.some((object) => object.uid === uid));
  const isAsked = (object: ForeignObject) => accepted.some(({ uid }) => uid === object.uid);
  const unproven = foreign.filter(
    (object) =>
      object.member &&
      object.keep === undefined &&
      !isAsked(object) &&
      !unrecorded.ids.some((other) => isSame(other, object.id)),
  );
  const left = unsettledIds(unrecorded.ids, begun);
  const candidates = [...before.entries, ...accepted].map(({ id }) => id);
  const heldFor = await context.siblings.desiringOrWhy([...candidates, ...left]);
  if ("reason" in heldFor) return withheldFinding("nothing is deleted", heldFor);
  const result = await deleteSet(client, {
    inventory: before,
    accepted,
    unrecorded: left,
    heldFor,
    ...(unproven.length === 0 ? {} : { parent: "keep" }),
    claim,
    clock: ports.clock,
    deadline,
  });
  if (result.outcome === "refused") return refusedFinding(context, result);
  const { settled, held } = result;
  const progress = result.timeWasUp ? progressAfter(begun, { settled }) : undefined;
  const after = changeInventory(before, { recorded: held, settled, progress });
  const inventory = await saveInventory(context, after);
  const handled = asked === undefined || result.outcome !== "done" ? {} : { handledPrune: asked.number };
  // Deleted members leave the inventory, so they are counted from run to run.
  const gone = before.entries.length - after.entries.length;
  const done = (observed?.attempt === desired.attempt ? (observed.progress?.applied ?? 0) : 0) + gone;
  const warnings = deletionWarningsOf(result);
  const stored = { clusterUid: parent.clusterUid, done, warnings, ...handled, ...defined({ inventory }) };
  const objects = { total: after.entries.length, ready: 0, failed: 0, foreign: 0 };
  if (result.outcome !== "done") {
    return { ...pruneFinding(result, { waiting: "Deleting", failed: "DeleteFailed" }), objects, ...stored };
  }
  if (unproven.length > 0) {
    const others = foreign.filter((object) => !isAsked(object));
    return { ...unprovenFinding(row, unproven), objects, foreign: others, ...stored };
  }
  return {
    phase: "Gone",
    reason: "Deleted",
    message: "every object is gone",
    objects,
    problems: [],
    foreign: foreign.filter((object) => !isAsked(object)),
    ...stored,
  };
}

function isSame(a: ObjectId, b: ObjectId): boolean {
  return objectIdKey(a) === objectIdKey(b);
}

function unprovenFinding(
  row: SyncRow,
  left: readonly ForeignObject[],
): Pick<OperationResult, "phase" | "reason" | "message" | "problems"> {
  const names = left.slice(0, maxNamed).map(({ id }) => describeObject(id));
  const more = left.length > maxNamed ? ` and ${left.length - maxNamed} more` : "";
  const remedy = `starling prune sync/${row.name} --cluster ${row.cluster} -n ${row.namespace}`;
  const message = `${names.join(", ")}${more} carry the marks of this Sync and are not recorded; look at them and prune them (${remedy}), or take the label off`;
  return { phase: "Failed", reason: "UnrecordedMembers", message, problems: [] };
}
