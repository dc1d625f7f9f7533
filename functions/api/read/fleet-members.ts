import { collect, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { type FleetMember, fleetMember, type UnreadableMember } from "#shared/fleet/api/fleet-member.ts";
import { clusterOfKey, keys, type Owner, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type NewerRow } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface FleetMembersFilter {
  readonly owner: Owner;
  /** Only this cluster. */
  readonly cluster?: string;
  readonly page: PageRequest;
}

/** Every registered cluster, selected or not, with its Syncs of the owner; an owner that does not exist yet has none. */
export async function listFleetMembers(
  table: Table,
  { owner, cluster, page }: FleetMembersFilter,
): Promise<ListPage<FleetMember | UnreadableMember>> {
  const found = await collect<FleetRow | NewerRow, FleetRow | NewerRow>(page, {
    read: async (part) =>
      cluster === undefined
        ? table.query({ ...ranges.fleet, newer: "kept", ...part })
        : { items: await table.getMany([keys.fleet(cluster)], { newer: "kept" }) },
    keep: (row) => row,
  });
  const names = await syncNames(table, owner);
  const readable = found.items.filter((row) => !isNewer(row));
  const desired = readable.flatMap(({ name }) => names.map((sync) => keys.sync(name, owner.namespace, sync)));
  const stored = await table.getMany(desired, { newer: "kept" });
  const newer = new Set(stored.filter(isNewer).map((row) => keys.sync.read(row).cluster));
  const syncs = Map.groupBy(
    stored.filter((row) => !isNewer(row)),
    (row) => row.cluster,
  );
  const items = found.items.map((row) => {
    const name = clusterOfKey(row);
    if (isNewer(row) || newer.has(name)) return { cluster: name, unreadable: true } as const;
    const own = (syncs.get(name) ?? []).filter((sync) => sync.owner.kind === owner.kind);
    return fleetMember(row, own);
  });
  return { ...found, items };
}

/** Limit for all rows that a cluster may have. */
async function syncNames(table: Table, owner: Owner): Promise<readonly string[]> {
  if (owner.kind === "Sync") return [owner.name];
  const rolloutState = await table.get(keys.rolloutState(owner));
  return (rolloutState?.templates ?? []).map((template) => syncName(owner, template));
}
