import { readGroups, readResourceList, type ServedKinds, silent } from "#shared/adapters/kube/discovery-documents.ts";
import type { Clock } from "#shared/base/clock.ts";
import type { Json } from "#shared/base/json.ts";
import type { KindInfo, KindLookup, KindQuery } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

/** Reads a discovery path of the API server, within limits. @throws KubeError for any answer except 200. */
export type DiscoveryReader = (path: string, accept: string) => Promise<Json>;

const aggregated = ["v2", "v2beta1"]
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .concat("application/json")
  .join(",");

/**
 * A younger answer is not requested again, so that a hundred objects of an unknown kind do not cause a hundred
 * discoveries.
 */
const freshMs = 1_000;

interface GroupVersion {
  readonly version: string;
  /** The kinds, or the function that requests them. */
  readonly kinds: ServedKinds | (() => Promise<ServedKinds>);
}

/** The versions of each group in the server's order: the preferred version first. */
type Groups = ReadonlyMap<string, readonly GroupVersion[]>;

/**
 * The kinds that a cluster serves, from two requests of aggregated discovery (KEP-3352), or group by group from servers
 * without it. They are kept until `forget`, and requested again when a kind is unknown and the answer is older than a
 * second.
 */
export class KindCatalog {
  readonly #read: DiscoveryReader;
  readonly #clock: Clock;
  #groups: Promise<Groups> | undefined;
  #loadedAt = 0;
  /** The number of kinds in memory. */
  #size = 0;

  constructor(read: DiscoveryReader, clock: Clock) {
    this.#read = read;
    this.#clock = clock;
  }

  forget(): void {
    this.#groups = undefined;
    this.#size = 0;
  }

  /** The number of kinds in memory. */
  get size(): number {
    return this.#size;
  }

  async lookup(query: KindQuery): Promise<KindLookup> {
    const found = await this.#find(query);
    if (found.outcome === "found") return found;
    if (this.#clock.now().getTime() - this.#loadedAt > freshMs) this.forget();
    return this.#find(query);
  }

  /** Every kind that can be listed, once, in its preferred version. @throws KubeError when a group does not answer. */
  async listableKinds(): Promise<readonly KindInfo[]> {
    const infos: KindInfo[] = [];
    for (const [group, versions] of await this.#load()) {
      const seen = new Set<string>();
      for (const { version, kinds } of versions) {
        const served = typeof kinds === "function" ? await kinds() : kinds;
        if (served.kinds === undefined) throw unknownGroup(group, version, served.problem);
        for (const info of served.kinds.values()) {
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
    const unknown: { readonly version: string; readonly problem: string }[] = [];
    for (const { version, kinds } of versions) {
      const known = typeof kinds === "function" ? await kinds() : kinds;
      if (known.kinds === undefined) {
        unknown.push({ version, problem: known.problem });
        continue;
      }
      const info = known.kinds.get(query.kind);
      if (info === undefined) continue;
      if (query.version === undefined || query.version === version) return { outcome: "found", info };
      served.push(version);
    }
    const maybeThere = unknown.find(({ version }) => query.version === undefined || query.version === version);
    if (maybeThere === undefined) return { outcome: "absent", served };
    const name = `APIService ${maybeThere.version}.${query.group}`;
    return {
      outcome: "unavailable",
      message: `${name} ${maybeThere.problem}, so that Starling does not know ${query.kind}`,
    };
  }

  #load(): Promise<Groups> {
    if (this.#groups !== undefined) return this.#groups;
    this.#loadedAt = this.#clock.now().getTime();
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
    for (const announced of [readGroups("/api", core), readGroups("/apis", named)]) {
      for (const [group, versions] of announced) {
        for (const { served } of versions) this.#size += served?.kinds?.size ?? 0;
        groups.set(
          group,
          versions.map(({ version, served }) => ({ version, kinds: served ?? this.#asked(group, version) })),
        );
      }
    }
    return groups;
  }

  #asked(group: string, version: string): () => Promise<ServedKinds> {
    let reading: Promise<ServedKinds> | undefined;
    const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const ask = async (): Promise<ServedKinds> => {
      try {
        const served = readResourceList(path, await this.#read(path, "application/json"));
        this.#size += served.kinds?.size ?? 0;
        return served;
      } catch (error) {
        if (isSilence(error)) return silent;
        // The failure may be over at the next request.
        reading = undefined;
        throw error;
      }
    };
    return () => {
      reading ??= ask();
      return reading;
    };
  }
}

function unknownGroup(group: string, version: string, problem: string): KubeError {
  const message = `APIService ${version}.${group} ${problem}`;
  return new KubeError(
    { method: "GET", path: "/apis", secret: false },
    { status: 503, reason: "ServiceUnavailable", message, causes: [] },
  );
}

/** One aggregated server that does not answer says nothing about the others (kapp#12). */
function isSilence(error: unknown): boolean {
  return error instanceof KubeError && (error.status === 404 || error.status === 503);
}
