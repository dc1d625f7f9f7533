/** The results for existing objects that marks exclude from changes: see `apply-marks.ts`. */
import { isLeftAlone, isOnlyMade } from "#shared/kube/apply-marks.ts";
import { entryOf, expiringPart } from "#shared/kube/engine/inventory-entry.ts";
import type { ResolvedObject } from "#shared/kube/engine/resolve-objects.ts";
import type { Health } from "#shared/kube/health/status.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import type { KubeObject, ManifestObject } from "#shared/kube/kube-object.ts";
import { type ObjectId, versionOf } from "#shared/kube/object-id.ts";

interface Request {
  readonly target: ResolvedObject;
  /** The object's entry in the inventory. */
  readonly known?: InventoryEntry;
}

/** The result for an object that was not written. */
interface KeptObject {
  readonly id: ObjectId;
  readonly outcome: "unchanged";
  readonly entry: InventoryEntry;
  readonly health: Health;
  readonly warnings: readonly [];
}

const asItIs: Health = { status: "Current", message: "its mark says that Starling leaves it alone" };

/**
 * For an object that is only created when it is missing. An object that someone else created is watched, too: after its
 * deletion, Starling creates it.
 */
export function foundThere({ target: { id, object } }: Pick<Request, "target">, live: KubeObject): KeptObject {
  const entry = {
    ...entryOf(live, { id, version: versionOf(object.apiVersion) }),
    ...expiringPart(object),
    ...watchedPart(object, live),
  };
  return { id, outcome: "unchanged", entry, health: asItIs, warnings: [] };
}

/**
 * For an object marked in the cluster. Its record stays. An object that was never applied is neither watched nor
 * deleted.
 */
export function keptAsItIs({ target: { id, object }, known }: Request, live: KubeObject): KeptObject {
  const unknown = { ...entryOf(live, { id, version: versionOf(object.apiVersion) }), watched: "nothing" } as const;
  return { id, outcome: "unchanged", entry: known ?? unknown, health: asItIs, warnings: [] };
}

/** For an object marked in git. If it was applied before, it stays and is no longer watched. */
export function leftInPeace({ target: { id }, known }: Pick<Request, "target" | "known">): KeptObject | undefined {
  if (known === undefined) return undefined;
  return { id, outcome: "unchanged", entry: { ...known, watched: "nothing" }, health: asItIs, warnings: [] };
}

/** The part of an existing object that is watched, according to its marks in git and in the cluster. */
export function watchedPart(object: ManifestObject, live: KubeObject): Pick<InventoryEntry, "watched"> {
  if (isLeftAlone(object) || isLeftAlone(live)) return { watched: "nothing" };
  return isOnlyMade(object) ? { watched: "presence" } : {};
}
