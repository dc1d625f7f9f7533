import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { defined } from "#shared/base/defined.ts";
import { type ApiList, listOf } from "#shared/fleet/api/objects.ts";
import { everyZone, type ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { keys } from "#shared/fleet/rows/keys.ts";

/** All zones, `home` first, each with what its workers said last. Without other zones nobody asks them. */
export async function listZones({
  table,
  installation,
  zoneNetworks = [],
  resolveZone: reading,
}: Pick<ApiPorts, "table" | "installation" | "zoneNetworks" | "resolveZone">): Promise<ApiList<ZoneObject>> {
  const zones = everyZone(zoneNetworks, { installation, reading });
  if (zoneNetworks.length === 0) return listOf("Zone", zones, undefined);
  const rows = await table.getMany(
    zones.map(({ metadata }) => keys.zone(metadata.name)),
    { newer: "kept" },
  );
  const said = new Map(rows.flatMap((row) => (row.type === "Zone" ? [[row.pk, row]] : [])));
  const items = zones.map((zone) => {
    const row = said.get(keys.zone(zone.metadata.name).pk);
    if (row === undefined) return zone;
    const { workedAt: ranAt, release: version, silentSince } = row;
    return { ...zone, workers: { ranAt, ...defined({ version, silentSince }) } };
  });
  return listOf("Zone", items, undefined);
}
