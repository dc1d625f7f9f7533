import { defined } from "#shared/base/defined.ts";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import { definiteFailure, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { type KubeObject, stringAt } from "#shared/kube/kube-object.ts";
import { type ForeignObject, type ForeignTool, foreignOwner, isMember } from "#shared/kube/membership.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";

/** What carries a set's label and is not recorded, as people are told of it. */
export function foreignObject(id: ObjectId, live: KubeObject, setId: string): ForeignObject {
  const keep = reasonToKeep(id, live);
  const uid = stringAt(live, "metadata", "uid") ?? "";
  // What another tool has taken over is never pruned, and holds no deletion back.
  const member = isMember(live, setId) && foreignOwner(live, setId) === undefined;
  return { id, uid, member, ...defined({ keep }) };
}

/** Why a live object is not applied over: it is another tool's, or another set's. @param set.adopt - tools whose objects may be taken over. */
export function foreignFailure(
  id: ObjectId,
  live: KubeObject,
  { setId, adopt }: { readonly setId: string; readonly adopt: readonly ForeignTool[] },
): ObjectFailure | undefined {
  const owner = foreignOwner(live, setId);
  if (owner === undefined || adopt.includes(owner.tool)) return undefined;
  const message = `${describeObject(id)} belongs to ${owner.tool} (${owner.owner}); take it out there, or remove its marks, and it is adopted`;
  return definiteFailure({ class: "foreign", reason: "ForeignOwner", message });
}
