import type { KubeObject, ManifestObject } from "#shared/kube/kube-object.ts";
import type { JsonPatchOperation } from "#shared/kube/managed-fields.ts";

/** One kind as a cluster serves it. */
export interface KindInfo {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The resource in paths: `deployments`. */
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** Whether it has a status subresource. */
  readonly hasStatus: boolean;
}

export interface KindQuery {
  readonly group: string;
  readonly kind: string;
  /** Default: the version that the server prefers. */
  readonly version?: string;
}

/**
 *
 * - `absent`: discovery was complete, and the server does not serve the kind; `served` lists the versions that it
 *   serves.
 * - `unavailable`: the group is announced, but its server does not answer. Then nothing is known, and this never counts
 *   as an absence.
 */
export type KindLookup =
  | { readonly outcome: "found"; readonly info: KindInfo }
  | { readonly outcome: "absent"; readonly served: readonly string[] }
  | { readonly outcome: "unavailable"; readonly message: string };

export interface ObjectKey {
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;
}

export interface ListQuery {
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  /** Only `metadata`, which costs an order of magnitude less, for the server, too. */
  readonly metadataOnly?: true;
  /** The most items to read. Default: all. */
  readonly maxItems?: number;
  /** Which items to keep. The others need no memory beyond their page. Default: all. */
  readonly keep?: (object: KubeObject) => boolean;
}

export interface WriteAnswer {
  /** The object as the server stored it. */
  readonly object: KubeObject;
  readonly created: boolean;
  /** The server's Warning headers, without repetitions. */
  readonly warnings: readonly string[];
}

/** Called before a write. An error that it throws reaches the caller of the write. */
export type WritePermit = () => Promise<void>;

/**
 * One cluster, for the time of one piece of work. Failures are `KubeError`s; transient failures were retried inside
 * until the deadline. Objects in answers have apiVersion and kind, also the items of lists. The arguments are never
 * changed.
 */
export interface ClusterClient {
  /**
   * The same client, which asks for a permit each time before it sends a request that may write, as the last step. A
   * request can be repeated for minutes, or wait as long for a connection, so that an earlier permit may not be valid
   * any more.
   */
  guardedBy(permit: WritePermit): ClusterClient;
  /** The API server's version, such as `v1.34.2-eks-1a2b3c4`. */
  serverVersion(): Promise<string>;
  /** Looks up a kind. When the kind is unknown, it asks the server again, once. */
  lookup(query: KindQuery): Promise<KindLookup>;
  /** Every kind that can be listed, in its preferred version. @throws KubeError when a group's server is silent. */
  listableKinds(): Promise<readonly KindInfo[]>;
  /** Must be called after definitions have changed. */
  forgetKinds(): void;
  /** @returns undefined when the object does not exist. */
  get(kind: KindInfo, key: ObjectKey, options?: { readonly metadataOnly?: true }): Promise<KubeObject | undefined>;
  /**
   * All items of all pages. It starts again when the server forgets the version of a page.
   * @throws KubeError of class `tooLarge` when the list is longer than the limit. It never returns a part of the list.
   */
  list(kind: KindInfo, query: ListQuery): Promise<readonly KubeObject[]>;
  /**
   * Server-side apply as `starling` that takes over fields from all other managers. Unknown fields are refused. With
   * `metadata.resourceVersion` in the object, it succeeds only if that is the newest version.
   */
  apply(kind: KindInfo, object: ManifestObject, options?: { readonly dryRun?: true }): Promise<WriteAnswer>;
  create(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer>;
  /** PUT. With `metadata.resourceVersion` in the object, it succeeds only if that is the newest version. */
  replace(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer>;
  patch(kind: KindInfo, key: ObjectKey, operations: readonly JsonPatchOperation[]): Promise<WriteAnswer>;
  /**
   * Requests the deletion, in the background, of the object with exactly this uid.
   * @returns `gone` when the server says that the object is deleted; `asked` when only a later read can show it.
   * @throws KubeError of class `notFound` when the object does not exist any more, `replaced` when another object has
   * its name.
   */
  delete(kind: KindInfo, key: ObjectKey, precondition: { readonly uid: string }): Promise<"gone" | "asked">;
}
