/** `spec.retain`: the newest revisions of a Source stay addressable, whether anything refers to them or not. The present one always does. */
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { isConflict, isThere } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { youngSince } from "#shared/fleet/blob-life.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { keptRevisionRow, revisionKeptAt } from "#shared/fleet/rows/revision-row.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { BlobStore, Log, Table } from "#shared/ports.ts";

interface RetainPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly log: Log;
}

const day = 86_400;
/** A suspended Source is looked after every 20 days, and a revision is forgotten after 30 that nobody kept it. */
const keepAgainSeconds = 5 * day;

/**
 * Keeps the `spec.retain` newest revisions and their artifacts for longer, on the first poll of a day. Without it the
 * newest one stays, so that it can be found when the next one has taken its place, however long the Source had it.
 */
export async function retainRevisions(row: SourceRow, ports: RetainPorts): Promise<void> {
  const { retain = 1 } = row.spec;
  const now = ports.clock.now();
  const isSuspended = row.operations.suspended !== undefined;
  if (!isSuspended && dayOf(row.status.attemptedAt) === dayOf(now.toISOString())) return;
  const query = { ...ranges.revisions(row), newestFirst: true, newer: "kept", limit: retain } as const;
  let read = 0;
  for await (const revision of allItems((start) => ports.table.query({ ...query, ...start }))) {
    read += 1;
    if (read > retain) return;
    if (isNewer(revision) || later(revisionKeptAt(revision), keepAgainSeconds) > now.toISOString()) continue;
    const { artifact } = revision;
    if (!(await isThere(ports.blobs.renew(blobKeys.artifact(artifact.digest), youngSince(now))))) {
      const { namespace, name } = row;
      const about = { kind: "Source", namespace, name, revision: artifact.revision, artifact: artifact.digest };
      ports.log.warn("a retained artifact is lost", about);
      continue;
    }
    try {
      await ports.table.write([{ put: keptRevisionRow(revision, now), when: { version: revision.version } }]);
    } catch (error) {
      // Another poll kept it.
      if (!isConflict(error)) throw error;
    }
  }
}

function dayOf(at: string | undefined): string | undefined {
  return at?.slice(0, "2026-11-29".length);
}
