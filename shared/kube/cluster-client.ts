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
  /** Absent: the version that the server prefers. */
  readonly version?: string;
}

/**
 * - `absent`: discovery was complete and the server does not serve it; `served` are the versions it does serve;
 * - `unavailable`: the group is announced and its server does not answer, so nothing is known. Never an absence.
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
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  /** Only `metadata`: an order of magnitude cheaper, for the server too. */
  readonly metadataOnly?: true;
  /** Stop after so many; absent: all. */
  readonly maxItems?: number;
  /** Which items are wanted; the others take no memory beyond their page. All by default. */
  readonly keep?: (object: KubeObject) => boolean;
}

export interface WriteAnswer {
  /** The object as the server stored it. */
  readonly object: KubeObject;
  readonly created: boolean;
  /** The server's Warning headers, without repetitions. */
  readonly warnings: readonly string[];
}

/** Asked before something is written; what it throws reaches whoever wanted to write. */
export type WritePermit = () => Promise<void>;

/**
 * One cluster, for the time of one piece of work. What fails is a `KubeError`; transient failures were retried inside
 * until the deadline. Objects in answers carry apiVersion and kind, items of lists too. Nothing given is changed.
 */
export interface ClusterClient {
  /**
   * The same client, which asks before every request that may write: each time that it is sent, when nothing is left to
   * wait for. A request may be repeated for minutes, or wait for a connection for as long, and what was permitted before
   * that is not any more.
   */
  guardedBy(permit: WritePermit): ClusterClient;
  /** What the API server calls its version: `v1.34.2-eks-1a2b3c4`. */
  serverVersion(): Promise<string>;
  /** Looks a kind up; asks the server again, once, when it is not known. */
  lookup(query: KindQuery): Promise<KindLookup>;
  /** Every kind that can be listed, in its preferred version. @throws KubeError when a group's server is silent. */
  listableKinds(): Promise<readonly KindInfo[]>;
  /** To be called after definitions have changed. */
  forgetKinds(): void;
  /** @returns undefined when there is no such object. */
  get(kind: KindInfo, key: ObjectKey, options?: { readonly metadataOnly?: true }): Promise<KubeObject | undefined>;
  /**
   * All items over all pages; starts over when the server forgets the page's version.
   * @throws KubeError of class `tooLarge` where there is more than is read: never a part of the list.
   */
  list(kind: KindInfo, query: ListQuery): Promise<readonly KubeObject[]>;
  /**
   * Server-side apply as `starling`, taking fields from whoever has them; unknown fields are refused. With
   * `metadata.resourceVersion` in the object only if that is still the newest.
   */
  apply(kind: KindInfo, object: ManifestObject, options?: { readonly dryRun?: true }): Promise<WriteAnswer>;
  create(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer>;
  /** PUT; with `metadata.resourceVersion` in the object only if that is still the newest. */
  replace(kind: KindInfo, object: ManifestObject): Promise<WriteAnswer>;
  patch(kind: KindInfo, key: ObjectKey, operations: readonly JsonPatchOperation[]): Promise<WriteAnswer>;
  /**
   * Asks for the deletion, in the background, of exactly the object with this uid.
   * @returns `gone` where the server says that this has ended; `asked` where only reading it shows that.
   * @throws KubeError of class `notFound` when it is gone, `replaced` when another object has its name.
   */
  delete(kind: KindInfo, key: ObjectKey, precondition: { readonly uid: string }): Promise<"gone" | "asked">;
}
