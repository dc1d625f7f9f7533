import type { CheckedZone } from "#functions/apply/check/checked-way.ts";
import { reachService } from "#functions/apply/check/reach-service.ts";
import { regionOf, serviceProbes, type WorkerPlaces } from "#functions/apply/check/service-probes.ts";
import { serviceRemedy } from "#functions/apply/check/service-remedy.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict } from "#shared/base/errors.ts";
import type { ZoneCheckRow } from "#shared/fleet/rows/check-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { ZoneCheck } from "#shared/fleet/zone-services.ts";
import type { Table } from "#shared/ports.ts";

export interface ZoneCheckPorts {
  readonly table: Table;
  readonly clock: Clock;
  readonly zone: CheckedZone;
  readonly places: WorkerPlaces;
}

/** Checks once for everybody who asked whether the workers of this zone reach the services of AWS, and records the result. */
export async function answerZoneCheck({ table, clock, zone, places }: ZoneCheckPorts): Promise<void> {
  const check = await readRow(table, keys.zoneCheck(zone.own));
  if (check === undefined || isNewer(check) || check.answer?.id === check.asked.id) return;
  const region = await regionOf(places);
  const { probes, left } = await serviceProbes(places, check.asked.needs);
  const found = await Promise.all(
    probes.map(async (probe) => {
      const finding = await reachService(probe);
      return { ...finding, ...defined({ remedy: serviceRemedy(finding, { ...zone, region }) }) };
    }),
  );
  const answer = {
    ...{
      id: check.asked.id,
      at: clock.now().toISOString(),
      region,
      network: networkOf(zone),
      services: [...found, ...left],
    },
    ...defined({ subnets: zone.subnets }),
  };
  const answered: ZoneCheckRow = { ...check, version: check.version + 1, answer };
  try {
    await table.write([{ put: answered, when: { version: check.version } }]);
  } catch (error) {
    // A newer request has its own message.
    if (!isConflict(error)) throw error;
  }
}

function networkOf({ addresses, securityGroups }: CheckedZone): ZoneCheck["network"] {
  const type = securityGroups !== undefined ? "subnets" : addresses.length > 0 ? "vpc" : "none";
  return { type, addresses };
}
