import { isConflict } from "#shared/base/errors.ts";
import { fleetVersionKey, fleetVersionUpdate, notedVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer, type RowKey } from "#shared/fleet/rows/row.ts";
import type { Table, Write } from "#shared/ports.ts";

/** Other writers of the same part finish within milliseconds. */
const notedTries = 3;

/**
 * Writes one transaction. For each entry of the fleet's directory in it, the transaction also writes the version that
 * tells planners which cluster changed. If other writers change the same version each time, the version grows without
 * the cluster's name. Planners then read the whole directory.
 */
export async function writeWithFleet(table: Table, writes: readonly Write[]): Promise<void> {
  const clusters = writes.flatMap((write) => clusterWritten(write) ?? []);
  const parts = [...Map.groupBy(clusters, (cluster) => fleetVersionKey(cluster).sk).values()];
  for (let attempt = 1; attempt <= notedTries && parts.length > 0; attempt++) {
    const noted = await notedVersions(parts, table);
    if (noted === undefined) break;
    try {
      return await table.write([...writes, ...noted]);
    } catch (error) {
      if (!isConflict(error) || !isOnlyOf(error.data, writes.length)) throw error;
    }
  }
  await table.write([...writes, ...parts.flatMap(([first]) => (first === undefined ? [] : fleetVersionUpdate(first)))]);
}

/** @returns undefined when only a newer version of Starling can read one of them. */
async function notedVersions(
  parts: readonly (readonly string[])[],
  table: Table,
): Promise<readonly Write[] | undefined> {
  const desired = parts.flatMap((clusters) => {
    const [first] = clusters;
    return first === undefined ? [] : [{ key: fleetVersionKey(first), clusters }];
  });
  const rows = await table.getMany(
    desired.map(({ key }) => key),
    { newer: "kept" },
  );
  const known = rows.filter((row) => !isNewer(row));
  if (known.length < rows.length) return undefined;
  return desired.map(({ key, clusters }) =>
    notedVersionUpdate(
      key,
      clusters,
      known.find(({ sk }) => sk === key.sk),
    ),
  );
}

function clusterWritten(write: Write): string | undefined {
  return "check" in write ? undefined : keys.fleet.parse(keyOf(write))?.cluster;
}

function keyOf(write: Exclude<Write, { readonly check: RowKey }>): RowKey {
  if ("put" in write) return write.put;
  return "delete" in write ? write.delete : write.update;
}

/** Whether only the versions conflicted, which are the last writes of the transaction. */
function isOnlyOf(data: Readonly<Record<string, unknown>>, from: number): boolean {
  const { failed } = data;
  return Array.isArray(failed) && failed.length > 0 && failed.every((index) => Number(index) >= from);
}
