/** Versions that CI pushes to a Source of the kind `external`. */
import type { SourceRow, Upload } from "#shared/fleet/rows/object-rows.ts";

export const maxUploadBytes = 100 * 1024 * 1024;
/** A row is not a log; a version that is forgotten may be pushed with other content. */
const keptUploads = 200;

export function uploadRevision({ version, sha256 }: Pick<Upload, "version" | "sha256">): string {
  return `${version}@sha256:${sha256}`;
}

/** Whether the next new version makes the Source forget one. */
export function isFullOfUploads({ uploads = [] }: SourceRow["operations"]): boolean {
  return uploads.length >= keptUploads;
}

/** The newest version is the last one. A version that is known keeps its place, unless its content was refused. */
export function withUpload(before: readonly Upload[], upload: Upload, place: "kept" | "newest"): readonly Upload[] {
  const isKnown = before.some(({ version }) => version === upload.version);
  if (isKnown && place === "kept") return before.map((each) => (each.version === upload.version ? upload : each));
  return [...before.filter(({ version }) => version !== upload.version), upload];
}

/** The newest versions, the one of the spec, and older ones that something refers to. */
export function withoutForgotten(
  { spec, status }: Pick<SourceRow, "spec" | "status">,
  uploads: readonly Upload[],
  isReferenced: (revision: string) => boolean,
): readonly Upload[] {
  const surplus = uploads.length - keptUploads;
  return uploads.filter((upload, index) => {
    const revision = uploadRevision(upload);
    const isOwn = upload.version === spec.external?.version || revision === status.artifact?.revision;
    return index >= surplus || isOwn || isReferenced(revision);
  });
}
