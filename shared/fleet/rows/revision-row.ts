import { expiryOf, keptSeconds } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Artifact, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

/** One artifact that a Source had, and when it began to have it: the Source's history, which nothing is decided by. */
export interface RevisionRow extends Row {
  readonly type: "Revision";
  readonly at: string;
  readonly artifact: Artifact;
}

export function revisionRow(
  source: Pick<SourceRow, "namespace" | "name">,
  artifact: Artifact,
  at: string,
): RevisionRow {
  return {
    ...keys.revision(source, at, artifact.digest),
    type: "Revision",
    schema: rowSchema,
    version: 1,
    at,
    artifact,
    expiresAt: expiryOf(new Date(at)),
  };
}

/** The longest time until the revision of a suspended Source is kept once more. */
const untilKeptSeconds = 20 * 86_400;

/** The revision stays for as long as a new one, from the last time that the Source can have it; its artifact was stored once more. */
export function keptRevisionRow(row: RevisionRow, now: Date): RevisionRow {
  const artifact = { ...row.artifact, storedAt: now.toISOString() };
  return { ...row, version: row.version + 1, artifact, expiresAt: expiryOf(now, keptSeconds + untilKeptSeconds) };
}

/** When the row was written, or kept the last time. */
export function revisionKeptAt({ at, artifact }: RevisionRow): string {
  return artifact.storedAt > at ? artifact.storedAt : at;
}
