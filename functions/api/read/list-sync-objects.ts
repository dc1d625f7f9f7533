import { asSeenLast } from "#functions/api/read/list-syncs.ts";
import { decodeCursor, encodeCursor, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { storedText } from "#shared/adapters/stored-text.ts";
import { heldObjects, objectPlace, type SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { emptyInventory, type Inventory, readInventory } from "#shared/kube/inventory.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import type { BlobStore, Table } from "#shared/ports.ts";

export interface ObjectsQuery {
  readonly namespace: string;
  readonly name: string;
  /** For a Sync that a user wrote, its own cluster by default. */
  readonly cluster?: string;
  readonly page: PageRequest;
}

/**
 * The objects that a Sync holds on its cluster, by the inventory that its worker stored last: no cluster is asked.
 * @throws StarlingError `NotFound`, `BadRequest` when a group's Sync is asked for without a cluster, and `BlobNotFound`
 *   or `BlobCorrupt` while the inventory is lost: an unreadable inventory never counts as empty.
 */
export async function listSyncObjects(
  { table, blobs }: { readonly table: Table; readonly blobs: Pick<BlobStore, "get"> },
  { page, ...about }: ObjectsQuery,
): Promise<ListPage<SyncObjectItem>> {
  const row = await syncOnCluster(table, about);
  if (row === undefined) return { items: [] };
  const objects = heldObjects(row, await inventoryOf(row, blobs));
  const after = page.after === undefined ? undefined : decodeCursor(page.after).after;
  const rest = after === undefined ? objects : objects.filter((object) => objectPlace(object) > after);
  const items = rest.slice(0, page.limit);
  const last = items.at(-1);
  return last === undefined || items.length === rest.length
    ? { items }
    : { items, next: encodeCursor({ after: objectPlace(last) }) };
}

/** @returns undefined while nothing was assigned. */
async function syncOnCluster(
  table: Table,
  { namespace, name, cluster }: Omit<ObjectsQuery, "page">,
): Promise<SyncRow | undefined> {
  const where = cluster ?? (await ownCluster(table, namespace, name));
  const found = await table.get(keys.sync(where, namespace, name));
  const row = found?.desired.action === "orphan" ? undefined : found;
  if (row !== undefined) return (await asSeenLast(table, [row]))[0];
  if (!name.includes(".") && cluster === undefined) return undefined;
  throw refusal("NotFound", `Sync ${namespace}/${name} is not on cluster ${where}`);
}

async function ownCluster(table: Table, namespace: string, name: string): Promise<string> {
  if (name.includes(".")) {
    throw refusal("BadRequest", `Sync ${namespace}/${name} belongs to a group and is on many clusters; say which one`);
  }
  const written = await table.get(keys.object(namespace, "Sync", name));
  if (written === undefined) throw refusal("NotFound", `Sync ${namespace}/${name} does not exist`);
  return written.spec.cluster;
}

/** @throws StarlingError `BlobNotFound` or `BlobCorrupt` while the inventory is lost. */
export async function inventoryOf(
  { cluster, namespace, name, observed }: SyncRow,
  blobs: Pick<BlobStore, "get">,
): Promise<Inventory> {
  const setId = setIdOf({ syncNamespace: namespace, syncName: name });
  if (observed?.inventory === undefined) return emptyInventory(setId);
  const keyOf = (digest: string) => blobKeys.inventory(cluster, digest);
  return readInventory(await storedText(blobs, keyOf(observed.inventory), keyOf), setId);
}
