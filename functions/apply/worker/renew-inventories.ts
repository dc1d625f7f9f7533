import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { storedText } from "#shared/adapters/stored-text.ts";
import { errorMessage, isBlobLost } from "#shared/base/errors.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { renewalAt, renewedAt } from "#shared/fleet/blob-life.ts";
import { due, hasCome } from "#shared/fleet/rows/due.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

const concurrency = 8;

type RenewPorts = Pick<WorkerPorts, "table" | "blobs" | "log">;

interface Found {
  readonly cluster: ClusterRow | undefined;
  readonly syncs: readonly SyncRow[];
  /** What somebody accepts after this is in none of the rows. */
  readonly readAt: Date;
}

/**
 * Every inventory that the rows of a cluster name is stored once more, in time, also of Syncs that were forgotten: whoever
 * selects the cluster again prunes by it. What no row names goes by itself. Nothing waits for it: what fails is due again.
 * @param found.syncs - all of the cluster.
 * @returns the Cluster as it is now; undefined when there is none.
 */
export async function renewInventories(
  { cluster, syncs, readAt: now }: Found,
  ports: RenewPorts,
): Promise<ClusterRow | undefined> {
  if (cluster === undefined || !isDue(cluster, syncs, now)) return cluster;
  try {
    await runConcurrently(syncs, concurrency, (sync) => storeAgain(sync, ports));
    const status = { ...cluster.status, renewedAt: now.toISOString() };
    const next = { ...cluster, status, version: cluster.version + 1 };
    const put = due(next, renewalAt(next));
    await ports.table.write([{ put, when: { version: cluster.version } }]);
    return put;
  } catch (error) {
    ports.log.warn("inventories were not stored again", { cluster: cluster.name, error: errorMessage(error) });
    return cluster;
  }
}

/** Also when somebody has accepted what the cluster remembers: that may be an older one. */
function isDue(cluster: ClusterRow, syncs: readonly SyncRow[], now: Date): boolean {
  const last = renewedAt(cluster);
  return (
    hasCome(renewalAt(cluster), now) || syncs.some(({ recovered }) => recovered !== undefined && recovered.at > last)
  );
}

async function storeAgain({ cluster, observed }: SyncRow, { blobs }: RenewPorts): Promise<void> {
  if (observed?.inventory === undefined) return;
  const keyOf = (digest: string) => blobKeys.inventory(cluster, digest);
  const key = keyOf(observed.inventory);
  try {
    await blobs.overwrite(key, Buffer.from(await storedText(blobs, key, keyOf)));
  } catch (error) {
    // It is rebuilt by the next look at its Sync.
    if (!isBlobLost(error)) throw error;
  }
}
