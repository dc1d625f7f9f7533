/** Corrections that somebody undoes before the next inspection: after a few of them, Starling gives the object up. */

import type { StatedProblem } from "#shared/fleet/rows/stated-reason.ts";
import type { DriftedObject } from "#shared/kube/engine/detect-drift.ts";
import { entriesById, type Inventory, type InventoryEntry } from "#shared/kube/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { ownedDigests } from "#shared/kube/managed-fields.ts";
import { describeObject, objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import { undoing } from "#shared/kube/undone-fields.ts";

/** Number of times that the same fields of an object are corrected. */
const maxCorrections = 5;
/**
 * Number of times that an object is corrected, whatever was undone: an object that two others change in turn never
 * settles either.
 */
const maxInAll = 10;

type Undone = NonNullable<InventoryEntry["undone"]>;

export interface SortedDrift {
  readonly toCorrect: readonly DriftedObject[];
  readonly leftAlone: readonly StatedProblem[];
}

/** @param inventory - the inventory before the inspection, with the corrections that were made. */
export function sortDrift(drifted: readonly DriftedObject[], inventory: Inventory): SortedDrift {
  const known = entriesById(inventory);
  const toCorrect: DriftedObject[] = [];
  const leftAlone: StatedProblem[] = [];
  for (const object of drifted) {
    const undone = known.get(objectIdKey(object.id))?.undone;
    if (undone === undefined || !isLeftAlone(undone, stateOf(object))) toCorrect.push(object);
    else leftAlone.push({ object: describeObject(object.id), reason: "Drifted", message: messageOf(undone, object) });
  }
  return { toCorrect, leftAlone };
}

/** Whether an object that is deleted, or replaced by another object, each time is given up. */
export function isLeftAway({ undone }: Pick<InventoryEntry, "undone">, how: "missing" | "replaced"): boolean {
  return undone !== undefined && isLeftAlone(undone, how);
}

function isLeftAlone({ state, rounds, inAll }: Undone, now: string): boolean {
  return inAll >= maxInAll || (state === now && rounds >= maxCorrections);
}

function messageOf({ by, fields, rounds, inAll }: Undone, { how }: DriftedObject): string {
  if (how === "missing" || how === "replaced") {
    const what =
      how === "missing" ? "it is deleted, or its label is removed," : "another object is made under its name";
    return `${what} each time, and after ${inAll} corrections it is left alone; end what does that, or take it out of git; a reconcile puts it back`;
  }
  const scaled = /(^|\W)replicas(\W|$)/.test(fields);
  const remedy = scaled
    ? "leave replicas out of the manifest where a HorizontalPodAutoscaler, or who else it is, scales it"
    : "leave them out of the manifest, or end what the other does";
  const isOne = rounds >= maxCorrections;
  const undoes = isOne ? `${by} undoes ${fields}` : `several undo it, ${by} last with ${fields},`;
  return `${undoes} each time, and after ${isOne ? rounds : inAll} corrections it is left alone; ${remedy}; a reconcile puts it back`;
}

interface Corrections {
  readonly drifted: readonly DriftedObject[];
  readonly rendering: readonly ManifestObject[];
  readonly defaultNamespace: string | undefined;
  /** The record before the inspection. */
  readonly inventory: Inventory;
  /** True when somebody asked for the correction: earlier undone corrections do not count. */
  readonly isAsked: boolean;
}

/** The records of the corrected objects, with the number of corrections. */
export function countCorrections(recorded: readonly InventoryEntry[], made: Corrections): readonly InventoryEntry[] {
  const known = entriesById(made.inventory);
  const drifted = new Map(made.drifted.map((object) => [objectIdKey(object.id), object]));
  const manifests = new Map(
    made.rendering.flatMap((manifest) =>
      placesOf(objectIdOf(manifest), made.defaultNamespace).map((id) => [objectIdKey(id), manifest] as const),
    ),
  );
  return recorded.map((entry) => {
    const key = objectIdKey(entry.id);
    const object = drifted.get(key);
    const manifest = manifests.get(key);
    if (object === undefined || manifest === undefined) return entry;
    const state = stateOf(object);
    const before = made.isAsked ? undefined : known.get(key)?.undone;
    const rounds = before?.state === state ? before.rounds + 1 : 1;
    const inAll = (before?.inAll ?? 0) + 1;
    return { ...entry, undone: { rounds, inAll, state, ...undoing(manifest, object.live ?? {}) } };
  });
}

/**
 * The finding about an object. It is the same while the same fields are taken from Starling, and the fields that were
 * given up keep their values. Other managers' values of their own fields do not count.
 */
function stateOf({ how, live }: DriftedObject): string {
  const left = live === undefined ? undefined : ownedDigests(live);
  return left === undefined ? how : `${left.ownedHash} ${left.valuesHash}`;
}
