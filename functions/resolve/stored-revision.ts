/** A revision that the Source had before is used again without its upstream, which may be away. */
import { isLostArtifact, keepArtifact } from "#functions/resolve/lost-artifact.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Artifact, IncludedArtifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { madeFrom } from "#shared/fleet/sources/pinned-revision.ts";
import type { BlobStore, Table } from "#shared/ports.ts";

interface StoredPorts {
  readonly table: Table;
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

/** Revisions that are looked through, the newest first. */
const mostRead = 1000;

/** The newest artifact that the Source had of a revision, under the same spec and with the same included artifacts; undefined when it is not stored any more. */
export function storedRevision(
  row: SourceRow,
  { revision, included }: { readonly revision: string; readonly included: readonly IncludedArtifact[] },
  ports: StoredPorts,
): Promise<Artifact | undefined> {
  const desired = madeFrom(row.spec, revision, included);
  return storedAmong(row, (artifact) => artifact.madeFrom === desired, ports);
}

/** The newest artifact of the Source's history of which this is true; undefined when it is not stored any more. */
export async function storedAmong(
  row: SourceRow,
  isDesired: (artifact: Artifact) => boolean,
  ports: StoredPorts,
): Promise<Artifact | undefined> {
  const query = { ...ranges.revisions(row), newestFirst: true, newer: "kept" } as const;
  let read = 0;
  for await (const one of allItems((start) => ports.table.query({ ...query, ...start }))) {
    if (++read > mostRead) return undefined;
    if (isNewer(one) || !isDesired(one.artifact)) continue;
    if (await isLostArtifact(one.artifact.digest, ports.blobs)) return undefined;
    return keepArtifact(one.artifact, ports);
  }
  return undefined;
}
