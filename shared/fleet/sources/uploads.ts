/** Versions that CI pushes to a Source of the kind `external`. */
import type { Upload } from "#shared/fleet/rows/object-rows.ts";

export const maxUploadBytes = 100 * 1024 * 1024;
/** A row is not a log; a version that is forgotten may be pushed with other content. */
const keptUploads = 200;

export function uploadRevision({ version, sha256 }: Pick<Upload, "version" | "sha256">): string {
  return `${version}@sha256:${sha256}`;
}

/** The newest version is the last one. A version that is known keeps its place, unless its content was refused. */
export function withUpload(before: readonly Upload[], upload: Upload, place: "kept" | "newest"): readonly Upload[] {
  const isKnown = before.some(({ version }) => version === upload.version);
  if (isKnown && place === "kept") return before.map((each) => (each.version === upload.version ? upload : each));
  return [...before.filter(({ version }) => version !== upload.version), upload].slice(-keptUploads);
}
