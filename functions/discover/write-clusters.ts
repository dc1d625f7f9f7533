import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { hasOtherWay, wakeUnreachable } from "#shared/adapters/wake-unreachable.ts";
import { errorMessage, isConflict, isRowTooLarge } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { renewalAt } from "#shared/fleet/blob-life.ts";
import type { SelectableCluster } from "#shared/fleet/kinds/cluster-selection.ts";
import { entryText, fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import type { FoundRow } from "#shared/fleet/rows/discovery-rows.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { clusterSchema } from "#shared/fleet/rows/needed-schema.ts";
import type { ClusterRow, Discovered, FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { firstVersion } from "#shared/fleet/rows/row.ts";
import type { Write } from "#shared/ports.ts";

/** The rows of one cluster before and after the scan. */
export interface ClusterWrite {
  readonly found: FoundRow;
  readonly foundBefore: FoundRow | undefined;
  readonly before: ClusterRow | undefined;
  /** When absent, the Cluster stays as it is. */
  readonly discovered?: Discovered;
}

export interface Written {
  /** Clusters before and after the change, where the change matters to the planner. */
  readonly clusters: readonly SelectableCluster[];
  readonly found: readonly FoundRow[];
  readonly failed: readonly { readonly cluster: string; readonly message: string }[];
}

interface Change {
  readonly found: FoundRow;
  readonly writes: readonly Write[];
  /** The cluster before and after the change, where the change matters to the planner. */
  readonly fleet: readonly FleetRow[];
  readonly way: "same" | "other";
}

/** A transaction takes 100 writes, and a cluster needs at most four. */
const clustersAtOnce = 20;

/**
 * Writes the discovered clusters, each with its entry in the fleet's directory and the record of its ARN. Many clusters
 * share a transaction. When another writer changed one of them, each is written alone, and a loser is scanned again.
 */
export async function writeClusters(
  writes: readonly ClusterWrite[],
  ports: Pick<DiscoverPorts, "table" | "ids" | "clock" | "log">,
): Promise<Written> {
  const clusters: SelectableCluster[] = [];
  const found: FoundRow[] = [];
  const rerouted: string[] = [];
  const failed: { readonly cluster: string; readonly message: string }[] = [];
  const changes = writes.map((write) => changeOf(write, ports));
  const write = async (part: readonly Change[]) => {
    await writeWithFleet(
      ports.table,
      part.flatMap((change) => change.writes),
    );
    clusters.push(...part.flatMap(({ fleet }) => fleet));
    found.push(...part.map((change) => change.found));
    rerouted.push(...part.flatMap(({ found: row, way }) => (way === "other" ? [row.cluster] : [])));
  };
  for (const part of inParts(changes, clustersAtOnce)) {
    try {
      await write(part);
      continue;
    } catch (error) {
      if (!isConflict(error) && !isRowTooLarge(error)) throw error;
    }
    for (const change of part) {
      try {
        await write([change]);
      } catch (error) {
        if (!isConflict(error) && !isRowTooLarge(error)) throw error;
        failed.push({ cluster: change.found.cluster, message: errorMessage(error) });
      }
    }
  }
  await wakeUnreachable(ports, rerouted);
  return { clusters, found, failed };
}

function changeOf(
  { found, foundBefore, before, discovered }: ClusterWrite,
  ports: Pick<DiscoverPorts, "ids" | "clock">,
): Change {
  const putFound: Write = {
    put: found,
    when: foundBefore === undefined ? "absent" : { version: foundBefore.version },
  };
  if (discovered === undefined || canonicalJson(before?.discovered ?? {}) === canonicalJson(discovered)) {
    return { found, writes: [putFound], fleet: [], way: "same" };
  }
  const after =
    before === undefined
      ? newCluster(found.cluster, discovered, ports)
      : { ...before, discovered, version: before.version + 1, schema: clusterSchema({ ...before, discovered }) };
  const put: Write = { put: after, when: before === undefined ? "absent" : { version: before.version } };
  const entry = fleetRow(after);
  const old = before === undefined ? undefined : fleetRow(before);
  const isSame = old !== undefined && entryText(old) === entryText(entry);
  const way = before !== undefined && hasOtherWay(before, after) ? "other" : "same";
  if (isSame) return { found, writes: [put, putFound], fleet: [], way };
  return { found, writes: [put, { put: entry }, putFound], fleet: old === undefined ? [entry] : [old, entry], way };
}

function newCluster(
  name: string,
  discovered: Discovered,
  { ids, clock }: Pick<DiscoverPorts, "ids" | "clock">,
): ClusterRow {
  const row: ClusterRow = {
    ...keys.cluster(name),
    type: "Cluster",
    schema: clusterSchema({ spec: {}, operations: {}, discovered }),
    version: firstVersion(clock.now()),
    uid: ids.unique(),
    name,
    labels: {},
    annotations: {},
    // No other writer changed it.
    generation: 0,
    createdAt: clock.now().toISOString(),
    spec: {},
    operations: {},
    status: { conditions: [] },
    discovered,
  };
  return due(row, renewalAt(row));
}
