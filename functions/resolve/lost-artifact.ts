import { fetchFormer } from "#functions/resolve/fetch-artifact.ts";
import { type LocatePorts, locate } from "#functions/resolve/locate.ts";
import { readArtifact } from "#functions/resolve/read-artifact.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorCode, errorMessage, isThere } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { isToRenew, youngSince } from "#shared/fleet/blob-life.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { Artifact, IncludedArtifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { BlobStore, Log, MessageSender, Table } from "#shared/ports.ts";

interface StorePorts {
  readonly blobs: BlobStore;
  readonly clock: Clock;
}

/** Whether an artifact is missing from the storage, or damaged. */
export async function isLostArtifact(digest: string, blobs: BlobStore): Promise<boolean> {
  return (await readArtifact(digest, blobs)) === undefined;
}

/** Stores a Source's artifact once more before it expires. @returns undefined when it is missing. */
export async function keepArtifact(artifact: Artifact, { blobs, clock }: StorePorts): Promise<Artifact | undefined> {
  const now = clock.now();
  if (!isToRenew(artifact.storedAt, now)) return artifact;
  const isKept = await isThere(blobs.renew(blobKeys.artifact(artifact.digest), youngSince(now)));
  return isKept ? { ...artifact, storedAt: now.toISOString() } : undefined;
}

/** An artifact that is missing, and a revision at which the Source had it. */
export interface Missed {
  readonly lost: string;
  readonly revision: string;
}

/** Fetches a former artifact again, where its upstream still has it: clusters that are behind are rendered from it. */
export async function bringBack(
  row: SourceRow,
  { lost, revision, timeLeftMs }: Missed & { readonly timeLeftMs: () => number },
  ports: LocatePorts & StorePorts & { readonly log: Log; readonly sender: MessageSender },
): Promise<void> {
  const { namespace, name } = row;
  const about = { kind: "Source", namespace, name, revision, artifact: lost };
  if (!(await isLostArtifact(lost, ports.blobs))) return;
  try {
    const located = await locate(row, { timeLeftMs, revision }, ports);
    const included = await includedThen(row, lost, ports.table);
    await fetchFormer(row, { located, included, digest: lost }, ports);
    ports.log.info("an artifact was lost, and is fetched again", about);
  } catch (error) {
    const newer =
      row.spec.git === undefined ? "give the Source a newer revision" : "push a commit that the Source follows";
    const remedy = `${newer}: what comes of it takes the place of this revision`;
    const reported = { code: errorCode(error), error: `${errorMessage(error)}; ${remedy}` };
    ports.log.error("an artifact is lost, and cannot be fetched again", { ...about, ...reported });
  }
}

/** The artifacts in a former one; its row in the Source's history has them, or that of a template that stays at it. */
async function includedThen(row: SourceRow, digest: string, table: Table): Promise<readonly IncludedArtifact[]> {
  const { artifact } = row.status;
  if (artifact?.digest === digest) return artifact.included ?? [];
  if (row.spec.include === undefined && artifact?.included === undefined) return [];
  const query = { ...ranges.revisions(row), newestFirst: true, newer: "kept" } as const;
  for await (const one of allItems((start) => table.query({ ...query, ...start }))) {
    if (!isNewer(one) && one.artifact.digest === digest) return one.artifact.included ?? [];
  }
  for await (const one of allItems((start) => table.query({ ...ranges.pins(row), newer: "kept", ...start }))) {
    if (!isNewer(one) && one.artifact?.digest === digest) return one.artifact.included ?? [];
  }
  return [];
}
