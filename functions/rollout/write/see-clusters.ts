import { readClusters } from "#functions/rollout/read/read-clusters.ts";
import type { Transaction } from "#functions/rollout/write/transaction.ts";
import type { ClusterRows } from "#shared/fleet/rollout/facts.ts";
import type { Table } from "#shared/ports.ts";

/** For a step about clusters: it reads their catch-ups, and leaves unreadable clusters alone. @returns the others. */
export async function seeClusters(
  transaction: Transaction,
  desired: Parameters<typeof readClusters>[1],
  table: Table,
): Promise<ReadonlyMap<string, ClusterRows>> {
  const found = await readClusters(transaction.known, desired, table);
  for (const { cluster, catchUps, newer } of found.values()) {
    transaction.see(catchUps);
    if (newer !== undefined) transaction.cannotRead(cluster);
  }
  return new Map([...found].filter(([, { newer }]) => newer === undefined));
}
