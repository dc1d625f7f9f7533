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
  /** What somebody accepts after this is in none of the rows. */
  readonly readAt: Date;
}

/**
 * Every blob that the rows of a cluster name is stored once more, in time: inventories, also of Syncs that were forgotten,
 * for whoever selects the cluster again prunes by them, and renderings. What no row names goes by itself. Of what is
 * wanted, the row by which it would be made again is asked for. Nothing waits for it: what fails is due again.
 * @param found.syncs - all of the cluster.
 * @returns the Cluster as it is now; undefined when there is none.
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
  // One that is lost is rebuilt by the next look at its Sync.
  await isThere(storedText(blobs, key, keyOf).then((text) => blobs.overwrite(key, Buffer.from(text))));
}

/** One that many clusters have is stored again by the first. */
async function renewRendering(
  digest: string,
  { now, ports }: { readonly now: Date; readonly ports: RenewPorts },
): Promise<void> {
  // Where it is lost, what is wanted is made again, when it is asked for now or needed; of what was tried nobody knows more.
  await isThere(ports.blobs.renew(blobKeys.rendering(digest), youngSince(now)));
}

/** The renderings that are wanted, or would be if a deletion was taken back, each once. */
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
