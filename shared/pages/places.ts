/** The addresses of the pages. */
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { PagePlace } from "#shared/pages/view.ts";

export function ownerPagePlace({ kind, namespace, name }: Owner): PagePlace {
  return { path: `/${pluralOf(kind)}/${namespace}/${name}` };
}

export function targetsPlace(
  { kind, namespace, name }: Owner,
  query: { readonly [name in "number" | "stage" | "state"]?: string | undefined },
): PagePlace {
  return { path: `/${pluralOf(kind)}/${namespace}/${name}/clusters`, query };
}

/** The history with commits. */
export function historyPlace(owner: Owner): PagePlace {
  return { path: `${ownerPagePlace(owner).path}/history` };
}

export function eventsPlace(owner: Owner, cluster?: string): PagePlace {
  return { path: `${ownerPagePlace(owner).path}/events`, query: { cluster } };
}

/** A Source or one of its paths, wherever it is rolled out. */
export function modulePlace(module: {
  readonly namespace: string;
  readonly source: string;
  readonly path?: string;
}): PagePlace {
  return { path: `/sources/${module.namespace}/${module.source}`, query: { path: module.path } };
}

export function receiverPlace({ namespace, name }: { readonly namespace: string; readonly name: string }): PagePlace {
  return { path: `/receivers/${namespace}/${name}` };
}

export function clusterPlace(name: string): PagePlace {
  return { path: `/clusters/${name}` };
}

/** The owner of an object. */
export function ownerPlace(cluster: string, object?: string): PagePlace {
  return { path: `/clusters/${cluster}/objects`, query: { object } };
}

/** A Sync on one cluster. */
export function syncPlace(sync: {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
}): PagePlace {
  return { path: `/clusters/${sync.cluster}/syncs/${sync.namespace}/${sync.name}` };
}

/** The path in the API. */
export function apiPath({ kind, namespace, name }: Owner): string {
  return `/v1/namespaces/${percentEncode(namespace)}/${pluralOf(kind)}/${percentEncode(name)}`;
}

/** The plural in the API. */
function pluralOf(kind: Owner["kind"]): "syncgroups" | "syncs" {
  return kind === "SyncGroup" ? "syncgroups" : "syncs";
}
