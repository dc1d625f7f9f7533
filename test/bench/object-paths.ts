import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { groupOf } from "#shared/kube/object-id.ts";

/** The path of an object of a benchmark. The plurals of its kinds are regular English plurals. */
export function pathOfObject({ apiVersion, kind, metadata }: ManifestObject): string {
  const base = groupOf(apiVersion) === "" ? `/api/${apiVersion}` : `/apis/${apiVersion}`;
  const namespace = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  return `${base}${namespace}/${pluralOf(kind)}/${metadata.name}`;
}

function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  return word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`;
}
