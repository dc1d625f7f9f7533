import { defined } from "#shared/base/defined.ts";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import { type KubeObject, stringAt } from "#shared/kube/kube-object.ts";
import { type ForeignObject, foreignOwner, isMember } from "#shared/kube/membership.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** What carries a set's label and is not recorded, as people are told of it. */
export function foreignObject(id: ObjectId, live: KubeObject, setId: string): ForeignObject {
  const keep = reasonToKeep(id, live);
  const uid = stringAt(live, "metadata", "uid") ?? "";
  // What another tool has taken over is never pruned, and holds no deletion back.
  const member = isMember(live, setId) && foreignOwner(live, setId) === undefined;
  return { id, uid, member, ...defined({ keep }) };
}
