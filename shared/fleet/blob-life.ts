/** How long a blob is there: nobody deletes one, each goes by itself unless somebody who needs it stores it once more. */
import { later } from "#shared/fleet/rows/due.ts";

/** From when it was stored last. */
export const blobLifeDays = 60;
/** Of these; the others are there for ever. */
export const renewedFolders = ["plans"] as const;
/** Functions that do not run for the rest of its life lose nothing. */
const renewAfterDays = 20;

/** @param storedAt - undefined: nobody knows. */
export function isToRenew(storedAt: string | undefined, now: Date): boolean {
  return storedAt === undefined || later(storedAt, renewAfterDays * 86_400) <= now.toISOString();
}
