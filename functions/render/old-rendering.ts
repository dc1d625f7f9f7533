/** What is done already, and asked for: it may be old, or gone. */

import { storedText } from "#shared/adapters/stored-text.ts";
import type { Clock } from "#shared/base/clock.ts";
import { isConflict, isThere } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { isYoung, renderingExpiry, youngSince } from "#shared/fleet/blob-life.ts";
import { backoffSeconds, later } from "#shared/fleet/rows/due.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { RenderMessage } from "#shared/messages.ts";
import type { BlobStore, Table } from "#shared/ports.ts";
import { valueArtifacts } from "#shared/source/helm/helm-release.ts";

interface StorePorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

/**
 * Whether it is to be made again: what somebody did not find is looked for, to be really gone or not what it was, and
 * where it is lost again and again, with a back-off, however many clusters ask.
 */
export async function isLostRendering(
  { state, digest, losses = 0, doneAt }: RenderingRow,
  { lost }: RenderMessage,
  ports: StorePorts,
): Promise<boolean> {
  if (state !== "Done" || digest === undefined || digest !== lost) return false;
  const isTooSoon = losses > 0 && ports.clock.now().toISOString() < later(doneAt ?? "", backoffSeconds(losses));
  return !isTooSoon && !(await isThere(storedText(ports.blobs, blobKeys.rendering(digest), blobKeys.rendering)));
}

export type Kept =
  | "young"
  | "kept"
  /** It is to be made again. */
  | "gone"
  /** So is what it is made from; the rendering itself is there. */
  | "without artifact";

/**
 * What is done and asked for is needed: where that was not said lately, its bytes are stored once more, those of its
 * artifacts too, and the row stays. A worker that dies on the way has stored more than was noted.
 */
export async function keepRendering(row: RenderingRow, { table, blobs, clock }: StorePorts): Promise<Kept> {
  const now = clock.now();
  const { state, digest, doneAt, keptAt = doneAt, artifactDigest } = row;
  if (state !== "Done" || digest === undefined || isYoung(keptAt, now)) return "young";
  const renew = async (key: string) => isThere(blobs.renew(key, youngSince(now)));
  if (!(await renew(blobKeys.rendering(digest)))) return "gone";
  const digests = [artifactDigest, ...valueArtifacts(row.render?.helm)];
  const kept = await Promise.all(digests.map((digest) => renew(blobKeys.artifact(digest))));
  const next = { ...row, keptAt: now.toISOString(), expiresAt: renderingExpiry(now), version: row.version + 1 };
  try {
    await table.write([{ put: next, when: { version: row.version } }]);
  } catch (error) {
    // Somebody else has kept it, or makes it again.
    if (!isConflict(error)) throw error;
  }
  return kept.every(Boolean) ? "kept" : "without artifact";
}
