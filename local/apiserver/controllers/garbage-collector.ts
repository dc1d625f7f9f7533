import { type Change, keyOf } from "#apiserver/cluster-store.ts";
import type { ControllerContext } from "#apiserver/controllers/controller-context.ts";
import { ownerUids, type StoredAt, uidOf } from "#apiserver/controllers/owner-index.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { withMetadata } from "#apiserver/operations/object-meta.ts";

const foreground = "foregroundDeletion";
const orphan = "orphan";

/**
 * Deletes objects whose owners are all gone, and finishes foreground and orphaning deletes (the garbage collector of
 * kube-controller-manager).
 */
export function collectGarbage(context: ControllerContext): (change: Change) => void {
  return ({ type, resource, object }) => {
    const { scheduler, cluster } = context;
    const soon = cluster.options.clock();
    if (type === "DELETED") {
      const uid = uidOf(object);
      const dependents = context.owners.dependents(uid);
      if (dependents.length > 0) scheduler.at(`gc/${uid}`, soon, () => collectDependents(context, uid));
      for (const owner of ownerUids(object)) finishLater(context, owner);
      return;
    }
    if (valueAt(object, "metadata", "deletionTimestamp") !== undefined)
      finishLater(context, uidOf(object), { resource, key: keyOf(object) });
    if (type === "ADDED" && ownerUids(object).length > 0) {
      const key = keyOf(object);
      scheduler.at(`gc-new/${uidOf(object)}`, soon, () => collectUnowned(context, resource, key));
    }
  };
}

function ownerOf(context: ControllerContext, namespace: string, owner: Json): JsonObject | undefined {
  const apiVersion = stringAt(owner, "apiVersion") ?? "";
  const kind = context.cluster.kindNamed(apiVersion, stringAt(owner, "kind") ?? "");
  if (kind === undefined) return undefined;
  const key = `${kind.namespaced ? namespace : ""}/${stringAt(owner, "name") ?? ""}`;
  const found = context.cluster.store.get(`${kind.group}/${kind.plural}`, key);
  return found !== undefined && uidOf(found) === stringAt(owner, "uid") ? found : undefined;
}

/** Removes an object none of whose owners exist. */
function collectUnowned(context: ControllerContext, resource: string, key: string): void {
  const object = context.cluster.store.get(resource, key);
  if (object === undefined) return;
  const namespace = stringAt(object, "metadata", "namespace") ?? "";
  const owners = listAt(object, "metadata", "ownerReferences");
  if (owners.length === 0 || owners.some((owner) => ownerOf(context, namespace, owner) !== undefined)) return;
  context.remove(resource, object);
}

function collectDependents(context: ControllerContext, uid: string): void {
  for (const { at } of context.owners.dependents(uid)) collectUnowned(context, at.resource, at.key);
}

const waiting = new WeakMap<ControllerContext, Map<string, StoredAt>>();

/** Schedules a check of an object that is being deleted. Without `at`, the check uses the place known for this uid. */
function finishLater(context: ControllerContext, uid: string, at?: StoredAt): void {
  const known = waiting.get(context) ?? new Map<string, StoredAt>();
  waiting.set(context, known);
  if (at !== undefined) known.set(uid, at);
  const place = known.get(uid);
  if (place === undefined) return;
  context.scheduler.at(`gc-finish/${uid}`, context.cluster.options.clock(), () => {
    const object = context.cluster.store.get(place.resource, place.key);
    if (object === undefined || uidOf(object) !== uid) known.delete(uid);
    else finish(context, place.resource, object);
  });
}

function finish(context: ControllerContext, resource: string, object: JsonObject): void {
  const finalizers = listAt(object, "metadata", "finalizers");
  const dependents = context.owners.dependents(uidOf(object));
  if (finalizers.includes(orphan)) {
    for (const { at, object: dependent } of dependents) disown(context, at.resource, { dependent, uid: uidOf(object) });
    dropFinalizer(context, resource, { object, finalizer: orphan });
    return;
  }
  if (!finalizers.includes(foreground)) return;
  const blocking = dependents.filter(({ object: dependent }) =>
    listAt(dependent, "metadata", "ownerReferences").some(
      (owner) => isJsonObject(owner) && owner.uid === uidOf(object) && owner.blockOwnerDeletion === true,
    ),
  );
  for (const { at, object: dependent } of dependents) {
    if (valueAt(dependent, "metadata", "deletionTimestamp") !== undefined) continue;
    context.remove(at.resource, dependent, { propagation: "Foreground" });
  }
  if (blocking.every(({ at }) => context.cluster.store.get(at.resource, at.key) === undefined)) {
    dropFinalizer(context, resource, { object, finalizer: foreground });
  }
}

function disown(
  context: ControllerContext,
  resource: string,
  { dependent, uid }: { readonly dependent: JsonObject; readonly uid: string },
): void {
  const left = listAt(dependent, "metadata", "ownerReferences").filter((owner) => stringAt(owner, "uid") !== uid);
  context.write(resource, withMetadata(dependent, { ownerReferences: left.length === 0 ? undefined : left }));
}

function dropFinalizer(
  context: ControllerContext,
  resource: string,
  { object, finalizer }: { readonly object: JsonObject; readonly finalizer: string },
): void {
  const live = context.cluster.store.get(resource, keyOf(object));
  if (live === undefined) return;
  const left = listAt(live, "metadata", "finalizers").filter((each) => each !== finalizer);
  context.write(resource, withMetadata(live, { finalizers: left.length === 0 ? undefined : left }));
}
