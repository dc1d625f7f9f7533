import { collect, type ListPage, type PageRequest } from "#functions/api/page-request.ts";
import { type FleetMember, fleetMember, type UnreadableMember } from "#shared/fleet/api/fleet-member.ts";
import { clusterOf, keys, ranges, type Subject, syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, type NewerRow } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface FleetMembersFilter {
  readonly subject: Subject;
  /** Only this one. */
  readonly cluster?: string;
  readonly page: PageRequest;
}

/** Every registered cluster, selected or not, with what it has of the subject; of one that does not exist yet, nothing. */
export async function listFleetMembers(
  table: Table,
  { subject, cluster, page }: FleetMembersFilter,
): Promise<ListPage<FleetMember | UnreadableMember>> {
  const found = await collect<FleetRow | NewerRow, FleetRow | NewerRow>(page, {
    read: async (part) =>
      cluster === undefined
        ? table.query({ ...ranges.fleet, newer: "kept", ...part })
        : { items: await table.getMany([keys.fleet(cluster)], { newer: "kept" }) },
    keep: (row) => row,
  });
  const names = await syncNames(table, subject);
  const readable = found.items.filter((row) => !isNewer(row));
  const wanted = readable.flatMap(({ name }) => names.map((sync) => keys.sync(name, subject.namespace, sync)));
  const stored = await table.getMany(wanted, { newer: "kept" });
  const newer = new Set(stored.filter(isNewer).map((row) => keys.sync.read(row).cluster));
  const syncs = Map.groupBy(
    stored.filter((row) => !isNewer(row)),
    (row) => row.cluster,
  );
  const items = found.items.map((row) => {
    const name = clusterOf(row);
    if (isNewer(row) || newer.has(name)) return { cluster: name, unreadable: true } as const;
    const own = (syncs.get(name) ?? []).filter((sync) => sync.subject.kind === subject.kind);
    return fleetMember(row, own);
  });
  return { ...found, items };
}

/** Of all that may be on a cluster. */
async function syncNames(table: Table, subject: Subject): Promise<readonly string[]> {
  if (subject.kind === "Sync") return [subject.name];
  const unit = await table.get(keys.unit(subject));
  return (unit?.templates ?? []).map((template) => syncName(subject, template));
}
