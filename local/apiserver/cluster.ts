import { ClusterStore } from "#apiserver/cluster-store.ts";
import { FaultPlan } from "#apiserver/faults.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { builtinKinds, builtinKindsByResource } from "#apiserver/kinds/builtin-kinds.ts";
import { customKinds } from "#apiserver/kinds/custom-kind.ts";
import { apiVersionParts, type Kind, resourceKey } from "#apiserver/kinds/kind.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";

export interface ClusterOptions {
  readonly name: string;
  /** The uid of the namespace kube-system, which identifies a cluster. */
  readonly uid: string;
  readonly token: string;
  /** For example `v1.36.2`. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** The certificate authority of the server in PEM, the content of `kube-root-ca.crt`. */
  readonly caCert: string;
  /** "off" runs no controllers: no object becomes ready and no object is garbage-collected. */
  readonly controllers: "on" | "off";
}

export const crdResource = resourceKey("apiextensions.k8s.io", "customresourcedefinitions");

/** One API server: its objects, the kinds that it serves, its clock and its faults. */
export class Cluster {
  readonly options: ClusterOptions;
  readonly store: ClusterStore;
  readonly faults = new FaultPlan();
  readonly #customKinds = new Map<string, readonly Kind[]>();

  constructor(options: ClusterOptions, revision = 1) {
    this.options = options;
    this.store = new ClusterStore(revision);
  }

  /** The current time in RFC 3339, in whole seconds. */
  now(): string {
    return `${new Date(this.options.clock()).toISOString().slice(0, 19)}Z`;
  }

  /** Starts to serve the kinds of an established CustomResourceDefinition. */
  serve(crd: JsonObject): void {
    const name = stringAt(crd, "metadata", "name") ?? "";
    this.#customKinds.set(name, customKinds(crd));
  }

  stopServing(crdName: string): void {
    this.#customKinds.delete(crdName);
  }

  /** The kinds of CustomResourceDefinitions, by the name of the definition. */
  customKinds(): ReadonlyMap<string, readonly Kind[]> {
    return this.#customKinds;
  }

  /** Every kind that this server serves, in each served version. */
  kinds(): readonly Kind[] {
    if (this.#customKinds.size === 0) return builtinKinds;
    return [...builtinKinds, ...[...this.#customKinds.values()].flat()];
  }

  /** The kind of an API path, if the server serves it. */
  kindOf(group: string, version: string, plural: string): Kind | undefined {
    const builtin = builtinKindsByResource.get(resourceKey(group, plural));
    if (builtin?.version === version) return builtin;
    if (builtin !== undefined)
      return builtinKinds.find((kind) => kind.plural === plural && kind.group === group && kind.version === version);
    const custom = this.#customKinds.get(`${plural}.${group}`);
    return custom?.find((kind) => kind.version === version);
  }

  /** The kind of objects with this apiVersion and kind, if the server serves it. */
  kindNamed(apiVersion: string, kind: string): Kind | undefined {
    const { group, version } = apiVersionParts(apiVersion);
    return this.kinds().find((each) => each.group === group && each.kind === kind && each.version === version);
  }

  namespace(name: string): JsonObject | undefined {
    return this.store.get("/namespaces", `/${name}`);
  }

  isTerminating(namespace: string): boolean {
    return valueAt(this.namespace(namespace), "metadata", "deletionTimestamp") !== undefined;
  }
}
