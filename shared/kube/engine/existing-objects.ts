/** The state of a cluster that an apply begins with: the metadata of objects, and the generations of definitions. */

import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { generationOf, type KubeObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { type GroupKind, isBuiltinGroup, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

/** From this many objects of one kind in one namespace on, one LIST is cheaper than GETs. */
const listFrom = 6;

const readsAtOnce = 12;

/**
 * The metadata of the objects that exist, by `objectIdKey`. Many objects of one kind and namespace are read with one
 * metadata-only LIST, a few with one GET each.
 */
export async function readExisting(
  client: ClusterClient,
  desired: readonly { readonly id: ObjectId; readonly kind: KindInfo }[],
): Promise<ReadonlyMap<string, KubeObject>> {
  const groups = new Map<string, { readonly kind: KindInfo; readonly ids: ObjectId[] }>();
  for (const { id, kind } of desired) {
    const key = `${id.group}/${id.kind}/${id.namespace}`;
    const group = groups.get(key);
    if (group) group.ids.push(id);
    else groups.set(key, { kind, ids: [id] });
  }
  const existing = new Map<string, KubeObject>();
  const reads: (() => Promise<void>)[] = [];
  for (const { kind, ids } of groups.values()) {
    if (ids.length >= listFrom) reads.push(() => readByList(client, { kind, ids, existing }));
    else reads.push(...ids.map((id) => () => readByGet(client, { kind, id, existing })));
  }
  await runConcurrently(reads, readsAtOnce, (read) => read());
  return existing;
}

async function readByList(
  client: ClusterClient,
  group: { readonly kind: KindInfo; readonly ids: readonly ObjectId[]; readonly existing: Map<string, KubeObject> },
): Promise<void> {
  const { kind, ids, existing } = group;
  const desired = new Set(ids.map(objectIdKey));
  const namespace = ids[0]?.namespace ?? "";
  const keep = (item: KubeObject) => desired.has(objectIdKey(objectIdOf(item, kind)));
  const items = await client.list(kind, { metadataOnly: true, keep, ...(namespace === "" ? {} : { namespace }) });
  for (const item of items) existing.set(objectIdKey(objectIdOf(item, kind)), item);
}

async function readByGet(
  client: ClusterClient,
  one: { readonly kind: KindInfo; readonly id: ObjectId; readonly existing: Map<string, KubeObject> },
): Promise<void> {
  const item = await client.get(one.kind, one.id, { metadataOnly: true });
  if (item !== undefined) one.existing.set(objectIdKey(one.id), item);
}

const definitionsAtOnce = 8;

/**
 * The generation of the definition of each custom kind, by the definition's name. A changed definition can prune fields
 * of its objects without a new resourceVersion. Kinds of aggregated servers have no definition. Without permission to
 * read definitions, the result is empty.
 */
export async function definitionGenerations(
  client: ClusterClient,
  kinds: readonly GroupKind[],
): Promise<Readonly<Record<string, number>>> {
  const names = await definitionNames(client, kinds);
  if (names.size === 0) return {};
  const definitions = await client.lookup({ group: "apiextensions.k8s.io", kind: "CustomResourceDefinition" });
  if (definitions.outcome !== "found") return {};
  const generations = new Map<string, number>();
  await runConcurrently([...names], definitionsAtOnce, async (name) => {
    const definition = await getReadable(client, definitions.info, name);
    if (definition !== undefined) generations.set(name, generationOf(definition));
  });
  return Object.fromEntries([...generations].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The names of the definitions of those kinds that are served and can have one. */
export async function definitionNames(
  client: ClusterClient,
  kinds: readonly GroupKind[],
): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const { group, kind } of kinds) {
    if (isBuiltinGroup(group)) continue;
    const found = await client.lookup({ group, kind });
    if (found.outcome === "found") names.add(`${found.info.plural}.${group}`);
  }
  return names;
}

async function getReadable(client: ClusterClient, kind: Parameters<ClusterClient["get"]>[0], name: string) {
  try {
    return await client.get(kind, { namespace: "", name }, { metadataOnly: true });
  } catch (error) {
    if (error instanceof KubeError && error.class === "forbidden") return undefined;
    throw error;
  }
}
