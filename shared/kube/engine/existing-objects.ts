import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { type KubeObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";

/** From this many objects of one kind in one namespace on, one LIST is cheaper than GETs. */
const listFrom = 6;
const concurrency = 12;

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
  await runConcurrently(reads, concurrency, (read) => read());
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
