import { findOutOfSync, ownerRowKey } from "#functions/api/read/desired-renderings.ts";
import { lackingSyncs } from "#functions/api/read/lacking-syncs.ts";
import {
  decodeCursor,
  encodeCursor,
  firstRows,
  type ListPage,
  type PageRequest,
} from "#functions/api/request/page-request.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { groupSyncObject, type SyncObject, userSyncObject } from "#shared/fleet/api/objects.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import { keys, type Owner, ranges, stateIndex } from "#shared/fleet/rows/keys.ts";
import { lastCheck } from "#shared/fleet/rows/routine.ts";
import { isNewer, keyText, type NewerRow, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";

/** States that the index does not have, by the state that it has instead; undefined when any is possible. */
const indexedWords: ReadonlyMap<string | undefined, string | undefined> = new Map([
  // A Sync that is behind is ready, and may have drift.
  ["OutOfSync", undefined],
  ["Frozen", undefined],
  ["Unreadable", undefined],
]);

export type StoredSync = SyncRow | NewerRow;

/** Owners that one answer reads; the next page continues. */
const ownersPerAnswer = 50;

export type ListedSync = SyncObject | UnreadableObject<"Sync">;

export interface SyncFilter {
  /** When absent, all namespaces. */
  readonly namespace?: string;
  /** Only Syncs of this owner. */
  readonly owner?: Owner;
  /** One state, as in `status.state`. */
  readonly state?: string;
  readonly page: PageRequest;
}

/** Syncs on clusters, owner by owner, and by state within an owner. The state index may lag a moment behind. */
export async function listSyncs(table: Table, filter: SyncFilter): Promise<ListPage<ListedSync>> {
  const items: ListedSync[] = [];
  let cursor = filter.page.after === undefined ? undefined : decodeCursor(filter.page.after);
  for (let read = 0; read < ownersPerAnswer; read++) {
    const owner = await ownerFrom(table, { filter, from: cursor?.owner });
    if (owner === undefined) return { items };
    const limit = filter.page.limit - items.length;
    const after = cursor?.after;
    const part = await syncsOf(table, {
      owner,
      limit,
      ...defined({ after }),
      ...stateOf(filter),
    });
    items.push(...part.items);
    if (part.next !== undefined) {
      cursor = { owner: keys.owner(owner).sk, after: part.next };
    } else {
      if (filter.owner !== undefined) return { items };
      cursor = { owner: `${keys.owner(owner).sk}\u0000` };
    }
    if (items.length >= filter.page.limit) break;
  }
  return cursor === undefined ? { items } : { items, next: encodeCursor(cursor) };
}

/**
 * Everything that is assigned to one cluster, read consistently, followed by what it should have and was never
 * assigned; only of one namespace, when given.
 * @throws StarlingError `NotFound` when the cluster is not registered: rows that remember it are no list of Syncs.
 */
export async function listSyncsOnCluster(
  table: Table,
  filter: Omit<SyncFilter, "owner"> & { readonly cluster: string },
): Promise<ListPage<ListedSync>> {
  const key = keys.cluster(filter.cluster);
  const { limit, after } = filter.page;
  const cluster = await readRow(table, key);
  if (cluster === undefined) throw refusal("NotFound", `Cluster ${filter.cluster} does not exist`);
  const page = await table.query({
    ...ranges.syncsOn(filter.cluster, filter.namespace),
    limit,
    newer: "kept",
    ...defined({ after }),
  });
  const rows = page.items.filter((row) => isPresent(row) || filter.state === "Orphaned");
  const items = (await syncObjects(table, rows)).filter((object) => isListed(object, filter.state));
  if (page.next !== undefined) return { items, next: page.next };
  if (isNewer(cluster)) return { items };
  const { namespace } = filter;
  // Rows of earlier pages count as well: their Syncs are not missing.
  const assigned = after === undefined ? page.items : await assignedTo(table, filter.cluster, namespace);
  const present = new Set(assigned.filter(isPresent).map(keyText));
  const lacking = await lackingSyncs(table, { clusters: [fleetRow(cluster)], present, namespace });
  return { items: [...items, ...lacking.filter((object) => isListed(object, filter.state))] };
}

/**
 * One Sync: a user's by its name, a group's (`group.template`) by its name and cluster.
 * @throws StarlingError `NotFound`, or `BadRequest` when a group's Sync is asked for without a cluster.
 */
export async function getSync(
  table: Table,
  reference: { readonly namespace: string; readonly name: string; readonly cluster?: string },
): Promise<ListedSync> {
  const { namespace, name, cluster } = reference;
  if (!name.includes(".")) {
    const sync = await userSync(table, { namespace, name });
    if (sync === undefined) throw refusal("NotFound", `Sync ${namespace}/${name} does not exist`);
    return sync;
  }
  if (cluster === undefined) {
    throw refusal("BadRequest", `Sync ${namespace}/${name} belongs to a group and is on many clusters; say which one`);
  }
  const row = await readRow(table, keys.sync(cluster, namespace, name));
  const [object] = await syncObjects(table, row === undefined ? [] : [row]);
  if (object === undefined) throw refusal("NotFound", `Sync ${namespace}/${name} is not on cluster ${cluster}`);
  return object;
}

async function userSync(
  table: Table,
  { namespace, name }: Pick<Owner, "namespace" | "name">,
): Promise<ListedSync | undefined> {
  const row = await readRow(table, keys.object(namespace, "Sync", name));
  if (row === undefined) return undefined;
  if (isNewer(row)) return unreadableObject(row, { kind: "Sync", namespace, name });
  const stored = await readRow(table, keys.sync(row.spec.cluster, namespace, name));
  if (stored === undefined) return userSyncObject(row, undefined);
  if (isNewer(stored)) return unreadableSync(stored);
  const [onCluster = stored] = await asSeenLast(table, [stored]);
  const behind = await findOutOfSync(table, [onCluster], new Map([[keyText(row), row]]));
  return userSyncObject(row, onCluster, behind.get(keyText(onCluster)));
}

/** A forgotten Sync is kept for its numbers, and listed only when its state is asked for. */
function isListed({ status }: ListedSync, state: string | undefined): boolean {
  return state === undefined ? status.state !== "Orphaned" : status.state === state;
}

/** The first owner at or after `from`, in the directory's order. */
async function ownerFrom(
  table: Table,
  { filter, from }: { readonly filter: SyncFilter; readonly from: string | undefined },
): Promise<Owner | undefined> {
  if (filter.owner !== undefined) return filter.owner;
  const { pk, prefix = "" } = ranges.owners(filter.namespace);
  const between = [from ?? (prefix === "" ? " " : prefix), `${prefix}\uffff`] as const;
  const [entry] = await firstRows(table, { pk, between, limit: 1, newer: "kept" });
  return entry && keys.owner.read(entry);
}

async function syncsOf(
  table: Table,
  query: { readonly owner: Owner; readonly limit: number; readonly after?: string; readonly state?: string },
): Promise<ListPage<ListedSync>> {
  const { owner, state } = query;
  if (owner.kind === "Sync") {
    const object = await userSync(table, owner);
    return { items: object === undefined || !isListed(object, state) ? [] : [object] };
  }
  const indexed = indexedWords.has(state) ? indexedWords.get(state) : state;
  const page = await table.queryIndex({
    ...stateIndex.range(owner, indexed),
    limit: query.limit,
    ...defined({ after: query.after }),
  });
  const rows = await rowsInOrder(
    table,
    page.items.map((entry) => entry.key),
  );
  const items = (await syncObjects(table, rows)).filter((object) => isListed(object, state));
  return page.next === undefined ? { items } : { items, next: page.next };
}

/** The rows of everything that is assigned to a cluster. */
export async function assignedTo(table: Table, cluster: string, namespace?: string): Promise<readonly StoredSync[]> {
  const range = ranges.syncsOn(cluster, namespace);
  const rows: StoredSync[] = [];
  for await (const row of allItems((start) => table.query({ ...range, newer: "kept", ...start }))) {
    if (isPresent(row)) rows.push(row);
  }
  return rows;
}

/** A forgotten Sync is on no cluster any more. */
function isPresent(row: StoredSync): boolean {
  return isNewer(row) || row.desired.action !== "orphan";
}

/** Rows as people see them, each with its owner's status. */
export async function syncObjects(table: Table, stored: readonly StoredSync[]): Promise<readonly ListedSync[]> {
  const rows = await asSeenLast(
    table,
    stored.filter((row) => !isNewer(row)),
  );
  const seen = new Map(rows.map((row) => [keyText(row), row]));
  const desired = new Map(rows.map((row) => [keyText(ownerRowKey(row.owner)), ownerRowKey(row.owner)]));
  const found = await table.getMany([...desired.values()], { newer: "kept" });
  const unread = new Map(found.filter(isNewer).map((row) => [keyText(row), row]));
  const read = found.filter((row) => !isNewer(row));
  const owners = new Map(read.map((row) => [keyText(row), row]));
  const behind = await findOutOfSync(table, rows, owners);
  return stored.map((found) => {
    if (isNewer(found)) return unreadableSync(found);
    const row = seen.get(keyText(found)) ?? found;
    const newer = unread.get(keyText(ownerRowKey(row.owner)));
    // A group's Sync is shown without its group; a user's needs the document that the user wrote.
    if (newer !== undefined && row.owner.kind === "Sync") return unreadableObject(newer, { ...row, kind: "Sync" });
    const owner = owners.get(keyText(ownerRowKey(row.owner)));
    const late = behind.get(keyText(row));
    return owner?.type === "Sync" ? userSyncObject(owner, row, late) : groupSyncObject(row, owner, late);
  });
}

/** Adds the time of the last check when that check found nothing new: the lease of the cluster has it. */
export async function asSeenLast(table: Table, rows: readonly SyncRow[]): Promise<readonly SyncRow[]> {
  const leases = await table.getMany(
    rows.map(({ cluster }) => keys.lease(cluster)),
    { newer: "kept" },
  );
  const routines = new Map(
    leases.flatMap((row) => (isNewer(row) ? [] : [[keys.lease.read(row).cluster, row.routine]])),
  );
  return rows.map((row) => {
    const at = lastCheck(row, routines.get(row.cluster));
    return row.observed === undefined || at === undefined ? row : { ...row, observed: { ...row.observed, at } };
  });
}

function unreadableSync(row: NewerRow): UnreadableObject<"Sync"> {
  return unreadableObject(row, { kind: "Sync", ...keys.sync.read(row) });
}

async function rowsInOrder(
  table: Table,
  rowKeys: readonly RowKeyOf<"SyncOnCluster">[],
): Promise<readonly StoredSync[]> {
  const found = await table.getMany(rowKeys, { newer: "kept" });
  const rows = new Map(found.map((row) => [keyText(row), row]));
  return rowKeys.flatMap((key) => rows.get(keyText(key)) ?? []);
}

function stateOf(filter: SyncFilter): { state?: string } {
  return filter.state === undefined ? {} : { state: filter.state };
}
