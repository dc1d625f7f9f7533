/**
 * The fleet's directory has versions, so that whoever computed something from all of it can tell by a few small rows that it
 * is still so. More than one, so that writers of different clusters seldom meet.
 */

import { hashOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

const partCount = 16;

export const fleetParts: readonly number[] = Array.from({ length: partCount }, (_, part) => part);

/** Behind those of the clusters: the ClusterValues, of which every cluster may have some. */
export const valuesPart = partCount;

/** Goes into every transaction that writes, or deletes, a ClusterValues. */
export function valuesVersionUpdate() {
  return versionUpdate(valuesPart);
}

/** Goes into every transaction that writes, or deletes, the entry of a cluster in the fleet's directory. */
export function fleetVersionUpdate(cluster: string) {
  return versionUpdate(hashOf(cluster) % partCount);
}

function versionUpdate(part: number) {
  return {
    update: keys.fleetVersion(part),
    set: { type: "FleetVersion", schema: rowSchema },
    add: { version: 1 },
  };
}
