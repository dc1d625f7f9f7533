import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient, KindInfo, KindLookup } from "#shared/kube/cluster-client.ts";
import { copiedEverywhere, defaultObjectsOf, isFleeting } from "#shared/kube/engine/default-objects.ts";
import { type KubeObject, listAt, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { keepMark } from "#shared/kube/membership.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";
import { parentNamespace } from "#shared/kube/parent-object.ts";
import type { Reason } from "#shared/kube/reasons.ts";

const protectedNamespaces = new Set(["default", "kube-system", "kube-public", "kube-node-lease", parentNamespace]);
const concurrency = 12;
const maxNamed = 3;

export interface GuardRefusal {
  /** `keep`: the object is settled and stays. `wait`: it is deleted when the named objects are gone. */
  readonly kind: "keep" | "wait";
  readonly reason: Reason;
  readonly message: string;
}

/** Why Starling never deletes an object: it is one of the cluster's own, or it is marked. */
export function reasonToKeep(id: ObjectId, live: KubeObject): string | undefined {
  if (isProtected(id)) return `Starling never deletes ${describeObject(id)}`;
  const mark = keepMark(live);
  return mark === undefined ? undefined : `it is marked ${mark}`;
}

function isProtected({ group, kind, name }: ObjectId): boolean {
  return group === "" && kind === "Namespace" && protectedNamespaces.has(name);
}

/**
 * Whether a Namespace may be deleted. Namespaces of the cluster and of Starling never are. Others are deleted only when
 * they contain nothing but default objects and copies of controllers, because the deletion removes everything in them,
 * whoever owns it.
 */
export async function guardNamespace(client: ClusterClient, id: ObjectId): Promise<GuardRefusal | undefined> {
  if (isProtected(id)) {
    const message = `Starling never deletes Namespace ${id.name}; it stays as it is`;
    return { kind: "keep", reason: "Protected", message };
  }
  const left = await objectsIn(client, id.name);
  if (left.length === 0) return undefined;
  const remedy = `delete them, or the Namespace by hand with kubectl delete namespace ${id.name}`;
  const message = `Namespace ${id.name} still contains ${named(left)}; Starling deletes it when they are gone: ${remedy}`;
  return { kind: "wait", reason: "NamespaceNotEmpty", message };
}

/**
 * Whether a definition may be deleted: only when none of its objects exists, because the deletion removes them all, in
 * every namespace.
 */
export async function guardDefinition(client: ClusterClient, id: ObjectId): Promise<GuardRefusal | undefined> {
  const definitions = await client.lookup({ group: id.group, kind: id.kind });
  if (definitions.outcome !== "found") return undefined;
  const definition = await client.get(definitions.info, id);
  if (definition === undefined) return undefined;
  const found = await lookupDefined(client, definition);
  if (found.outcome === "absent") return isStored(definition) ? notServed(id) : undefined;
  if (found.outcome === "unavailable") return { kind: "wait", reason: "KindUnavailable", message: found.message };
  const items = await client.list(found.info, { metadataOnly: true, maxItems: maxNamed + 1 });
  if (items.length === 0) return undefined;
  const message = `CustomResourceDefinition ${id.name} still has the objects ${named(idsOf(items, found.info))}; Starling deletes it when they are gone`;
  return { kind: "wait", reason: "DefinitionInUse", message };
}

async function lookupDefined(client: ClusterClient, definition: KubeObject): Promise<KindLookup> {
  const group = stringAt(definition, "spec", "group") ?? "";
  const kind = stringAt(definition, "spec", "names", "kind") ?? "";
  const found = await client.lookup({ group, kind });
  if (found.outcome !== "absent") return found;
  // The catalog of kinds may be older than the definition.
  client.forgetKinds();
  return client.lookup({ group, kind });
}

/**
 * Whether objects of the definition can be stored. They can since the definition was established, even if no version is
 * served.
 */
function isStored(definition: KubeObject): boolean {
  const established = listAt(definition, "status", "conditions").some(
    (condition) => stringAt(condition, "type") === "Established" && stringAt(condition, "status") === "True",
  );
  return established && listAt(definition, "status", "storedVersions").length > 0;
}

function notServed({ name }: ObjectId): GuardRefusal {
  const remedy = `serve one of its versions again, or delete it by hand with kubectl delete customresourcedefinition ${name}`;
  const message = `CustomResourceDefinition ${name} is not served, so that Starling cannot see whether it still has objects, which the deletion would remove: ${remedy}`;
  return { kind: "wait", reason: "DefinitionNotServed", message };
}

async function objectsIn(client: ClusterClient, namespace: string): Promise<readonly ObjectId[]> {
  // A kind of another owner can be newer than the catalog of kinds, and a server that was down can be up again.
  client.forgetKinds();
  const served = await client.listableKinds();
  const isDefaultObject = defaultObjectsOf(served);
  const kinds = served.filter((kind) => kind.namespaced && !isFleeting(kind));
  const left: ObjectId[] = [];
  await runConcurrently(kinds, concurrency, async (kind) => {
    if (left.length > maxNamed) return;
    const query = { namespace, maxItems: maxNamed + 1 } as const;
    const isOwn = (object: KubeObject) => !isDefaultObject(kind, object);
    const found = await client.list(kind, { ...query, metadataOnly: true, keep: isOwn });
    if (found.length === 0) return;
    const { isName, isCopy, extent } = await copiedEverywhere(client, kind);
    const keep = (object: KubeObject) => isOwn(object) && !isCopy(object);
    const mayBeCopied = found.some((object) => isName(stringAt(object, "metadata", "name") ?? ""));
    left.push(...idsOf(mayBeCopied ? await client.list(kind, { ...query, ...extent, keep }) : found, kind));
  });
  return left;
}

function idsOf(items: readonly KubeObject[], kind: KindInfo): readonly ObjectId[] {
  return items.map((item) => objectIdOf(item, kind));
}

function named(ids: readonly ObjectId[]): string {
  const names = ids.slice(0, maxNamed).map(describeObject).join(", ");
  return ids.length > maxNamed ? `${names} and others` : names;
}
