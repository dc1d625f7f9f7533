import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import { loadInventory } from "#functions/apply/steps/sync-blobs.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { SharedLists } from "#shared/kube/engine/shared-lists.ts";
import type { Inventory } from "#shared/kube/inventory.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";

const concurrency = 8;
/** Lists that several Syncs share have the limit of one check, some 50 KB for each of so many objects. */
const objectsTogether = 5_000;

/** The smallest Syncs share lists, as many as fit; every other one reads for itself. */
function withinReason(inventories: readonly Inventory[]): readonly Inventory[] {
  const small: Inventory[] = [];
  let objects = 0;
  for (const inventory of [...inventories].sort((a, b) => a.entries.length - b.entries.length)) {
    objects += inventory.entries.length;
    if (objects > objectsTogether) break;
    small.push(inventory);
  }
  return small;
}

/** The ports for checking Syncs of one cluster one after the other: they share each list that one of them has read. */
export async function checkTogether(rows: readonly SyncRow[], ports: WorkerPorts): Promise<WorkerPorts> {
  const inventories: Inventory[] = [];
  await runConcurrently(rows, concurrency, async (row) => {
    const setId = setIdOf({ syncNamespace: row.namespace, syncName: row.name });
    // The check of a Sync reports its own unreadable inventory.
    const inventory = await loadInventory(row, setId, ports.blobs).catch(() => undefined);
    if (inventory !== undefined) inventories.push(inventory);
  });
  const small = withinReason(inventories);
  if (small.length < 2) return ports;
  const { connector } = ports;
  const lists = new SharedLists(small, ports.clock);
  return {
    ...ports,
    connector: {
      connect: async (cluster, deadline) =>
        lists.of(await connector.connect(cluster, deadline), await connector.connect(cluster, deadline)),
      distrust: (cluster) => connector.distrust(cluster),
    },
  };
}
