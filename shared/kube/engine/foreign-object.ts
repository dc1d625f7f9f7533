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

/** What carries a set's label and is not recorded, as people are told of it. */
export function foreignObject(id: ObjectId, live: KubeObject, setId: string): ForeignObject {
  const keep = reasonToKeep(id, live);
  const uid = stringAt(live, "metadata", "uid") ?? "";
  // What another tool has taken over is never pruned, and holds no deletion back.
  const member = isMember(live, setId) && foreignOwner(live, setId) === undefined;
  return { id, uid, member, ...defined({ keep }) };
}

/** How an object gets here from its owner. Two owners know nothing of each other: the one that loses it would prune it. */
function wayOf({ tool, mark }: ForeignOwner): string {
  if (tool !== "applyset") return `take it out there, or remove its ${mark}`;
  return `take it out there without deleting it (a Sync keeps what is annotated starling.dev/prune: disabled), then remove its ${mark}`;
}

/** What another set of the same owner is to have of an object: `undefined` of a set of somebody else. */
export type StandingOf = (setId: string, id: ObjectId) => Promise<"desires" | "lacks" | undefined>;

interface TakeOver {
  readonly setId: string;
  /** Tools whose objects may be taken over. */
  readonly adopt: readonly ForeignTool[];
  /** Absent: the set has no siblings. */
  readonly standingOf?: StandingOf;
}

/**
 * Why a live object is not applied over: it is another tool's, or another set's. What a sibling does not desire any more
 * has moved, and is taken over from it.
 * @throws what `standingOf` does.
 */
export async function foreignFailure(
  id: ObjectId,
  live: KubeObject,
  { setId, adopt, standingOf }: TakeOver,
): Promise<ObjectFailure | undefined> {
  const owner = foreignOwner(live, setId);
  if (owner === undefined || adopt.includes(owner.tool)) return undefined;
  const standing = owner.tool === "applyset" ? await standingOf?.(owner.owner, id) : undefined;
  // What the sibling applied are no marks of others; somebody else may have marked it since.
  if (standing === "lacks") return foreignFailure(id, live, { setId: owner.owner, adopt });
  if (standing === "desires") {
    const message = `${describeObject(id)} is in two templates: applyset (${owner.owner}) has it too; leave it in one of them`;
    return definiteFailure({ class: "foreign", reason: "DuplicateObject", message });
  }
  const message = `${describeObject(id)} belongs to ${owner.tool} (${owner.owner}); ${wayOf(owner)}, and it is adopted`;
  return definiteFailure({ class: "foreign", reason: "ForeignOwner", message });
}
