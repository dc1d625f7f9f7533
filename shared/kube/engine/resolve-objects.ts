import { defined } from "#shared/base/defined.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { pathSegmentProblem } from "#shared/base/path-segment.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { definiteFailure, failureOf, type ObjectFailure } from "#shared/kube/engine/object-failure.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";
import { listAt, type ManifestObject, objectIdOf, stringAt, stringMapAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { describeObject, groupOf, type ObjectId, objectIdKey, versionOf } from "#shared/kube/object-id.ts";

/** An object of the rendering as it is sent: its scope is decided, and it has the set's label. */
export interface ResolvedObject {
  readonly id: ObjectId;
  readonly object: ManifestObject;
  /** Set when the object cannot be applied at all. Then nothing of the set is written. */
  readonly invalid?: ObjectFailure;
}

interface Scope {
  readonly namespaced: boolean;
}

export interface Membership {
  readonly setId: string;
  /** The namespace of namespaced objects that name none. */
  readonly defaultNamespace?: string | undefined;
}

/**
 * Decides what only the cluster knows: whether a kind is namespaced, from discovery and from the definitions in the
 * set. A namespaced object without a namespace gets the Sync's default namespace. Without a default it is invalid; it
 * never lands in `default`. The namespace of a cluster-scoped object is dropped, as the server does. Objects of unknown
 * kinds stay as they are, and fail alone in their turn. The ownership label is set last.
 */
export async function resolveObjects(
  client: ClusterClient,
  objects: readonly ManifestObject[],
  { setId, defaultNamespace }: Membership,
): Promise<readonly ResolvedObject[]> {
  const here = scopesDefinedIn(objects);
  const scopes = new Map<string, Scope | undefined>();
  const resolved: ResolvedObject[] = [];
  const places = new Set<string>();
  for (const object of objects) {
    const kind = { group: groupOf(object.apiVersion), kind: object.kind };
    const key = `${kind.group}/${kind.kind}`;
    if (!scopes.has(key)) scopes.set(key, here.get(key) ?? (await scopeInCluster(client, object)));
    const scope = scopes.get(key);
    const settled = scope === undefined ? object : withScope(object, scope, defaultNamespace);
    const id = objectIdOf(settled);
    const place = objectIdKey(id);
    const invalid = invalidity(id, scope, places.has(place));
    places.add(place);
    resolved.push({ id, object: withMembership(settled, setId), ...defined({ invalid }) });
  }
  return resolved;
}

function invalidity(id: ObjectId, scope: Scope | undefined, isTaken: boolean): ObjectFailure | undefined {
  const unfit = pathSegmentProblem(id.name) ?? pathSegmentProblem(id.namespace);
  if (unfit !== undefined) {
    const message = `the name or namespace of ${describeObject(id)} ${unfit}: it becomes a part of the object's address in the API; change it`;
    return definiteFailure({ class: "invalid", reason: "InvalidName", message });
  }
  if (scope?.namespaced && id.namespace === "") {
    const remedy = "set metadata.namespace, namespace in its kustomization, or apply.defaultNamespace of its template";
    return definiteFailure({
      class: "invalid",
      reason: "NoNamespace",
      message: `${describeObject(id)} has no namespace; ${remedy}`,
    });
  }
  if (!isTaken) return undefined;
  const message = `${describeObject(id)} appears twice in the set, because its kind ignores the namespace; remove one of them`;
  return definiteFailure({ class: "invalid", reason: "DuplicateObject", message });
}

async function scopeInCluster(client: ClusterClient, object: ManifestObject): Promise<Scope | undefined> {
  const found = await client.lookup({ group: groupOf(object.apiVersion), kind: object.kind });
  return found.outcome === "found" ? found.info : undefined;
}

function scopesDefinedIn(objects: readonly ManifestObject[]): ReadonlyMap<string, Scope> {
  const scopes = new Map<string, Scope>();
  for (const object of objects) {
    if (!isDefinition(object)) continue;
    const kind = `${stringAt(object, "spec", "group")}/${stringAt(object, "spec", "names", "kind")}`;
    scopes.set(kind, { namespaced: stringAt(object, "spec", "scope") === "Namespaced" });
  }
  return scopes;
}

export function isDefinition(object: ManifestObject): boolean {
  return object.kind === "CustomResourceDefinition" && groupOf(object.apiVersion) === "apiextensions.k8s.io";
}

/** The group, kind and served versions of a definition. */
export function kindsOfDefinition(
  definition: ManifestObject,
): readonly { group: string; kind: string; version: string }[] {
  const group = stringAt(definition, "spec", "group") ?? "";
  const kind = stringAt(definition, "spec", "names", "kind") ?? "";
  return listAt(definition, "spec", "versions")
    .filter((version) => isJsonObject(version) && version.served === true)
    .map((version) => ({ group, kind, version: stringAt(version, "name") ?? "" }));
}

function withScope(
  object: ManifestObject,
  { namespaced }: Scope,
  defaultNamespace: string | undefined,
): ManifestObject {
  if (namespaced && (object.metadata.namespace ?? "") === "" && defaultNamespace !== undefined) {
    return { ...object, metadata: { ...object.metadata, namespace: defaultNamespace } };
  }
  if (namespaced || object.metadata.namespace === undefined) return object;
  const { namespace: _dropped, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** The label is set last, so that nothing in a rendering can name another owner. */
function withMembership(object: ManifestObject, setId: string): ManifestObject {
  const labels = { ...stringMapAt(object, "metadata", "labels"), [partOfLabel]: setId };
  return { ...object, metadata: { ...object.metadata, labels } };
}

/** The kind of an object in its manifest's version, or why it is unknown. */
export async function resolveKind(client: ClusterClient, object: ManifestObject): Promise<KindInfo | ObjectFailure> {
  const query = { group: groupOf(object.apiVersion), kind: object.kind, version: versionOf(object.apiVersion) };
  try {
    const found = await client.lookup(query);
    if (found.outcome === "found") return found.info;
    if (found.outcome === "unavailable") {
      return definiteFailure({ class: "noMatch", reason: "KindUnavailable", message: found.message, retryable: true });
    }
    const message = `no matches for kind ${query.kind} in ${object.apiVersion}${remedyOf(object, found.served)}`;
    return definiteFailure({ class: "noMatch", reason: "NoMatch", message, retryable: true });
  } catch (error) {
    return failureOf(error);
  }
}

function remedyOf(object: ManifestObject, served: readonly string[]): string {
  if (served.length > 0) return `; the cluster serves it in ${served.join(", ")}: change apiVersion`;
  const foreign = foreignKindOf(object);
  if (foreign === undefined) return "; Starling tries again until the definition exists";
  const { tool, instead } = foreign;
  return `: the object is for ${tool}, which this cluster does not have; to let Starling do it, write ${instead} (\`starling validate -f FILE\` prints it), or install ${tool} there`;
}
