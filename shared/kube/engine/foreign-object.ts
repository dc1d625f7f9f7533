import { defined } from "#shared/base/defined.ts";
import { reasonToKeep } from "#shared/kube/engine/deletion-guards.ts";
import { definiteFailure, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { type KubeObject, stringAt } from "#shared/kube/kube-object.ts";
import {
  type ForeignObject,
  type ForeignOwner,
  type ForeignTool,
  foreignOwner,
  isMember,
} from "#shared/kube/membership.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";

/** Describes an object that has a set's label and is not recorded. */
export function foreignObject(id: ObjectId, live: KubeObject, setId: string): ForeignObject {
  const keep = reasonToKeep(id, live);
  const uid = stringAt(live, "metadata", "uid") ?? "";
  // An object that another tool has taken over is never pruned, and blocks no deletion.
  const member = isMember(live, setId) && foreignOwner(live, setId) === undefined;
  return { id, uid, member, ...defined({ keep }) };
}

/**
 * How an object moves here from its owner. Two owners do not know each other, and the former owner would prune the
 * object.
 */
function wayOf({ tool, mark }: ForeignOwner): string {
  if (tool !== "applyset") return `remove it from ${tool}, or remove its ${mark}`;
  return `remove it there without deleting it (a Sync keeps objects with the annotation starling.dev/prune: disabled), then remove its ${mark}`;
}

/** Whether a sibling set desires an object; `undefined` when the set belongs to another owner. */
export type StandingOf = (setId: string, id: ObjectId) => Promise<"desires" | "lacks" | undefined>;

interface TakeOver {
  readonly setId: string;
  /** Tools whose objects may be taken over. */
  readonly adopt: readonly ForeignTool[];
  /** Absent: the set has no siblings. */
  readonly standingOf?: StandingOf;
}

/**
 * Why an apply must not overwrite a live object: it belongs to another tool or another set. An object that a sibling
 * does not desire any more has moved, and is taken over.
 * @throws the errors of `standingOf`.
 */
export async function foreignFailure(
  id: ObjectId,
  live: KubeObject,
  { setId, adopt, standingOf }: TakeOver,
): Promise<ObjectFailure | undefined> {
  const owner = foreignOwner(live, setId);
  if (owner === undefined || adopt.includes(owner.tool)) return undefined;
  const standing = owner.tool === "applyset" ? await standingOf?.(owner.owner, id) : undefined;
  // The sibling's own marks do not count as foreign. Someone else may have marked the object since.
  if (standing === "lacks") return foreignFailure(id, live, { setId: owner.owner, adopt });
  if (standing === "desires") {
    const message = `${describeObject(id)} is in two templates: applyset (${owner.owner}) also applies it; remove it from one of them`;
    return definiteFailure({ class: "foreign", reason: "DuplicateObject", message });
  }
  const message = `${describeObject(id)} belongs to ${owner.tool} (${owner.owner}); ${wayOf(owner)}, then Starling adopts it`;
  return definiteFailure({ class: "foreign", reason: "ForeignOwner", message });
}
