import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { groupOf, isBuiltinGroup } from "#shared/kube/object-id.ts";

/**
 * Metadata that only a server may write. A stale resourceVersion or a foreign uid would make the apply fail with 409.
 */
const serverMetadata = new Set([
  "creationTimestamp",
  "deletionGracePeriodSeconds",
  "deletionTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "uid",
]);

/**
 * The object without the fields that a server writes, and with the fields that server-side apply needs:
 * - It has no `status`, no server-written metadata, and no empty namespace.
 * - A Secret's `stringData` is merged into `data` and takes precedence. An apply never removes a key that was set
 *   through stringData (kubernetes#108008).
 * - Ports of containers and Services have a protocol. The protocol is part of the list's key, and without it
 *   server-side apply merges wrongly (structured-merge-diff#130, kubernetes#98576).
 * - Empty labels, annotations and data are removed, and empty lists of a ServiceAccount's Secrets. They have no
 *   meaning. An apply that owns such a map loses it to the first controller that writes into it, and that looks like
 *   drift.
 * - A ClusterRole with an `aggregationRule` has no `rules`, because a controller of Kubernetes overwrites them.
 * - The conversion webhook of a CRD has no caBundle that is not a certificate. This is a placeholder for cert-manager's
 *   injector, which newer servers reject.
 */
export function normaliseManifest(manifest: ManifestObject): ManifestObject {
  const { status: _status, metadata, ...rest } = manifest;
  const kept = Object.entries(metadata).filter(
    ([key, value]) => !serverMetadata.has(key) && !(key === "namespace" && (value === "" || value === null)),
  );
  const object = { ...rest, metadata: Object.fromEntries(kept) } as ManifestObject;
  return withoutEmptyParts(withoutCaPlaceholder(withProtocols(withSecretData(withoutAggregated(object)))));
}

/** By group and kind, the maps and lists that controllers fill. An empty one means the same as a missing one. */
const fillable: Readonly<Record<string, readonly string[]>> = {
  "/ConfigMap": ["data", "binaryData"],
  "/Secret": ["data"],
  "/ServiceAccount": ["secrets", "imagePullSecrets"],
};

function withoutEmptyParts(object: ManifestObject): ManifestObject {
  const group = groupOf(object.apiVersion);
  // In a custom resource, only its own metadata is known to be metadata.
  const depth = isBuiltinGroup(group) ? "everywhere" : "own";
  const names = fillable[`${group}/${object.kind}`] ?? [];
  return withoutEmpty(withBareMetadata(object, depth), names) as ManifestObject;
}

function withBareMetadata(object: JsonObject, depth: "everywhere" | "own"): JsonObject {
  const members = Object.entries(object).map(([name, value]): [string, Json | undefined] => {
    if (name === "metadata" && isJsonObject(value)) return [name, withoutEmpty(value, ["labels", "annotations"])];
    const mayHold = depth === "everywhere" && (name === "spec" || name.toLowerCase().endsWith("template"));
    return [name, mayHold && isJsonObject(value) ? withBareMetadata(value, depth) : value];
  });
  return Object.fromEntries(members);
}

function withoutEmpty(object: JsonObject, names: readonly string[]): JsonObject {
  const isEmpty = (value: Json | undefined) =>
    Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(object).filter(([name, value]) => !names.includes(name) || !isEmpty(value)));
}

function withoutAggregated(object: ManifestObject): ManifestObject {
  const isRole = object.kind === "ClusterRole" && groupOf(object.apiVersion) === "rbac.authorization.k8s.io";
  if (!isRole || !isJsonObject(object.aggregationRule)) return object;
  const { rules: _rules, ...rest } = object;
  return rest as ManifestObject;
}

function withSecretData(object: ManifestObject): ManifestObject {
  if (object.kind !== "Secret" || object.apiVersion !== "v1" || object.stringData === undefined) return object;
  const { stringData, ...rest } = object;
  if (!isJsonObject(stringData)) return rest as ManifestObject;
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(String(value)).toString("base64"),
  ]);
  const data = { ...(isJsonObject(object.data) ? object.data : {}), ...Object.fromEntries(encoded) };
  return { ...rest, data } as ManifestObject;
}

/** The paths of the Pod specs in the built-in kinds. */
const podSpecPaths: Readonly<Record<string, readonly string[]>> = {
  "/Pod": ["spec"],
  "/PodTemplate": ["template", "spec"],
  "/ReplicationController": ["spec", "template", "spec"],
  "apps/DaemonSet": ["spec", "template", "spec"],
  "apps/Deployment": ["spec", "template", "spec"],
  "apps/ReplicaSet": ["spec", "template", "spec"],
  "apps/StatefulSet": ["spec", "template", "spec"],
  "batch/CronJob": ["spec", "jobTemplate", "spec", "template", "spec"],
  "batch/Job": ["spec", "template", "spec"],
};

function withProtocols(object: ManifestObject): ManifestObject {
  const kind = `${groupOf(object.apiVersion)}/${object.kind}`;
  if (kind === "/Service") return changeAt(object, ["spec", "ports"], changeItems(withProtocol)) as ManifestObject;
  const podSpec = podSpecPaths[kind];
  if (podSpec === undefined) return object;
  const changePorts = changeItems((container) => changeAt(container, ["ports"], changeItems(withProtocol)));
  let result: Json = object;
  for (const list of ["containers", "initContainers", "ephemeralContainers"]) {
    result = changeAt(result, [...podSpec, list], changePorts);
  }
  return result as ManifestObject;
}

function withProtocol(port: Json): Json {
  if (!isJsonObject(port) || (port.protocol !== undefined && port.protocol !== null)) return port;
  return { ...port, protocol: "TCP" };
}

const clientConfig = ["spec", "conversion", "webhook", "clientConfig"];

function withoutCaPlaceholder(object: ManifestObject): ManifestObject {
  if (object.kind !== "CustomResourceDefinition" || groupOf(object.apiVersion) !== "apiextensions.k8s.io")
    return object;
  return changeAt(object, clientConfig, (config) => {
    if (!isJsonObject(config) || typeof config.caBundle !== "string") return config;
    const pem = Buffer.from(config.caBundle, "base64").toString();
    if (pem.includes("-----BEGIN CERTIFICATE-----")) return config;
    const { caBundle: _placeholder, ...rest } = config;
    return rest;
  }) as ManifestObject;
}

/** A copy of `value` with the member at `path` changed, or the same value when the path does not exist. */
function changeAt(value: Json, path: readonly string[], change: (member: Json) => Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return change(value);
  if (!isJsonObject(value)) return value;
  const member = value[key];
  return member === undefined ? value : ({ ...value, [key]: changeAt(member, rest, change) } satisfies JsonObject);
}

function changeItems(change: (item: Json) => Json): (list: Json) => Json {
  return (list) => (Array.isArray(list) ? list.map(change) : list);
}
