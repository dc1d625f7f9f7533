import type { ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import type { InventoryEntry } from "#shared/kube/inventory.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/**
 * What became of one candidate. Settled, so that it leaves the inventory:
 * - `deleted`: confirmed gone; `absent`: it was gone before;
 * - `kept`: it asks not to be deleted, or never may be;
 * - `foreign`: it is no member any more, another tool has taken it over, or another object has its name;
 * - `moved`: the same object is applied under another group.
 * `held` is over and stays in the inventory: a sibling desires the object and has not taken it over yet.
 * Not settled: `terminating` (asked for, not gone yet), `waiting` (others go first), `failed`.
 */
export interface PrunedObject {
  readonly id: ObjectId;
  readonly outcome: "deleted" | "absent" | "kept" | "foreign" | "moved" | "held" | "terminating" | "waiting" | "failed";
  readonly message?: string;
  /** Of one that is held: for the inventory. */
  readonly entry?: InventoryEntry;
  /** Of one that is kept for it: what depends on it and stays. */
  readonly staysFor?: ObjectId;
  readonly failure?: ObjectFailure;
}
