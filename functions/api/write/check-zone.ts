import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { askOnce } from "#functions/api/write/ask-once.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import { parseEksArn } from "#shared/fleet/eks-arn.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import type { ZoneCheckRow } from "#shared/fleet/rows/check-row.ts";
import { zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { ZoneCheck, ZoneNeeds } from "#shared/fleet/zone-services.ts";
import type { Table } from "#shared/ports.ts";

export interface ZoneCheckAsked {
  /** Id that the answer will have. */
  readonly id: string;
  /** The number of clusters that the zone reaches. */
  readonly clusters: number;
  /** The first of them by name. */
  readonly cluster?: string;
}

/**
 * Asks a worker of the zone whether it reaches the services of AWS, because only that worker has its network and role.
 * @throws StarlingError `NotFound`
 */
export async function askZoneCheck(ports: ApiPorts, zone: string, caller: Caller): Promise<ZoneCheckAsked> {
  requireZone(ports, zone);
  const members = await membersOf(ports.table, zone);
  const id = await askOnce<ZoneCheckRow>(ports, {
    key: keys.zoneCheck(zone),
    type: "ZoneCheck",
    about: `zone ${zone}`,
    asked: { by: caller.principal, needs: needsOf(members) },
    message: { to: "apply", check: "zone", zone },
  });
  return { id, clusters: members.length, ...defined({ cluster: members[0]?.name }) };
}

export interface ZoneCheckAnswer {
  readonly asked?: ZoneCheckRow["asked"];
  readonly answer?: ZoneCheck;
  /** When a worker of the zone last said that it runs. Absent where `home` is the only zone. */
  readonly workedAt?: string;
}

/** The newest request and result. @throws StarlingError `NotFound` */
export async function readZoneCheck(ports: ApiPorts, zone: string): Promise<ZoneCheckAnswer> {
  requireZone(ports, zone);
  const [row, pulse] = await Promise.all([
    readRow(ports.table, keys.zoneCheck(zone)),
    readRow(ports.table, keys.zone(zone)),
  ]);
  return {
    ...(row === undefined || isNewer(row) ? {} : { asked: row.asked, ...defined({ answer: row.answer }) }),
    ...(pulse === undefined || isNewer(pulse) ? {} : { workedAt: pulse.workedAt }),
  };
}

function requireZone({ zoneNetworks = [] }: ApiPorts, zone: string): void {
  const known = [homeZone, ...zoneNetworks.map(({ metadata }) => metadata.name)];
  if (known.includes(zone)) return;
  const nearest = nearestName(zone, known);
  const remedy = nearest === undefined ? "an operator adds it to the setting zones" : `did you mean ${nearest}?`;
  throw refusal(
    "NotFound",
    `zone ${excerpt(zone)} does not exist; the installation has the zones ${known.join(", ")}; ${remedy}`,
  );
}

/** The entries of the fleet's directory that name the zone, by name. An entry that only a newer version can read is left out. */
async function membersOf(table: Table, zone: string): Promise<readonly FleetRow[]> {
  const rows = await Array.fromAsync(allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })));
  return rows.filter((row): row is FleetRow => row.type === "Fleet" && zoneOfEntry(row) === zone);
}

function needsOf(members: readonly FleetRow[]): ZoneNeeds {
  const regions = members.flatMap(({ arn }) => (arn === undefined ? [] : (parseEksArn(arn)?.region ?? [])));
  return { regions: [...new Set(regions)].sort(), secrets: members.some(({ arn }) => arn === undefined) };
}
