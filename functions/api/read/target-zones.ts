import { defined } from "#shared/base/defined.ts";
import type { TargetItem, ZoneProblem } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import { because, type StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import type { ZoneRow } from "#shared/fleet/rows/zone-row.ts";
import type { Table } from "#shared/ports.ts";

const zoneDown = "ZoneDown" satisfies StatedReason;

export interface TargetZonesPorts {
  readonly table: Pick<Table, "getMany">;
  /** The zones besides `home`; absent where they are not known. */
  readonly zoneNetworks?: readonly ZoneObject[] | undefined;
}

/**
 * A target that is unreachable because its whole zone is down gets the zone, so that such targets have one cause. A zone that was removed
 * since then is not repaired any more.
 */
export async function withTargetZones(
  items: readonly TargetItem[],
  { table, zoneNetworks }: TargetZonesPorts,
): Promise<readonly TargetItem[]> {
  const isRemoved = (name: string) =>
    zoneNetworks !== undefined && name !== homeZone && zoneNetworks.every(({ metadata }) => metadata.name !== name);
  const away = items.filter(({ state }) => state === "Unreachable");
  const entries = await table.getMany(
    away.map(({ cluster }) => keys.fleet(cluster)),
    { newer: "kept" },
  );
  const zoneOf = new Map(
    entries.flatMap((row) => (row.type === "Fleet" ? [[row.name, zoneOfEntry(row)] as const] : [])),
  );
  const isAsked = (item: TargetItem) => (zoneOf.get(item.cluster) ?? homeZone) !== homeZone || isOfZone(item);
  const names = new Set(away.filter(isAsked).flatMap(({ cluster }) => zoneOf.get(cluster) ?? []));
  const rows = await table.getMany([...names].map(keys.zone), { newer: "kept" });
  const found = new Map(rows.flatMap((row) => (row.type === "Zone" ? [[keyText(row), row] as const] : [])));
  return items.map((item) => {
    const name = item.state === "Unreachable" ? zoneOf.get(item.cluster) : undefined;
    if (name !== undefined && isRemoved(name)) return isOf(name, item) ? { ...item, reason: removedText(name) } : item;
    const zone = name === undefined ? undefined : problemOf(item, name, found.get(keyText(keys.zone(name))));
    return zone === undefined ? item : { ...item, zone };
  });
}

function isOfZone({ reason }: TargetItem): boolean {
  return reason.startsWith(`${zoneDown}:`);
}

/** Whether the attempt ended because this zone was down. The cluster may have been in another one then. */
function isOf(zone: string, { reason }: TargetItem): boolean {
  return reason.startsWith(because(zoneDown, `zone ${zone}: `));
}

function removedText(zone: string): string {
  const remedy = "add it again and deploy, or give its clusters another zone";
  return because("ZoneNotFound", `zone ${zone} was removed from the setting zones; ${remedy}`);
}

function problemOf(item: TargetItem, name: string, row: ZoneRow | undefined): ZoneProblem | undefined {
  const { endedAt = "" } = item;
  const { workedAt, silentSince } = row ?? {};
  // A worker that has run since then asks the cluster soon.
  if (isOf(name, item) && (workedAt === undefined || workedAt <= endedAt))
    return { name, problem: "ZoneDown", ...defined({ since: workedAt }) };
  return silentSince === undefined ? undefined : { name, problem: "ZoneSilent", since: silentSince };
}
