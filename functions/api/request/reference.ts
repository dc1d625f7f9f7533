import { excerpt } from "#shared/base/excerpt.ts";
import { isJsonObject } from "#shared/base/json.ts";
import type { Document, WritableKind } from "#shared/fleet/kinds/document.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RowKeyOf } from "#shared/fleet/rows/row.ts";

/** Names an object; `namespace` is absent for objects of the installation. */
export interface ObjectReference {
  readonly kind: WritableKind;
  readonly namespace?: string;
  readonly name: string;
}

export function documentReference(document: Document): ObjectReference {
  const { kind, metadata } = document;
  return { kind, ...("namespace" in metadata ? { namespace: metadata.namespace } : {}), name: metadata.name };
}

export function objectKey(reference: ObjectReference): RowKeyOf<WritableKind> {
  if (reference.kind === "Cluster") return keys.cluster(reference.name);
  if (reference.kind === "ClusterDiscovery") return keys.discovery(reference.name);
  if (reference.kind === "ClusterValues") return keys.clusterValues(reference.name);
  if (reference.kind === "Window") return keys.window(reference.name);
  return keys.object(reference.namespace ?? "", reference.kind, reference.name);
}

export function objectText(reference: {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}): string {
  return `${reference.kind} ${reference.namespace === undefined ? "" : `${reference.namespace}/`}${reference.name}`;
}

/** `Source payments/app`, as far as a possibly wrong document names it. */
export function referenceText(value: unknown): string | undefined {
  if (!isJsonObject(value) || typeof value.kind !== "string" || !isJsonObject(value.metadata)) return undefined;
  const { name, namespace } = value.metadata;
  const kind = excerpt(value.kind);
  if (typeof name !== "string") return kind;
  const where = typeof namespace === "string" ? { namespace: excerpt(namespace) } : {};
  return objectText({ kind, name: excerpt(name), ...where });
}
