import { lackingSyncs } from "#functions/api/read/lacking-syncs.ts";
import { assignedTo, type StoredSync, syncObjects } from "#functions/api/read/list-syncs.ts";
import { readSourcePins } from "#functions/api/read/read-source-pins.ts";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { collect, keepsLabels, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { type ObjectReference, objectKey, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { registered } from "#functions/api/request/registered.ts";
import { readClusterValues } from "#shared/adapters/read-cluster-values.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { receiverSources } from "#shared/adapters/receiver-sources.ts";
import { isNewerRow } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import {
  type ClusterObject,
  type ClusterValuesObject,
  clusterObject,
  clusterValuesObject,
  type DiscoveryObject,
  discoveryObject,
  type ReceiverObject,
  receiverObject,
  type SourceObject,
  type SyncGroupObject,
  sourceObject,
  syncGroupObject,
  type WindowObject,
  windowObject,
} from "#shared/fleet/api/objects.ts";
import { type UnreadableObject, unreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { WritableKind } from "#shared/fleet/kinds/document.ts";
import { receiverId } from "#shared/fleet/receiver-id.ts";
import { clusterLabels, fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import { freezeOver, freezeStateAmong } from "#shared/fleet/rows/freezes-row.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, ClusterValuesRow, ReceiverRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, keyText, type NewerRow, type RowKey, type RowKeyOf, type RowRange } from "#shared/fleet/rows/row.ts";
import type { RowRead } from "#shared/fleet/rows/stored-row.ts";
import type { Page, Table } from "#shared/ports.ts";

/** Clusters whose Syncs are read at once. */
const clustersAtOnce = 16;
/** Receivers whose Sources are read at once. */
const receiversAtOnce = 16;

/** The external ids of Clusters begin with the installation. */
type Ports = Pick<ApiPorts, "table" | "installation" | "clock">;

/** Sources of one namespace, or of all. */
export function listSources(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<SourceObject | UnreadableObject<"Source">>> {
  const read = readNamespaced(table, {
    kind: "Source",
    namespace,
    entries: ranges.sources,
    target(entry) {
      const source = keys.sourceEntry.parse(entry);
      return source && keys.object(source.namespace, "Source", source.name);
    },
  });
  return collect(page, {
    read,
    keep(row) {
      if (isNewer(row)) return unreadable(row, "Source");
      return keepsLabels(page, row) ? sourceObject(row) : undefined;
    },
  });
}

/** Receivers of one namespace, or of all, in the order of their URLs. */
export async function listReceivers(
  table: Table,
  { namespace, page, origin }: { namespace: string | undefined; page: PageRequest; origin: string | undefined },
): Promise<ListPage<ReceiverObject | UnreadableObject<"Receiver">>> {
  const read = readNamespaced(table, {
    kind: "Receiver",
    namespace,
    entries: ranges.receivers(),
    target(entry) {
      const receiver = keys.receiverEntry.parse(entry);
      return receiver && keys.object(receiver.namespace, "Receiver", receiver.name);
    },
  });
  const found = await collect(page, {
    read,
    keep: (row) => (isNewer(row) || keepsLabels(page, row) ? row : undefined),
  });
  const items: (ReceiverObject | UnreadableObject<"Receiver">)[] = [];
  for (const part of inParts(found.items, receiversAtOnce)) {
    const shown = part.map(async (row) =>
      isNewer(row) ? unreadable(row, "Receiver") : seenReceiver(row, { table, origin }),
    );
    items.push(...(await Promise.all(shown)));
  }
  return { ...found, items };
}

async function seenReceiver(
  row: ReceiverRow,
  { table, origin }: { readonly table: Table; readonly origin: string | undefined },
): Promise<ReceiverObject> {
  const [sources, [deliveries]] = await Promise.all([
    receiverSources(row, table),
    table.getMany([keys.deliveries(receiverId(row))], { newer: "kept" }),
  ]);
  const known = deliveries?.type === "Deliveries" ? deliveries : undefined;
  return receiverObject(row, { origin, sources, deliveries: known });
}

/** SyncGroups of one namespace, or of all. */
export function listSyncGroups(
  table: Table,
  { namespace, page }: { readonly namespace: string | undefined; readonly page: PageRequest },
): Promise<ListPage<SyncGroupObject | UnreadableObject<"SyncGroup">>> {
  const read = readNamespaced(table, {
    kind: "SyncGroup",
    namespace,
    entries: ranges.owners(),
    target(entry) {
      const owner = keys.owner.parse(entry);
      return owner?.kind === "SyncGroup" ? keys.object(owner.namespace, "SyncGroup", owner.name) : undefined;
    },
  });
  return collect(page, {
    read,
    keep(row) {
      if (isNewer(row)) return unreadable(row, "SyncGroup");
      return keepsLabels(page, row) ? syncGroupObject(row) : undefined;
    },
  });
}

export function listDiscoveries(
  { table, installation }: Ports,
  page: PageRequest,
): Promise<ListPage<DiscoveryObject | UnreadableObject<"ClusterDiscovery">>> {
  return collect(page, {
    read: (part) => table.query({ ...ranges.discoveries, newer: "kept", ...part }),
    keep(row) {
      if (isNewer(row)) return unreadable(row, "ClusterDiscovery");
      return keepsLabels(page, row) ? discoveryObject(row, installation) : undefined;
    },
  });
}

export async function listWindows(
  { table, clock }: Pick<Ports, "table" | "clock">,
  { page, count }: { readonly page: PageRequest; readonly count: "counted" | "uncounted" },
): Promise<ListPage<WindowObject | UnreadableObject<"Window">>> {
  const fleet = count === "counted" ? await registered(table) : undefined;
  return collect(page, {
    read: (part) => table.query({ ...ranges.windows, newer: "kept", ...part }),
    keep(row) {
      if (isNewer(row)) return unreadable(row, "Window");
      return keepsLabels(page, row) ? windowObject(row, fleet, clock.now()) : undefined;
    },
  });
}

export async function listClusterValues(
  table: Table,
  page: PageRequest,
): Promise<ListPage<ClusterValuesObject | UnreadableObject<"ClusterValues">>> {
  const fleet = await registered(table);
  return collect(page, {
    read: (part) => table.query({ ...ranges.clusterValues, newer: "kept", ...part }),
    keep(row) {
      if (isNewer(row)) return unreadable(row, "ClusterValues");
      return keepsLabels(page, row) ? clusterValuesObject(row, fleet) : undefined;
    },
  });
}

/** Clusters, each with the state of everything that it should have: a cluster that lacks something is not healthy. */
export async function listClusters(
  ports: Ports,
  page: PageRequest,
): Promise<ListPage<ClusterObject | UnreadableObject<"Cluster">>> {
  const { table } = ports;
  const found = await collect(page, {
    read: (part) =>
      readThroughDirectory(
        table,
        { entries: ranges.fleet, target: (entry) => keys.cluster(clusterOfKey(entry)) },
        part,
      ),
    keep: (row) => (isNewer(row) || keepsLabels(page, { labels: clusterLabels(row) }) ? row : undefined),
  });
  return { ...found, items: await withSyncs(ports, found.items) };
}

/**
 * The labels of an unreadable cluster are unknown: it is in every list, because a missing one would look as if its
 * labels did not match.
 */
function unreadable<Kind extends WritableKind>(row: NewerRow, kind: Kind): UnreadableObject<Kind> {
  if (kind === "Cluster") return unreadableObject(row, { kind, name: clusterOfKey(row) });
  if (kind === "ClusterDiscovery") return unreadableObject(row, { kind, name: keys.discovery.read(row).name });
  if (kind === "ClusterValues") return unreadableObject(row, { kind, name: keys.clusterValues.read(row).name });
  if (kind === "Window") return unreadableObject(row, { kind, name: keys.window.read(row).name });
  const { namespace, name } = keys.object.read(row);
  return unreadableObject(row, { kind, namespace, name });
}

async function withSyncs({ table, installation, clock }: Ports, found: readonly (ClusterRow | NewerRow)[]) {
  const clusters = found.filter((row) => !isNewer(row));
  const rows: StoredSync[] = [];
  for (const part of inParts(clusters, clustersAtOnce)) {
    rows.push(...(await Promise.all(part.map(({ name }) => assignedTo(table, name)))).flat());
  }
  const lacking = await lackingSyncs(table, { clusters: clusters.map(fleetRow), present: new Set(rows.map(keyText)) });
  const byCluster = Map.groupBy([...(await syncObjects(table, rows)), ...lacking], (sync) => sync.spec.cluster);
  // The list of freezes and every worker report unreadable freezes.
  const reading = freezeStateAmong(await table.getMany([keys.freezeState], { newer: "kept" }));
  const now = clock.now();
  const values = await knownValues(table);
  return found.map((row) => {
    if (isNewer(row)) return unreadable(row, "Cluster");
    const freeze = reading.ok ? freezeOver(reading.freezeState, clusterLabels(row), now) : undefined;
    return clusterObject(row, installation, { syncs: byCluster.get(row.name) ?? [], freeze, values, now });
  });
}

/** @returns undefined when only a newer version can read some of it: then the effective values are unknown. */
async function knownValues(table: Table): Promise<readonly ClusterValuesRow[] | undefined> {
  try {
    return await readClusterValues(table);
  } catch (error) {
    if (isNewerRow(error)) return undefined;
    throw error;
  }
}

/** @throws StarlingError `NotFound` */
export async function getObject(
  ports: Ports,
  reference: ObjectReference,
  origin?: string,
): Promise<
  | SourceObject
  | ReceiverObject
  | DiscoveryObject
  | ClusterObject
  | ClusterValuesObject
  | WindowObject
  | SyncGroupObject
  | UnreadableObject
> {
  const row = await readRow(ports.table, objectKey(reference));
  if (row === undefined || row.type === "Sync") throw refusal("NotFound", `${objectText(reference)} does not exist`);
  if (isNewer(row)) return unreadable(row, reference.kind);
  if (row.type === "Source") return sourceObject(row);
  if (row.type === "Receiver") return seenReceiver(row, { table: ports.table, origin });
  if (row.type === "SyncGroup") return syncGroupObject(row);
  if (row.type === "ClusterDiscovery") return discoveryObject(row, ports.installation);
  if (row.type === "ClusterValues") return clusterValuesObject(row, await registered(ports.table));
  if (row.type === "Window") return windowObject(row, await registered(ports.table), ports.clock.now());
  const [cluster] = await withSyncs(ports, [row]);
  return cluster ?? clusterObject(row, ports.installation);
}

/** @throws StarlingError `NotFound` */
export async function getSourceWithPins(
  ports: Ports,
  reference: ObjectReference,
): Promise<SourceObject | UnreadableObject> {
  const row = await readRow(ports.table, objectKey(reference));
  if (row === undefined) throw refusal("NotFound", `${objectText(reference)} does not exist`);
  if (isNewer(row)) return unreadable(row, "Source");
  if (row.type !== "Source") throw new Error("a Source's key has another row");
  const source = sourceObject(row);
  return { ...source, status: { ...source.status, pins: await readSourcePins(row, ports.table) } };
}

/** A part of a list, in the shape of a table. */
type Part = Pick<PageRequest, "limit" | "after">;

interface Directory<Kind extends WritableKind> {
  readonly entries: RowRange<"Directory" | "Fleet">;
  readonly target: (entry: RowKey) => RowKeyOf<Kind> | undefined;
}

/** Reads the rows of one namespace, or of all through their directory. */
function readNamespaced<Kind extends "Source" | "Receiver" | "SyncGroup">(
  table: Table,
  list: Directory<Kind> & { readonly kind: Kind; readonly namespace: string | undefined },
): (part: Part) => Promise<Page<RowRead<Kind, "kept">>> {
  const { kind, namespace } = list;
  if (namespace === undefined) return (part) => readThroughDirectory(table, list, part);
  return (part) => table.query({ ...ranges.objects(namespace, kind), newer: "kept", ...part });
}

/** The rows that a directory's entries stand for, in the directory's order. */
async function readThroughDirectory<Kind extends WritableKind>(
  table: Table,
  directory: Directory<Kind>,
  part: Part,
): Promise<Page<RowRead<Kind, "kept">>> {
  const page = await table.query({ ...directory.entries, newer: "kept", ...part });
  const targets = page.items.flatMap((entry) => directory.target(entry) ?? []);
  const rows = new Map((await table.getMany(targets, { newer: "kept" })).map((row) => [keyText(row), row]));
  const items = targets.flatMap((key) => rows.get(keyText(key)) ?? []);
  return page.next === undefined ? { items } : { items, next: page.next };
}
