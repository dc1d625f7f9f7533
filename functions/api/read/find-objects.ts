import { inventoryOf } from "#functions/api/read/list-sync-objects.ts";
import { asSeenLast } from "#functions/api/read/list-syncs.ts";
import type { ListPage, PageRequest } from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { heldObjects, type OwnedObject, type SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Reason } from "#shared/kube/reasons.ts";
import type { BlobStore, Table } from "#shared/ports.ts";

/** Inventories that one answer reads; each is one GET of S3. */
const syncsPerAnswer = 50;
const readAtOnce = 10;
const objectsPerSync = 20;

export interface ObjectQuery {
  readonly cluster: string;
  /** Part of the object's name as messages write it, `Deployment shop/web`, in any case. */
  readonly object: string;
  readonly page: PageRequest;
}

/**
 * Finds the Syncs that hold an object on a cluster, by the inventories that workers stored, Sync by Sync. So an answer
 * may be empty and not the last. A Sync whose inventory is lost may hold the object, and is listed without an object.
 * @throws StarlingError `NotFound` for a cluster that is not registered, `BadRequest` for fewer than two characters.
 */
export async function findObjects(
  { table, blobs }: { readonly table: Table; readonly blobs: Pick<BlobStore, "get"> },
  { cluster, object, page }: ObjectQuery,
): Promise<ListPage<OwnedObject>> {
  const desired = object.trim().toLowerCase();
  if (desired.length < 2) {
    throw refusal("BadRequest", `object is "${excerpt(object)}"; expected two letters of its name at least`);
  }
  if ((await readRow(table, keys.cluster(cluster))) === undefined) {
    throw refusal("NotFound", `Cluster ${cluster} does not exist`);
  }
  const range = { ...ranges.syncsOn(cluster), limit: Math.min(page.limit, syncsPerAnswer), newer: "kept" } as const;
  const { items: stored, next } = await table.query({ ...range, ...defined({ after: page.after }) });
  const rows = await asSeenLast(
    table,
    stored.filter((row) => !isNewer(row)).filter(({ desired }) => desired.action !== "orphan"),
  );
  const found: OwnedObject[] = [];
  await runConcurrently(rows, readAtOnce, async (row) => {
    const inventory = await unlessLost(inventoryOf(row, blobs), () => undefined);
    const held = inventory === undefined ? [] : heldObjects(row, inventory);
    const named = held.filter((item) => item.object.toLowerCase().includes(desired)).slice(0, objectsPerSync);
    const own = inventory === undefined ? [unseen(row)] : named;
    const { namespace, name, owner } = row;
    const sync = { namespace, name, ...(owner.kind === "SyncGroup" ? { group: owner.name } : {}) };
    found.push(...own.map((item) => ({ ...item, sync, revision: row.observed?.applied?.revision ?? "" })));
  });
  const items = found.sort((a, b) => (a.object < b.object ? -1 : a.object > b.object ? 1 : 0));
  return { items, ...defined({ next }) };
}

function unseen({ observed }: SyncRow): SyncObjectItem {
  const message = "its inventory is lost; until its worker has written it again, its objects are unknown";
  const reason = "InventoryLost" satisfies Reason;
  return { object: "?", kind: "?", health: "Unknown", reason, message, ...defined({ seenAt: observed?.at }) };
}
