import { ClusterStore } from "#apiserver/cluster-store.ts";
import { FaultPlan } from "#apiserver/faults.ts";
import type { JsonObject } from "#apiserver/json.ts";
import { builtinKinds, builtinKindsByResource } from "#apiserver/kinds/builtin-kinds.ts";
import { customKinds } from "#apiserver/kinds/custom-kind.ts";
import { apiVersionParts, type Kind, resourceKey } from "#apiserver/kinds/kind.ts";
import { stringAt, valueAt } from "#apiserver/object-fields.ts";

export interface ClusterOptions {
  readonly name: string;
  /** The uid of the namespace kube-system, which names a cluster everywhere. */
  readonly uid: string;
  readonly token: string;
  /** `v1.36.2`. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** The certificate authority of the server, PEM: what `kube-root-ca.crt` holds. */
  readonly caCert: string;
  /** Whether controllers run; without them nothing becomes ready and nothing is collected. */
  readonly controllers: "on" | "off";
}

export const crdResource = resourceKey("apiextensions.k8s.io", "customresourcedefinitions");

/** One API server: its objects, the kinds it serves, its clock, what goes wrong with it. */
export class Cluster {
  readonly options: ClusterOptions;
  readonly store: ClusterStore;
  readonly faults = new FaultPlan();
  readonly #customKinds = new Map<string, readonly Kind[]>();

  constructor(options: ClusterOptions, revision = 1) {
    this.options = options;
    this.store = new ClusterStore(revision);
  }

  /** The time in RFC 3339, whole seconds. */
  now(): string {
    return `${new Date(this.options.clock()).toISOString().slice(0, 19)}Z`;
  }

  /** Serves what an established CustomResourceDefinition declares. */
  serve(crd: JsonObject): void {
    const name = stringAt(crd, "metadata", "name") ?? "";
    this.#customKinds.set(name, customKinds(crd));
  }

  stopServing(crdName: string): void {
    this.#customKinds.delete(crdName);
  }

  /** The kinds of CustomResourceDefinitions, by name of the definition. */
  customKinds(): ReadonlyMap<string, readonly Kind[]> {
    return this.#customKinds;
  }

  /** Every kind this server answers for, each in every served version. */
  kinds(): readonly Kind[] {
    if (this.#customKinds.size === 0) return builtinKinds;
    return [...builtinKinds, ...[...this.#customKinds.values()].flat()];
  }

  /** The kind behind a path, or undefined. */
  kindOf(group: string, version: string, plural: string): Kind | undefined {
    const builtin = builtinKindsByResource.get(resourceKey(group, plural));
    if (builtin?.version === version) return builtin;
    if (builtin !== undefined)
      return builtinKinds.find((kind) => kind.plural === plural && kind.group === group && kind.version === version);
    const custom = this.#customKinds.get(`${plural}.${group}`);
    return custom?.find((kind) => kind.version === version);
  }

  /** The kind that objects of an apiVersion and kind have, or undefined. */
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
