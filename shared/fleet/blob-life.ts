/**
 * The lifetime of blobs: nobody deletes one, and each expires unless somebody who needs it stores it once more. The row
 * of a rendering expires likewise, unless somebody requests the rendering.
 */

import { jittered, later } from "#shared/fleet/rows/due.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";

const day = 86_400;

/**
 * Lifetime since the blob was last stored. A table may be restored as it was 35 days ago, and then names blobs that
 * were young at that time.
 */
export const blobLifeDays = 60;
/** Prefixes of these blobs; the others are in transit. */
export const renewedFolders = ["plans", "inventories", "renderings", "artifacts"] as const;
/** Functions may stop for the rest of the lifetime without losing a blob. */
const renewAfterSeconds = 20 * day;
/** A blob that was stored this lately is not stored again, because many rows name a rendering. */
const youngSeconds = day / 2;
/**
 * A blob that was stored this lately is given to a new user. The time is longer, so that different clocks never ask for
 * a young blob.
 */
const freshSeconds = day;
/** Longer than a blob: the row makes a lost rendering again, even when no function ran for months. */
const rowLifeSeconds = 180 * day;

/** @param storedAt - undefined when unknown. */
export function isToRenew(storedAt: string | undefined, now: Date): boolean {
  return storedAt === undefined || toRenewAt(storedAt) <= now.toISOString();
}

/** When a blob that was stored then has to be stored once more. */
export function toRenewAt(storedAt: string): string {
  return later(storedAt, renewAfterSeconds);
}

/** A blob that was stored since then is as good as new. */
export function youngSince(now: Date): Date {
  return new Date(now.getTime() - youngSeconds * 1000);
}

/** @param storedAt - see above. */
export function isYoung(storedAt: string | undefined, now: Date): boolean {
  return storedAt !== undefined && storedAt > youngSince(now).toISOString();
}

/** Whether the blob may be given to a user, who stores it again in time. @param storedAt - see above. */
export function isFresh(storedAt: string | undefined, now: Date): boolean {
  return storedAt !== undefined && later(storedAt, freshSeconds) > now.toISOString();
}

/** `expiresAt` of the row of a rendering that is requested now. */
export function renderingExpiry(now: Date): number {
  return expiryOf(now, rowLifeSeconds);
}

/** When the blobs of a cluster have to be stored once more. The blobs of a new cluster are new. */
export function renewalAt(cluster: Pick<ClusterRow, "name" | "createdAt" | "status">): string {
  const since = renewedAt(cluster);
  return later(since, jittered(renewAfterSeconds, `${cluster.name}${since}`));
}

/** A time before which, within some tolerance, no blob of a cluster's rows was stored. */
export function renewedAt({ createdAt, status }: Pick<ClusterRow, "createdAt" | "status">): string {
  return status.blobsAt ?? createdAt;
}
