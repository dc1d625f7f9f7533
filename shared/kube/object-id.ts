/**
 * The identity of an object in a cluster: group, kind, namespace and name. The API version is not a part of it, so that
 * a change from `v1beta1` to `v1` is an update and not a deletion. The parts stay separate fields, because RBAC names
 * may contain `:`, and other names `_` (fluxcd/kustomize-controller#491).
 */
export interface ObjectId {
  /** Empty for the core group. */
  readonly group: string;
  readonly kind: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

/** A key for maps and sets. No Kubernetes group, kind, namespace or name can contain a slash. */
export function objectIdKey(id: ObjectId): string {
  return `${id.group}/${id.kind}/${id.namespace}/${id.name}`;
}

/** The same key for a kind; the version does not matter. */
export function kindKey({ group, kind }: GroupKind): string {
  return `${group}/${kind}`;
}

/**
 * The places where an object of a rendering can be once its scope is known. A cluster-scoped object loses its
 * namespace, and a namespaced object without one gets the default namespace, if there is one.
 */
export function placesOf(id: ObjectId, defaultNamespace: string | undefined): readonly ObjectId[] {
  if (id.namespace !== "") return [id, { ...id, namespace: "" }];
  return defaultNamespace === undefined ? [id] : [id, { ...id, namespace: defaultNamespace }];
}

/** The form for messages: `Deployment shop/web`, `ClusterRole reader`, `Widget.example.com shop/w`. */
export function describeObject(id: ObjectId): string {
  const kind = id.group === "" || wellKnownGroups.has(id.group) ? id.kind : `${id.kind}.${id.group}`;
  return id.namespace === "" ? `${kind} ${id.name}` : `${kind} ${id.namespace}/${id.name}`;
}

const wellKnownGroups = new Set(["apps", "batch", "rbac.authorization.k8s.io", "networking.k8s.io", "policy"]);

/** `Deployment.apps`, `ConfigMap`: the format of KEP-3659's contains-group-kinds. */
export function formatGroupKind({ group, kind }: GroupKind): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/** The inverse of `formatGroupKind`. No kind contains a dot. */
export function parseGroupKind(text: string): GroupKind {
  const [kind = "", ...group] = text.split(".");
  return { group: group.join("."), kind };
}

/** The group of an apiVersion: `apps` of `apps/v1`, empty for `v1`. */
export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash === -1 ? "" : apiVersion.slice(0, slash);
}

/** The version of an apiVersion: `v1` of `apps/v1` and of `v1`. */
export function versionOf(apiVersion: string): string {
  return apiVersion.slice(apiVersion.indexOf("/") + 1);
}

/** The inverse of `groupOf` and `versionOf`. */
export function apiVersionOf(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Groups that kube-apiserver itself serves. Kinds of all other groups come from definitions or aggregated servers. */
const builtinGroups = new Set([
  "",
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "apps",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "coordination.k8s.io",
  "discovery.k8s.io",
  "events.k8s.io",
  "extensions",
  "flowcontrol.apiserver.k8s.io",
  "internal.apiserver.k8s.io",
  "networking.k8s.io",
  "node.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "resource.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
  "storagemigration.k8s.io",
]);

export function isBuiltinGroup(group: string): boolean {
  return builtinGroups.has(group);
}
