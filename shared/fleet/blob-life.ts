/** How long a blob is there: nobody deletes one, each goes by itself unless somebody who needs it stores it once more. */
import { jittered, later } from "#shared/fleet/rows/due.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";

/** From when it was stored last. A table may be restored as it was 35 days ago, and then names what was young by then. */
export const blobLifeDays = 60;
/** Of these; the others are there for ever. */
export const renewedFolders = ["plans", "inventories"] as const;
/** Functions that do not run for the rest of its life lose nothing. */
const renewAfterSeconds = 20 * 86_400;

/** @param storedAt - undefined: nobody knows. */
export function isToRenew(storedAt: string | undefined, now: Date): boolean {
  return storedAt === undefined || later(storedAt, renewAfterSeconds) <= now.toISOString();
}

/** When the inventories of a cluster are to be stored once more. None was stored before it was registered. */
export function renewalAt(cluster: Pick<ClusterRow, "name" | "createdAt" | "status">): string {
  const since = renewedAt(cluster);
  return later(since, jittered(renewAfterSeconds, `${cluster.name}${since}`));
}

/** No inventory that the rows of a cluster name was stored before. */
export function renewedAt({ createdAt, status }: Pick<ClusterRow, "createdAt" | "status">): string {
  return status.renewedAt ?? createdAt;
}
