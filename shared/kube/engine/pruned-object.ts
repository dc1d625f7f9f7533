import type { ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/**
 * The result of one candidate. These results are settled, and the object leaves the inventory:
 * - `deleted`: confirmed gone; `absent`: it was gone before.
 * - `kept`: a mark forbids the deletion, or it is never allowed.
 * - `foreign`: it is not a member any more, another tool has taken it over, or another object has its name.
 * - `moved`: the same object is applied under another group.
 *
 * A `held` object stays in the inventory: a sibling desires it and has not taken it over yet. These results are not
 * settled: `terminating` (requested, not gone yet), `waiting` (others are deleted first), `failed`.
 */
export interface PrunedObject {
  readonly id: ObjectId;
  readonly outcome: "deleted" | "absent" | "kept" | "foreign" | "moved" | "held" | "terminating" | "waiting" | "failed";
  readonly message?: string;
  /** For a held object: its entry in the inventory. */
  readonly entry?: InventoryEntry;
  /** For a kept object: the object that depends on it and stays. */
  readonly staysFor?: ObjectId;
  readonly failure?: ObjectFailure;
}
