/** Corrections that somebody undoes before the next look: after a few of them the object is left to that one. */
import type { DriftedObject } from "#functions/apply/engine/detect-drift.ts";
import { ownedDigests } from "#shared/domain/field-set.ts";
import { entriesById, type Inventory, type InventoryEntry } from "#shared/domain/inventory.ts";
import { type ManifestObject, objectIdOf } from "#shared/domain/kube-object.ts";
import { describeObject, objectIdKey, placesOf } from "#shared/domain/object-id.ts";
import type { ObjectTrouble } from "#shared/domain/rows/sync-row.ts";
import { undoing } from "#shared/domain/undone-fields.ts";

/** So often the same fields of an object are put back. */
const MAX_CORRECTIONS = 5;

export interface SortedDrift {
  readonly toCorrect: readonly DriftedObject[];
  readonly leftAlone: readonly ObjectTrouble[];
}

/** @param inventory - as it was before the look: with the corrections that were made. */
export function sortDrift(drifted: readonly DriftedObject[], inventory: Inventory): SortedDrift {
  const known = entriesById(inventory);
  const toCorrect: DriftedObject[] = [];
  const leftAlone: ObjectTrouble[] = [];
  for (const object of drifted) {
    const undone = known.get(objectIdKey(object.id))?.undone;
    const again = undone !== undefined && undone.state === stateOf(object);
    if (!again || undone.rounds < MAX_CORRECTIONS) toCorrect.push(object);
    else leftAlone.push({ object: describeObject(object.id), reason: "Drifted", message: messageOf(undone) });
  }
  return { toCorrect, leftAlone };
}

function messageOf({ by, fields, rounds }: NonNullable<InventoryEntry["undone"]>): string {
  const scaled = /(^|\W)replicas(\W|$)/.test(fields);
  const remedy = scaled
    ? "leave replicas out of the manifest where a HorizontalPodAutoscaler, or who else it is, scales it"
    : "leave them out of the manifest, or end what the other does";
  return `${by} undoes ${fields} each time, and after ${rounds} corrections it is left alone; ${remedy}; a reconcile puts it back`;
}

interface Corrections {
  readonly drifted: readonly DriftedObject[];
  readonly rendering: readonly ManifestObject[];
  readonly defaultNamespace: string | undefined;
  /** As it was before the look. */
  readonly inventory: Inventory;
  /** Somebody asked for it: what was undone before does not count. */
  readonly isAsked: boolean;
}

/** The records of what was put back, with how often that was so. */
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
    const state = object && stateOf(object);
    if (object?.live === undefined || manifest === undefined || state === undefined) return entry;
    const before = made.isAsked ? undefined : known.get(key)?.undone;
    const rounds = before?.state === state ? before.rounds + 1 : 1;
    return { ...entry, undone: { rounds, state, ...undoing(manifest, object.live) } };
  });
}

/** What is left to Starling of an object that somebody changed: the same when the same fields were taken. */
function stateOf({ live }: DriftedObject): string | undefined {
  return live === undefined ? undefined : (ownedDigests(live)?.ownedHash ?? "nothing");
}
