/**
 * How long a blob is there: nobody deletes one, each goes by itself unless somebody who needs it stores it once more. The
 * row of a rendering goes likewise, unless somebody asks for the rendering.
 */

import { jittered, later } from "#shared/fleet/rows/due.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";

const day = 86_400;

/** From when it was stored last. A table may be restored as it was 35 days ago, and then names what was young by then. */
export const blobLifeDays = 60;
/** Of these; what is in others is on its way. */
export const renewedFolders = ["plans", "inventories", "renderings", "artifacts"] as const;
/** Functions that do not run for the rest of its life lose nothing. */
const renewAfterSeconds = 20 * day;
/** What was stored so lately is not stored again: a rendering is named by many rows. */
const youngSeconds = day / 2;
/** What was stored so lately is given to somebody new. Longer, so that clocks that differ never ask for what is young. */
const freshSeconds = day;
/** Longer than a blob: by the row, one that is lost is made again, also where no function ran for months. */
const rowLifeSeconds = 180 * day;

/** @param storedAt - undefined: nobody knows. */
export function isToRenew(storedAt: string | undefined, now: Date): boolean {
  return storedAt === undefined || toRenewAt(storedAt) <= now.toISOString();
}

/** When what was stored then is to be stored once more. */
export function toRenewAt(storedAt: string): string {
  return later(storedAt, renewAfterSeconds);
}

/** What was stored since then is as good as new. */
export function youngSince(now: Date): Date {
  return new Date(now.getTime() - youngSeconds * 1000);
}

/** @param storedAt - see above. */
export function isYoung(storedAt: string | undefined, now: Date): boolean {
  return storedAt !== undefined && storedAt > youngSince(now).toISOString();
}

/** Whether it may be given to somebody, who stores it again in time. @param storedAt - see above. */
export function isFresh(storedAt: string | undefined, now: Date): boolean {
  return storedAt !== undefined && later(storedAt, freshSeconds) > now.toISOString();
}

/** `expiresAt` of the row of a rendering that somebody asks for now. */
export function renderingExpiry(now: Date): number {
  return expiryOf(now, rowLifeSeconds);
}

/** When the blobs of a cluster are to be stored once more. Those of one that was registered just now are new. */
export function renewalAt(cluster: Pick<ClusterRow, "name" | "createdAt" | "status">): string {
  const since = renewedAt(cluster);
  return later(since, jittered(renewAfterSeconds, `${cluster.name}${since}`));
}

/** No blob that the rows of a cluster name was stored much before. */
export function renewedAt({ createdAt, status }: Pick<ClusterRow, "createdAt" | "status">): string {
  return status.blobsAt ?? createdAt;
}
