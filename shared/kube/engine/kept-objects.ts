/** What becomes of objects that are there and that marks say to leave as they are: see `apply-marks.ts`. */
import { isLeftAlone, isOnlyMade } from "#shared/kube/apply-marks.ts";
import { entryOf, expiringPart } from "#shared/kube/engine/inventory-entry.ts";
import type { ResolvedObject } from "#shared/kube/engine/resolve-objects.ts";
import type { Health } from "#shared/kube/health/status.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import type { KubeObject, ManifestObject } from "#shared/kube/kube-object.ts";
import { type ObjectId, versionOf } from "#shared/kube/object-id.ts";

interface Request {
  readonly target: ResolvedObject;
  /** What the inventory says of it. */
  readonly known?: InventoryEntry;
}

/** Nothing was written. */
interface KeptObject {
  readonly id: ObjectId;
  readonly outcome: "unchanged";
  readonly entry: InventoryEntry;
  readonly health: Health;
  readonly warnings: readonly [];
}

const asItIs: Health = { status: "Current", message: "it is left as it is" };

/** Of what is only made where it is not there. What another made is looked after, too: when that is gone, this one makes it. */
export function foundThere({ target: { id, object } }: Pick<Request, "target">, live: KubeObject): KeptObject {
  const entry = {
    ...entryOf(live, { id, version: versionOf(object.apiVersion) }),
    ...expiringPart(object),
    ...watchedPart(object, live),
  };
  return { id, outcome: "unchanged", entry, health: asItIs, warnings: [] };
}

/** Marked in the cluster. What is recorded of it stays; of what was never applied nothing is looked after, nor deleted. */
export function keptAsItIs({ target: { id, object }, known }: Request, live: KubeObject): KeptObject {
  const unknown = { ...entryOf(live, { id, version: versionOf(object.apiVersion) }), watched: "nothing" } as const;
  return { id, outcome: "unchanged", entry: known ?? unknown, health: asItIs, warnings: [] };
}

/** Marked in git: what was applied before stays, and is not looked after any more. */
export function leftInPeace({ target: { id }, known }: Pick<Request, "target" | "known">): KeptObject | undefined {
  if (known === undefined) return undefined;
  return { id, outcome: "unchanged", entry: { ...known, watched: "nothing" }, health: asItIs, warnings: [] };
}

/** What is looked after of an object that is there, by its marks in git and in the cluster. */
export function watchedPart(object: ManifestObject, live: KubeObject): Pick<InventoryEntry, "watched"> {
  if (isLeftAlone(object) || isLeftAlone(live)) return { watched: "nothing" };
  return isOnlyMade(object) ? { watched: "presence" } : {};
}
