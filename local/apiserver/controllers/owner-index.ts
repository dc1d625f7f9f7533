import { type Change, type ClusterStore, keyOf } from "#apiserver/cluster-store.ts";
import { isJsonObject, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt } from "#apiserver/object-fields.ts";

/** The place of an object in the store. */
export interface StoredAt {
  readonly resource: string;
  readonly key: string;
}

export function ownerUids(object: JsonObject): string[] {
  return listAt(object, "metadata", "ownerReferences")
    .map((owner) => (isJsonObject(owner) && typeof owner.uid === "string" ? owner.uid : ""))
    .filter((uid) => uid !== "");
}

/** An index of dependents by the uid of their owner. */
export class OwnerIndex {
  readonly #store: ClusterStore;
  readonly #dependents = new Map<string, Map<string, StoredAt>>();

  constructor(store: ClusterStore) {
    this.#store = store;
    for (const resource of store.resources()) for (const object of store.list(resource)) this.#add(resource, object);
  }

  /** Updates the index for one write. */
  follow({ resource, object, previous, type }: Change): void {
    if (previous !== undefined) this.#remove(resource, previous);
    if (type !== "DELETED") this.#add(resource, object);
  }

  /** The objects that this owner owns, optionally of one resource only. */
  dependents(uid: string, resource?: string): { readonly at: StoredAt; readonly object: JsonObject }[] {
    const found: { readonly at: StoredAt; readonly object: JsonObject }[] = [];
    for (const at of this.#dependents.get(uid)?.values() ?? []) {
      const object = this.#store.get(at.resource, at.key);
      if (object !== undefined && (resource === undefined || at.resource === resource)) found.push({ at, object });
    }
    return found.sort((a, b) => (a.at.key < b.at.key ? -1 : 1));
  }

  #add(resource: string, object: JsonObject): void {
    for (const uid of ownerUids(object)) {
      const known = this.#dependents.get(uid) ?? new Map<string, StoredAt>();
      this.#dependents.set(uid, known);
      const at = { resource, key: keyOf(object) };
      known.set(`${resource} ${at.key}`, at);
    }
  }

  #remove(resource: string, object: JsonObject): void {
    for (const uid of ownerUids(object)) {
      const known = this.#dependents.get(uid);
      known?.delete(`${resource} ${keyOf(object)}`);
      if (known?.size === 0) this.#dependents.delete(uid);
    }
  }
}

export function uidOf(object: JsonObject): string {
  return stringAt(object, "metadata", "uid") ?? "";
}
