import type { Clock } from "#shared/base/clock.ts";
import type { ClusterClient, KindInfo, ListQuery, ObjectKey } from "#shared/kube/cluster-client.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { type KubeObject, labelsOf, stringAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { kindKey } from "#shared/kube/object-id.ts";

/** An id has 55 characters, and the address of a request contains all ids. */
const setsInOneList = 40;
/** An older answer is read again. */
const staleMs = 15_000;

interface Share {
  readonly at: number;
  readonly items: readonly KubeObject[];
}

interface Clients {
  readonly own: ClusterClient;
  readonly shared: ClusterClient;
}

interface Asked {
  readonly setId: string;
  readonly kind: KindInfo;
  readonly query: ListQuery;
  /** Absent: all namespaces. */
  readonly namespace: string | undefined;
}

/**
 * Shares lists of members among several sets of one cluster that are checked one after the other. The first request for
 * a kind lists it for all sets with members of it, and each set gets its part once. A set that asks again, or has
 * written, reads again.
 */
export class SharedLists {
  /** By set and kind, the namespaces of its members. */
  readonly #places: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;
  readonly #clock: Clock;
  /** By list, the parts of sets that have not asked yet. */
  readonly #lists = new Map<string, Map<string, Share>>();
  readonly #served = new Set<string>();
  readonly #definitions = new Map<string, { readonly at: number; readonly found: KubeObject | undefined }>();
  /** Kinds that Starling may not list over all namespaces. */
  readonly #refused = new Map<string, KubeError>();
  /** Lists that are too large to read for several sets at once. */
  readonly #tooLarge = new Set<string>();

  constructor(inventories: readonly Inventory[], clock: Clock) {
    this.#places = new Map(inventories.map((inventory) => [inventory.setId, placesOf(inventory)]));
    this.#clock = clock;
  }

  /**
   * The client for checking one of the sets.
   * @param shared - makes the lists for several sets, which therefore do not count against the own client's limit.
   */
  of(client: ClusterClient, shared: ClusterClient): ClusterClient {
    const written = <T>(answer: Promise<T>): Promise<T> => {
      this.#lists.clear();
      this.#definitions.clear();
      return answer;
    };
    return {
      guardedBy: (permit) => this.of(client.guardedBy(permit), shared),
      serverVersion: () => client.serverVersion(),
      lookup: (query) => client.lookup(query),
      listableKinds: () => client.listableKinds(),
      forgetKinds: () => client.forgetKinds(),
      get: (kind, key, options) => this.#get(client, { kind, key, options }),
      list: (kind, query) => this.#list({ own: client, shared }, kind, query),
      apply: (kind, object, options) => written(client.apply(kind, object, options)),
      create: (kind, object) => written(client.create(kind, object)),
      replace: (kind, object) => written(client.replace(kind, object)),
      patch: (kind, key, operations) => written(client.patch(kind, key, operations)),
      delete: (kind, key, precondition) => written(client.delete(kind, key, precondition)),
    };
  }

  async #get(
    client: ClusterClient,
    {
      kind,
      key,
      options,
    }: {
      readonly kind: KindInfo;
      readonly key: ObjectKey;
      readonly options: { readonly metadataOnly?: true } | undefined;
    },
  ): Promise<KubeObject | undefined> {
    const isShared = kind.kind === "CustomResourceDefinition" && options?.metadataOnly === true;
    if (!isShared) return client.get(kind, key, options);
    const known = this.#definitions.get(key.name);
    if (known !== undefined && this.#isFresh(known)) return known.found;
    const at = this.#clock.now().getTime();
    const found = await client.get(kind, key, options);
    this.#definitions.set(key.name, { at, found });
    return found;
  }

  async #list(clients: Clients, kind: KindInfo, query: ListQuery): Promise<readonly KubeObject[]> {
    const setId = setIdOf(query);
    const isShared = query.maxItems === undefined && query.keep === undefined && this.#places.has(setId);
    if (!isShared) return clients.own.list(kind, query);
    const asked: Asked = { setId, kind, query, namespace: this.#scopeOf(kind, query.namespace) };
    const refused = this.#refused.get(kindKey(kind));
    if (refused !== undefined && asked.namespace === undefined) throw refused;
    const isAlone = this.#served.has(servedKey(asked, setId)) || this.#tooLarge.has(listKey(asked));
    this.#served.add(servedKey(asked, setId));
    if (isAlone) return clients.own.list(kind, query);
    try {
      const items = await this.#shared(clients, asked);
      const { namespace } = query;
      return namespace === undefined
        ? items
        : items.filter((item) => stringAt(item, "metadata", "namespace") === namespace);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.class === "tooLarge") {
        this.#tooLarge.add(listKey(asked));
        return clients.own.list(kind, query);
      }
      const isTooWide = error.class === "forbidden" && kind.namespaced && asked.namespace === undefined;
      if (!isTooWide) throw error;
      this.#refused.set(kindKey(kind), error);
      if (query.namespace === undefined) throw error;
      return this.#list(clients, kind, query);
    }
  }

  /** One namespace only if all sets have their members of the kind there, or if more must not be listed. */
  #scopeOf(kind: KindInfo, namespace: string | undefined): string | undefined {
    if (namespace === undefined || this.#refused.has(kindKey(kind))) return namespace;
    const isElsewhere = [...this.#places.values()].some((places) =>
      [...(places.get(kindKey(kind)) ?? [])].some((other) => other !== namespace),
    );
    return isElsewhere ? undefined : namespace;
  }

  async #shared({ own, shared }: Clients, asked: Asked): Promise<readonly KubeObject[]> {
    const { setId, kind, query, namespace } = asked;
    const key = listKey(asked);
    const kept = this.#lists.get(key) ?? new Map<string, Share>();
    this.#lists.set(key, kept);
    const share = kept.get(setId);
    kept.delete(setId);
    if (share !== undefined && this.#isFresh(share)) return share.items;
    const others = this.#othersOf(asked).filter((other) => {
      const known = kept.get(other);
      return known === undefined || !this.#isFresh(known);
    });
    const sets = [setId, ...others].slice(0, setsInOneList);
    if (sets.length === 1) return own.list(kind, query);
    const at = this.#clock.now().getTime();
    const { namespace: _one, ...wide } = query;
    const items = await shared.list(kind, {
      ...wide,
      ...(namespace === undefined ? {} : { namespace }),
      labelSelector: `${partOfLabel} in (${sets.join(",")})`,
    });
    const bySet = Map.groupBy(items, (item) => labelsOf(item)[partOfLabel] ?? "");
    for (const other of sets.slice(1)) kept.set(other, { at, items: bySet.get(other) ?? [] });
    return bySet.get(setId) ?? [];
  }

  #isFresh({ at }: { readonly at: number }): boolean {
    return this.#clock.now().getTime() - at < staleMs;
  }

  /** The other sets that have members of the kind there and have not asked yet. */
  #othersOf(asked: Asked): readonly string[] {
    const { setId, kind, namespace } = asked;
    return [...this.#places].flatMap(([other, places]) => {
      const where = places.get(kindKey(kind));
      const isThere = where !== undefined && (namespace === undefined || where.has(namespace));
      return other !== setId && isThere && !this.#served.has(servedKey(asked, other)) ? [other] : [];
    });
  }
}

/** @returns an empty id for a selector that does not select exactly one set. */
function setIdOf({ labelSelector = "" }: ListQuery): string {
  const [label, setId = ""] = labelSelector.split("=");
  return label === partOfLabel ? setId : "";
}

function placesOf({ entries }: Inventory): ReadonlyMap<string, ReadonlySet<string>> {
  const byKind = Map.groupBy(entries, ({ id }) => kindKey(id));
  return new Map([...byKind].map(([kind, of]) => [kind, new Set(of.map(({ id }) => id.namespace))]));
}

function scopeKey({ kind, namespace }: Asked): string {
  return `${kind.group}/${kind.version}/${kind.plural} ${namespace ?? "*"}`;
}

function listKey(asked: Asked): string {
  return `${scopeKey(asked)} ${asked.query.metadataOnly === true}`;
}

function servedKey(asked: Asked, setId: string): string {
  return `${setId} ${scopeKey(asked)}`;
}
