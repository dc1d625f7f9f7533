import type { JsonObject } from "#apiserver/json.ts";
import { stringAt } from "#apiserver/object-fields.ts";

export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/** One write, as watches see it. `object` carries the resourceVersion of the write, even for a delete. */
export interface Change {
  readonly revision: number;
  readonly type: ChangeType;
  /** `group/plural`. */
  readonly resource: string;
  readonly object: JsonObject;
  readonly previous?: JsonObject;
}

/**
 * A watch can begin at most this many writes ago. etcd compacts its history, too, and hundreds of clusters share a
 * process.
 */
const maxHistory = 250;

export function objectKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

export function keyOf(object: JsonObject): string {
  return objectKey(stringAt(object, "metadata", "namespace") ?? "", stringAt(object, "metadata", "name") ?? "");
}

/** The objects of one cluster. Stored objects never change in place, so callers can share them. */
export class ClusterStore {
  readonly #objects = new Map<string, Map<string, JsonObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  #history: Change[] = [];
  #revision: number;

  constructor(revision: number) {
    this.#revision = revision;
  }

  /** The resourceVersion of the newest write. */
  get revision(): number {
    return this.#revision;
  }

  /** A watch cannot start before this revision. */
  get oldestRevision(): number {
    const [first] = this.#history;
    return this.#history.length < maxHistory || first === undefined ? 0 : first.revision;
  }

  /** The resourceVersion of the next write. */
  nextRevision(): number {
    return this.#revision + 1;
  }

  get(resource: string, key: string): JsonObject | undefined {
    return this.#objects.get(resource)?.get(key);
  }

  /** All objects of a resource, or those of one namespace, sorted by namespace and name. */
  list(resource: string, namespace?: string): readonly JsonObject[] {
    const objects = [...(this.#objects.get(resource) ?? [])];
    const chosen = namespace === undefined ? objects : objects.filter(([key]) => key.startsWith(`${namespace}/`));
    return chosen.sort(([a], [b]) => compareKeys(a, b)).map(([, object]) => object);
  }

  resources(): readonly string[] {
    return [...this.#objects.keys()].sort();
  }

  /** Stores an object whose resourceVersion is `nextRevision()`. */
  put(resource: string, object: JsonObject): void {
    const objects = this.#objects.get(resource) ?? new Map<string, JsonObject>();
    this.#objects.set(resource, objects);
    const key = keyOf(object);
    const previous = objects.get(key);
    objects.set(key, object);
    this.#record({
      type: previous === undefined ? "ADDED" : "MODIFIED",
      resource,
      object,
      ...(previous && { previous }),
    });
  }

  /** Removes an object; `last` is its final state under `nextRevision()`. */
  remove(resource: string, last: JsonObject): void {
    const previous = this.get(resource, keyOf(last));
    this.#objects.get(resource)?.delete(keyOf(last));
    this.#record({ type: "DELETED", resource, object: last, ...(previous && { previous }) });
  }

  /** Adds a saved object without a write, when a cluster starts. */
  restore(resource: string, object: JsonObject): void {
    const objects = this.#objects.get(resource) ?? new Map<string, JsonObject>();
    this.#objects.set(resource, objects);
    objects.set(keyOf(object), object);
  }

  /** The changes after a revision, oldest first. */
  changesSince(revision: number): readonly Change[] {
    return this.#history.filter((change) => change.revision > revision);
  }

  /** Calls the listener after each write until the returned function is called. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(change: Omit<Change, "revision">): void {
    this.#revision += 1;
    const recorded = { ...change, revision: this.#revision };
    this.#history.push(recorded);
    if (this.#history.length > maxHistory * 2) this.#history = this.#history.slice(-maxHistory);
    for (const listener of this.#listeners) listener(recorded);
  }
}

/** Sorts by namespace, then by name. A plain comparison of keys would sort "/" after "-" and ".". */
function compareKeys(a: string, b: string): number {
  const left = a.replace("/", "\u0000");
  const right = b.replace("/", "\u0000");
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
