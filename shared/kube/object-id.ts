/**
 * What identifies an object in a cluster: group, kind, namespace, name. The API version is not part of it, so
 * `v1beta1` becoming `v1` is an update and no deletion. Fields, never a joined string: RBAC names may hold `:` and
 * others `_` (fluxcd/kustomize-controller#491).
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

/** A key for maps and sets; no Kubernetes group, kind, namespace or name may contain a slash. */
export function objectIdKey(id: ObjectId): string {
  return `${id.group}/${id.kind}/${id.namespace}/${id.name}`;
}

/** The same of a kind, whatever its version. */
export function kindKey({ group, kind }: GroupKind): string {
  return `${group}/${kind}`;
}

/**
 * Where an object of a rendering may be once its scope is known: a namespace on a cluster-scoped object is dropped, and
 * a namespaced object without one gets the default, when there is one.
 */
export function placesOf(id: ObjectId, defaultNamespace: string | undefined): readonly ObjectId[] {
  if (id.namespace !== "") return [id, { ...id, namespace: "" }];
  return defaultNamespace === undefined ? [id] : [id, { ...id, namespace: defaultNamespace }];
}

/** `Deployment shop/web`, `ClusterRole reader`, `Widget.example.com shop/w`: as people read it in messages. */
export function describeObject(id: ObjectId): string {
  const kind = id.group === "" || wellKnownGroups.has(id.group) ? id.kind : `${id.kind}.${id.group}`;
  return id.namespace === "" ? `${kind} ${id.name}` : `${kind} ${id.namespace}/${id.name}`;
}

const wellKnownGroups = new Set(["apps", "batch", "rbac.authorization.k8s.io", "networking.k8s.io", "policy"]);

/** `Deployment.apps`, `ConfigMap`: the form of KEP-3659's contains-group-kinds. */
export function formatGroupKind({ group, kind }: GroupKind): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/** The inverse of `formatGroupKind`: no kind has a dot in it. */
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
