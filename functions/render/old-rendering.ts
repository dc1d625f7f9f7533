/** Renderings that exist and are requested again: they may be old, or lost. */

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
 * Decides whether the rendering has to be made again. A worker reported it missing, so the store is asked whether it is
 * really missing or damaged. A rendering that is lost repeatedly waits for a back-off, however many clusters ask.
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
  /** The rendering has to be made again. */
  | "gone"
  /** An artifact that it is made from is missing; the rendering itself exists. */
  | "without artifact";

/**
 * Keeps a rendering that is requested: when nobody requested it lately, its bytes and those of its artifacts are stored
 * once more, and the row stays. A worker that dies meanwhile has stored more than the row records, which does no harm.
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
    // Another worker has kept it, or makes it again.
    if (!isConflict(error)) throw error;
  }
  return kept.every(Boolean) ? "kept" : "without artifact";
}
