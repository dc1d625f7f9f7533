import type { OperationContext } from "#functions/apply/steps/operation.ts";
import { appliedEvent } from "#functions/apply/steps/order-of-apply.ts";
import { findRendering, loadRendering } from "#functions/apply/steps/sync-blobs.ts";
import { isLeftAlone } from "#shared/kube/apply-marks.ts";
import { readMemory } from "#shared/kube/engine/ensure-parent.ts";
import { type FoundMembers, findMembers } from "#shared/kube/engine/find-members.ts";
import { foreignObject } from "#shared/kube/engine/foreign-object.ts";
import { entryOf, expiringPart } from "#shared/kube/engine/inventory-entry.ts";
import { watchedPart } from "#shared/kube/engine/kept-objects.ts";
import { type ResolvedObject, resolveObjects } from "#shared/kube/engine/resolve-objects.ts";
import { hookPart } from "#shared/kube/engine/run-hook.ts";
import { emptyInventory, type Inventory, type InventoryEntry } from "#shared/kube/inventory.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { type ForeignObject, isMember } from "#shared/kube/membership.ts";
import { formatGroupKind, objectIdKey, versionOf } from "#shared/kube/object-id.ts";
import { isHook } from "#shared/kube/order-marks.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { everyObject, type Rendering } from "#shared/source/rendering.ts";

type RebuildContext = Pick<OperationContext, "row" | "client" | "claim" | "ports">;

export interface RebuiltInventory {
  readonly inventory: Inventory;
  /** Objects with the label that no rendering accounts for: a lost record never leads to their deletion. */
  readonly foreign: readonly ForeignObject[];
  /** Kinds that Starling may not list. */
  readonly unread: readonly string[];
}

/**
 * Rebuilds the inventory from the proven members in the cluster and from the renderings that may have made them: the
 * desired one, the applied one, and those that the parent remembers. The uid of such an object is recorded again, so
 * that it is pruned when it leaves git. Every other proven member is only named. Objects of the whole applied rendering
 * that are not in the cluster are recorded without a uid: as missing, or as Jobs that have removed themselves.
 * @throws StarlingError `RenderingLost`, about the desired rendering.
 */
export async function rebuildInventory(context: RebuildContext): Promise<RebuiltInventory> {
  const { row, client, claim } = context;
  const setId = setIdOf(claim);
  const applied = row.observed?.applied?.renderDigest;
  const memory = await readMemory(client, claim);
  const digests = [row.desired.renderDigest, applied, ...(memory?.renderings ?? [])];
  const known = new Map<string, ResolvedObject>();
  const whole = new Map<string, ResolvedObject>();
  for (const digest of new Set(digests.filter((one) => one !== undefined))) {
    const rendering = await renderingOf(context, digest);
    for (const object of await resolved(context, everyObject(rendering))) known.set(objectIdKey(object.id), object);
    if (digest !== applied) continue;
    const held = rendering[appliedEvent(row, digest)];
    for (const object of await resolved(context, held)) whole.set(objectIdKey(object.id), object);
  }
  const ids = [...known.values()].map(({ id }) => id);
  const found = await findMembers(client, {
    setId,
    kinds: memory === undefined ? undefined : [...memory.groupKinds, ...ids],
    namespaces: ids.map(({ namespace }) => namespace).filter((namespace) => namespace !== ""),
  });
  const members = found.objects.filter(({ id, live }) => known.has(objectIdKey(id)) && isMember(live, setId));
  const entries = new Map(
    members.map((member) => {
      const of = whole.get(objectIdKey(member.id));
      const expiring = of === undefined ? {} : expiringPart(of.object);
      const object = known.get(objectIdKey(member.id))?.object;
      const watched = object === undefined ? {} : watchedPart(object, member.live);
      const entry = { ...entryOf(member.live, member), ...expiring, ...hookPart(member.live), ...watched };
      return [objectIdKey(member.id), entry];
    }),
  );
  const unread = new Set(found.unread);
  for (const [key, { id, object }] of whole) {
    // A hook is not part of the set, and an object of the desired rendering is never left alone.
    if (entries.has(key) || unread.has(formatGroupKind(id)) || isHook(object) || isLeftAlone(object)) continue;
    entries.set(key, absentEntry(id, object));
  }
  const inventory = { ...emptyInventory(setId), entries: [...entries.values()] };
  return { inventory, foreign: foreignAmong(found, inventory), unread: found.unread };
}

async function renderingOf({ row, ports }: RebuildContext, digest: string): Promise<Rendering> {
  // The desired rendering is rendered again first; without it, its objects would count as foreign.
  const isDesired = digest === row.desired.renderDigest;
  const rendering = isDesired ? await loadRendering(digest, ports.blobs) : await findRendering(digest, ports.blobs);
  return rendering ?? { install: [], upgrade: [] };
}

function resolved({ row, client, claim }: RebuildContext, objects: readonly ManifestObject[]) {
  return resolveObjects(client, objects, {
    setId: setIdOf(claim),
    defaultNamespace: row.desired.apply.defaultNamespace,
  });
}

function absentEntry(id: ResolvedObject["id"], object: ManifestObject): InventoryEntry {
  const unseen = { uid: "", resourceVersion: "", generation: 0, ownedHash: "", valuesHash: "" };
  return { id, version: versionOf(object.apiVersion), ...unseen, ...expiringPart(object) };
}

/** Every object that carries the label and is not recorded. */
function foreignAmong({ objects }: FoundMembers, inventory: Inventory): readonly ForeignObject[] {
  const keys = new Set(inventory.entries.map(({ id }) => objectIdKey(id)));
  // The same object under another API group counts once.
  const uids = new Set(inventory.entries.map(({ uid }) => uid));
  return objects
    .map(({ id, live }) => foreignObject(id, live, inventory.setId))
    .filter(({ id, uid }) => !keys.has(objectIdKey(id)) && !uids.has(uid));
}

/** Unrecorded objects with the label, of every kind that the parent remembers. */
export async function findForeign(context: RebuildContext, inventory: Inventory): Promise<readonly ForeignObject[]> {
  const { client, claim } = context;
  const kinds = (await readMemory(client, claim))?.groupKinds ?? [];
  const ids = inventory.entries.map(({ id }) => id);
  const namespaces = ids.map(({ namespace }) => namespace).filter((namespace) => namespace !== "");
  return foreignAmong(
    await findMembers(client, { setId: inventory.setId, kinds: [...kinds, ...ids], namespaces }),
    inventory,
  );
}
