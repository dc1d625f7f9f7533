/** Where each thing is shown. */
import type { Subject } from "#shared/fleet/rows/keys.ts";
import type { Place } from "#shared/pages/view.ts";

export function subjectPlace({ kind, namespace, name }: Subject): Place {
  return { path: `/${pluralOf(kind)}/${namespace}/${name}` };
}

export function targetsPlace(
  { kind, namespace, name }: Subject,
  query: Readonly<Record<"number" | "stage" | "state" | "continue", string | undefined>>,
): Place {
  return { path: `/${pluralOf(kind)}/${namespace}/${name}/clusters`, query };
}

export function clusterPlace(name: string): Place {
  return { path: `/clusters/${name}` };
}

/** A Sync as it is on one cluster. */
export function syncPlace(sync: {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
}): Place {
  return { path: `/clusters/${sync.cluster}/syncs/${sync.namespace}/${sync.name}` };
}

/** As the API spells it. */
export function pluralOf(kind: Subject["kind"]): "syncgroups" | "syncs" {
  return kind === "SyncGroup" ? "syncgroups" : "syncs";
}

/** A part of a path of the API, whatever somebody typed. */
export function part(text: string): string {
  return encodeURIComponent(text);
}
