import { expiryOf } from "#shared/fleet/rows/expiry.ts";
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
