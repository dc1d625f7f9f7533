import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { storedText } from "#shared/adapters/stored-text.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, isThere } from "#shared/base/errors.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { renewalAt, renewedAt, youngSince } from "#shared/fleet/blob-life.ts";
import { due, hasCome } from "#shared/fleet/rows/due.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { renderingsNamed, type SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { distinctMessages, type Message } from "#shared/messages.ts";

const concurrency = 8;

type RenewPorts = Pick<WorkerPorts, "table" | "blobs" | "sender" | "log">;

interface Found {
  readonly cluster: ClusterRow | undefined;
  readonly syncs: readonly SyncRow[];
  /** Acceptances after this time are in none of the rows. */
  readonly readAt: Date;
}

/**
 * Stores every blob that a cluster's rows name once more before it expires: renderings, and inventories, also those of
 * forgotten Syncs, because an owner that selects the cluster again prunes by them. Blobs that no row names expire. For
 * a desired rendering, its row is requested too, since that row can make it again. Nothing waits for this: a failure is
 * due again.
 * @param found.syncs - all Syncs of the cluster.
 * @returns the Cluster as it is now; undefined when it does not exist.
 */
export async function renewClusterBlobs(
  { cluster, syncs, readAt: now }: Found,
  ports: RenewPorts,
): Promise<ClusterRow | undefined> {
  if (cluster === undefined || !isDue(cluster, syncs, now)) return cluster;
  try {
    await runConcurrently(syncs, concurrency, (sync) => storeAgain(sync, ports));
    const renderings = new Set(syncs.flatMap((sync) => [...renderingsNamed(sync)]));
    await runConcurrently([...renderings], concurrency, (digest) => renewRendering(digest, { now, ports }));
    await ports.sender.send(askedOf(syncs));
    const { renewedAt: _inventories, ...before } = cluster.status;
    const next = { ...cluster, status: { ...before, blobsAt: now.toISOString() }, version: cluster.version + 1 };
    const put = due(next, renewalAt(next));
    await ports.table.write([{ put, when: { version: cluster.version } }]);
    return put;
  } catch (error) {
    ports.log.warn("blobs were not stored again", { cluster: cluster.name, error: errorMessage(error) });
    return cluster;
  }
}

/** Includes an older rendering that the cluster remembers and somebody has accepted. */
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
  // The next check of the Sync rebuilds a lost inventory.
  await isThere(storedText(blobs, key, keyOf).then((text) => blobs.overwrite(key, Buffer.from(text))));
}

/** A rendering that many clusters share is stored again by the first of them. */
async function renewRendering(
  digest: string,
  { now, ports }: { readonly now: Date; readonly ports: RenewPorts },
): Promise<void> {
  // A desired rendering that is lost is made again when it is requested or needed; for a rendering that was only tried,
  // nothing can be done.
  await isThere(ports.blobs.renew(blobKeys.rendering(digest), youngSince(now)));
}

/** The renderings that are desired, or would be if a deletion was withdrawn, each once. */
function askedOf(syncs: readonly SyncRow[]): readonly Message[] {
  const desired = syncs.flatMap(({ namespace, desired }) =>
    [desired, desired.instead ?? []].flat().map((assigned) => ({ namespace, ...assigned })),
  );
  const messages = desired.flatMap(({ namespace, input, source: name, revision }): readonly Message[] => {
    if (input === undefined) return [];
    const source = name === undefined ? undefined : { namespace, name, revision };
    return [{ to: "render", input, ...defined({ source }) }];
  });
  return distinctMessages(messages);
}
