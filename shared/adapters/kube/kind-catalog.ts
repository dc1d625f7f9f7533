import type { KindInfo, KindLookup, KindQuery } from "#shared/domain/cluster-client.ts";
import { isJsonObject, type Json, parseJson } from "#shared/domain/json.ts";
import { KubeError } from "#shared/domain/kube-error.ts";
import { listAt, stringAt } from "#shared/domain/kube-object.ts";
import { groupOf, versionOf } from "#shared/domain/object-id.ts";

/** Reads a discovery path of the API server. @throws KubeError for any answer but 200. */
export type DiscoveryReader = (path: string, accept: string) => Promise<string>;

const aggregated = ["v2", "v2beta1"]
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .concat("application/json")
  .join(",");

/** An answer so young is not asked for again: a hundred objects of one unknown kind are no hundred discoveries. */
const freshMs = 1_000;

interface GroupVersion {
  readonly version: string;
  /** undefined: the server behind it did not answer. A function: not asked yet. */
  readonly kinds:
    | ReadonlyMap<string, KindInfo>
    | undefined
    | (() => Promise<ReadonlyMap<string, KindInfo> | undefined>);
}

/** Groups in the server's order of versions: the preferred first. */
type Groups = ReadonlyMap<string, readonly GroupVersion[]>;

/**
 * What a cluster serves, from two requests of aggregated discovery (KEP-3352), or group by group from servers without
 * it. Kept until `forget`; asked again when a kind is not known and the answer is older than a second.
 */
export class KindCatalog {
  readonly #read: DiscoveryReader;
  #groups: Promise<Groups> | undefined;
  #loadedAt = 0;

  constructor(read: DiscoveryReader) {
    this.#read = read;
  }

  forget(): void {
    this.#groups = undefined;
  }

  async lookup(query: KindQuery): Promise<KindLookup> {
    const found = await this.#find(query);
    if (found.outcome === "found") return found;
    if (Date.now() - this.#loadedAt > freshMs) this.forget();
    return this.#find(query);
  }

  /** Every kind that can be listed, once, in its preferred version. @throws KubeError when a group is silent. */
  async listableKinds(): Promise<readonly KindInfo[]> {
    const infos: KindInfo[] = [];
    for (const [group, versions] of await this.#load()) {
      const seen = new Set<string>();
      for (const { version, kinds } of versions) {
        const known = typeof kinds === "function" ? await kinds() : kinds;
        if (known === undefined) throw silentGroup(group, version);
        for (const info of known.values()) {
          if (seen.has(info.kind) || !info.verbs.includes("list")) continue;
          seen.add(info.kind);
          infos.push(info);
        }
      }
    }
    return infos;
  }

  async #find(query: KindQuery): Promise<KindLookup> {
    const versions = (await this.#load()).get(query.group) ?? [];
    const served: string[] = [];
    const silent: string[] = [];
    for (const { version, kinds } of versions) {
      const known = typeof kinds === "function" ? await kinds() : kinds;
      if (known === undefined) {
        silent.push(version);
        continue;
      }
      const info = known.get(query.kind);
      if (info === undefined) continue;
      if (query.version === undefined || query.version === version) return { outcome: "found", info };
      served.push(version);
    }
    const maybeThere = silent.some((version) => query.version === undefined || query.version === version);
    if (!maybeThere) return { outcome: "absent", served };
    const name = `APIService ${silent[0]}.${query.group}`;
    return { outcome: "unavailable", message: `${name} is announced and does not answer, so ${query.kind} is unknown` };
  }

  #load(): Promise<Groups> {
    if (this.#groups !== undefined) return this.#groups;
    this.#loadedAt = Date.now();
    const loading = this.#readGroups();
    this.#groups = loading;
    loading.catch(() => {
      if (this.#groups === loading) this.#groups = undefined;
    });
    return loading;
  }

  async #readGroups(): Promise<Groups> {
    const [core, named] = await Promise.all([this.#read("/api", aggregated), this.#read("/apis", aggregated)]);
    const groups = new Map<string, readonly GroupVersion[]>();
    for (const text of [core, named]) {
      const document = parseJson(text);
      if (stringAt(document, "kind") === "APIGroupDiscoveryList") readAggregated(document, groups);
      else this.#readPlain(document, groups);
    }
    return groups;
  }

  #readPlain(document: Json, groups: Map<string, readonly GroupVersion[]>): void {
    for (const version of listAt(document, "versions")) {
      if (typeof version !== "string") continue;
      groups.set("", [...(groups.get("") ?? []), this.#lazyVersion("", version)]);
    }
    for (const group of listAt(document, "groups")) {
      const name = stringAt(group, "name") ?? "";
      const preferred = stringAt(group, "preferredVersion", "version");
      const versions = listAt(group, "versions").map((version) => stringAt(version, "version") ?? "");
      versions.sort((a, b) => Number(b === preferred) - Number(a === preferred));
      groups.set(
        name,
        versions.map((version) => this.#lazyVersion(name, version)),
      );
    }
  }

  #lazyVersion(group: string, version: string): GroupVersion {
    let reading: Promise<ReadonlyMap<string, KindInfo> | undefined> | undefined;
    const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const kinds = () => {
      reading ??= this.#read(path, "application/json").then((text) => readResourceList(parseJson(text)), silentServer);
      return reading;
    };
    return { version, kinds };
  }
}

function silentGroup(group: string, version: string): KubeError {
  const message = `APIService ${version}.${group} is announced and does not answer`;
  return new KubeError(
    { method: "GET", path: `/apis/${group}/${version}`, secret: false },
    { status: 503, reason: "ServiceUnavailable", message, causes: [] },
  );
}

/** One aggregated server that is down says nothing about the others (kapp#12). */
function silentServer(error: unknown): undefined {
  if (error instanceof KubeError && (error.status === 404 || error.status === 503)) return undefined;
  throw error;
}

function readAggregated(document: Json, groups: Map<string, readonly GroupVersion[]>): void {
  for (const item of listAt(document, "items")) {
    const group = stringAt(item, "metadata", "name") ?? "";
    const versions = listAt(item, "versions").map((entry): GroupVersion => {
      const version = stringAt(entry, "version") ?? "";
      if (stringAt(entry, "freshness") === "Stale") return { version, kinds: undefined };
      const kinds = new Map<string, KindInfo>();
      for (const resource of listAt(entry, "resources")) {
        const kind = stringAt(resource, "responseKind", "kind");
        const plural = stringAt(resource, "resource");
        if (kind === undefined || plural === undefined) continue;
        const subresources = listAt(resource, "subresources").map((sub) => stringAt(sub, "subresource"));
        kinds.set(kind, {
          group,
          version,
          kind,
          plural,
          namespaced: stringAt(resource, "scope") === "Namespaced",
          verbs: verbsOf(resource),
          hasStatus: subresources.includes("status"),
        });
      }
      return { version, kinds };
    });
    groups.set(group, versions);
  }
}

function readResourceList(document: Json): ReadonlyMap<string, KindInfo> {
  const groupVersion = stringAt(document, "groupVersion") ?? "v1";
  const resources = listAt(document, "resources").filter(isJsonObject);
  const names = new Set(resources.map((resource) => resource.name));
  const kinds = new Map<string, KindInfo>();
  for (const resource of resources) {
    const { name, kind } = resource;
    if (typeof name !== "string" || typeof kind !== "string" || name.includes("/")) continue;
    kinds.set(kind, {
      group: groupOf(groupVersion),
      version: versionOf(groupVersion),
      kind,
      plural: name,
      namespaced: resource.namespaced === true,
      verbs: verbsOf(resource),
      hasStatus: names.has(`${name}/status`),
    });
  }
  return kinds;
}

function verbsOf(resource: Json): readonly string[] {
  return listAt(resource, "verbs").filter((verb) => typeof verb === "string");
}
