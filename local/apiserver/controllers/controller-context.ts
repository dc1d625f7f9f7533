import { randomUUID } from "node:crypto";
import { trackUpdate, withManagedFields } from "#apiserver/apply/managed-fields.ts";
import type { Cluster } from "#apiserver/cluster.ts";
import { keyOf } from "#apiserver/cluster-store.ts";
import { OwnerIndex } from "#apiserver/controllers/owner-index.ts";
import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { builtinKindsByResource } from "#apiserver/kinds/builtin-kinds.ts";
import { toGoPart } from "#apiserver/kinds/go-object.ts";
import { apiVersionOf, type Kind } from "#apiserver/kinds/kind.ts";
import { annotationsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { type DeleteOptions, deleteStored } from "#apiserver/operations/delete-operations.ts";
import { metadataOf, nameOf, withMetadata } from "#apiserver/operations/object-meta.ts";
import { applyParsed } from "#apiserver/operations/patch-operations.ts";
import { fieldsContext, toServerObject, type WriteRequest } from "#apiserver/operations/write-request.ts";
import type { Scheduler } from "#apiserver/scheduler.ts";

export interface ControllerSettings {
  readonly scheduler: Scheduler;
  readonly readyAfterMs: number;
  readonly imagePullFails: (image: string) => boolean;
}

/** The operations of controllers on a cluster. Their writes have entries of their own in managedFields. */
export interface ControllerContext extends ControllerSettings {
  readonly cluster: Cluster;
  readonly owners: OwnerIndex;
  /** Creates an object of a built-in kind unless it exists, and returns the stored object. */
  create(resource: string, object: JsonObject): JsonObject;
  /** Applies an object of a built-in kind, as `manager`. */
  apply(resource: string, object: JsonObject, manager: string): void;
  /** Stores an existing object. Removes it if the last finalizer is gone. */
  write(resource: string, object: JsonObject): void;
  /** Replaces the status and adds annotations, if they differ. */
  writeStatus(
    resource: string,
    object: JsonObject,
    next: { readonly status: JsonObject; readonly manager?: string; readonly annotations?: JsonObject },
  ): void;
  /** Deletes an object as a client would. */
  remove(resource: string, object: JsonObject, options?: Partial<DeleteOptions>): void;
}

const controllerManager = "kube-controller-manager";

export function controllerContext(cluster: Cluster, settings: ControllerSettings): ControllerContext {
  const { store } = cluster;
  function kindOf(resource: string): Kind | undefined {
    const builtin = builtinKindsByResource.get(resource);
    if (builtin !== undefined) return builtin;
    return cluster.kinds().find((kind) => `${kind.group}/${kind.plural}` === resource);
  }
  function request(
    kind: Kind,
    object: JsonObject,
    as: { readonly manager: string; readonly subresource: string },
  ): WriteRequest {
    const namespace = stringAt(object, "metadata", "namespace") ?? "";
    const plain = { force: true, dryRun: false, fieldValidation: "Ignore", contentType: undefined, body: "" } as const;
    return { ...plain, ...as, cluster, kind, namespace, name: nameOf(object), warnings: [] };
  }
  function put(resource: string, object: JsonObject): JsonObject {
    const stored = withMetadata(object, { resourceVersion: String(store.nextRevision()) });
    store.put(resource, stored);
    return stored;
  }
  return {
    cluster,
    owners: new OwnerIndex(store),
    ...settings,
    create(resource, object) {
      const existing = store.get(resource, keyOf(object));
      if (existing !== undefined) return existing;
      const kind = kindOf(resource);
      if (kind === undefined) throw new Error(`controllers create objects of served kinds only, not ${resource}`);
      const write = request(kind, object, { manager: controllerManager, subresource: "" });
      const decoded = toServerObject(write, { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind }, "client");
      const tracked = withManagedFields(decoded, trackUpdate(undefined, decoded, fieldsContext(write)));
      return put(
        resource,
        withMetadata(tracked, {
          uid: randomUUID(),
          creationTimestamp: cluster.now(),
          generation: kind.generation === "none" ? undefined : 1,
        }),
      );
    },
    apply(resource, object, manager) {
      const kind = kindOf(resource);
      if (kind === undefined) throw new Error(`controllers apply objects of served kinds only, not ${resource}`);
      const config = { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind };
      applyParsed(request(kind, object, { manager, subresource: "" }), config, undefined);
    },
    write(resource, object) {
      const live = store.get(resource, keyOf(object));
      const kind = kindOf(resource);
      if (live === undefined || kind === undefined) return;
      const context = fieldsContext(request(kind, object, { manager: controllerManager, subresource: "" }));
      const managed = withManagedFields(object, trackUpdate(live, object, context));
      if (isDone(managed)) {
        store.remove(resource, withMetadata(managed, { resourceVersion: String(store.nextRevision()) }));
      } else if (!deepEqual(live, managed)) {
        put(resource, managed);
      }
    },
    writeStatus(resource, object, { status, annotations, manager = controllerManager }) {
      const live = store.get(resource, keyOf(object));
      const kind = kindOf(resource);
      if (live === undefined || kind === undefined || metadataOf(live).uid !== metadataOf(object).uid) return;
      const write = request(kind, object, { manager, subresource: "status" });
      const ref = kind.typeIn(kind.version);
      const decoded = ref === undefined ? status : toGoPart(ref, "status", status);
      const noted = { ...annotationsOf(live), ...annotations };
      const next = {
        ...(annotations === undefined ? live : withMetadata(live, { annotations: noted })),
        status: decoded,
      };
      if (deepEqual(live, next)) return;
      put(resource, withManagedFields(next, trackUpdate(live, next, fieldsContext(write))));
    },
    remove(resource, object, options = {}) {
      const kind = kindOf(resource);
      const live = store.get(resource, keyOf(object));
      if (kind === undefined || live === undefined) return;
      deleteStored({ cluster, kind }, live, { propagation: "Background", dryRun: false, ...options });
    },
  };
}

function isDone(object: JsonObject): boolean {
  if (metadataOf(object).deletionTimestamp === undefined) return false;
  if (listAt(object, "metadata", "finalizers").length > 0) return false;
  const spec = valueAt(object, "spec", "finalizers");
  return object.kind !== "Namespace" || !Array.isArray(spec) || spec.length === 0;
}

/** The controller that owns an object, or undefined. */
export function controllerOf(object: JsonObject): JsonObject | undefined {
  return listAt(object, "metadata", "ownerReferences").find(
    (owner: Json): owner is JsonObject => isJsonObject(owner) && owner.controller === true,
  );
}
