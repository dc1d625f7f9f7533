/** Revisions that a spec names exactly, and artifacts of the past that answer for them. */
import { digestOf } from "#shared/base/digest.ts";
import { bucketAddress, type SourceSpec, upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { Artifact, IncludedArtifact } from "#shared/fleet/rows/object-rows.ts";
import { commitIn } from "#shared/source/git-reference.ts";

/** An upstream never changes this part of a revision: the commit, the digest, or the version of a chart. */
function identityIn(spec: SourceSpec, revision: string): string {
  return spec.helm === undefined ? commitIn(revision) : plainVersion(revision.split("@")[0] ?? "");
}

/** A version with all three parts. */
export const wholeVersion = String.raw`v?\d+\.\d+\.\d+(?:[-+][\w.+-]*)?`;
const exactRange = new RegExp(String.raw`^\s*=?\s*(${wholeVersion})\s*$`);

/** `v1.2.3` and `1.2.3` are one version. */
export function plainVersion(version: string): string {
  return version.replace(/^v/, "");
}

/**
 * Digest of what decides the files of an artifact: the revision, the spec without what only finds the revision, and the
 * included artifacts.
 */
export function madeFrom(spec: SourceSpec, revision: string, included: readonly IncludedArtifact[]): string {
  const { interval: _interval, immutableTags: _immutableTags, retain: _retain, ...rest } = spec;
  const { kind } = upstreamOf(spec);
  const {
    ref: _ref,
    credentials: _credentials,
    version: _version,
    principals: _principals,
    ...place
  } = { ...spec[kind] } as Record<string, unknown>;
  const identity = identityIn(spec, revision);
  const others = included.length === 0 ? {} : { included: included.map(({ digest }) => digest) };
  return digestOf({ identity, spec: { ...rest, [kind]: place }, ...others });
}

/** Whether the spec makes the artifact of its revision; what was included of other Sources stays in it. */
export function isMadeFrom(spec: SourceSpec, artifact: Artifact): boolean {
  const { revision, included = [] } = artifact;
  return specsThen(spec, artifact).some((then) => artifact.madeFrom === madeFrom(then, revision, included));
}

/** The address and the checksum of an archive, and the folder of a bucket, only find a revision, as the `ref` of others does. */
function specsThen(spec: SourceSpec, { origin, revision }: Artifact): readonly SourceSpec[] {
  const { archive, s3 } = spec;
  if (archive !== undefined && origin !== undefined)
    return [{ ...spec, archive: { ...archive, url: origin, sha256: revision.replace(/^sha256:/, "") } }];
  if (s3 === undefined || origin === undefined) return [spec];
  const { prefix: _prefix, ...place } = s3;
  const bucket = bucketAddress(place);
  if (origin === bucket) return [{ ...spec, s3: place }];
  const folder = origin.slice(bucket.length + 1);
  // The address of a folder has no slash at its end, and the spec may have one.
  return [folder, `${folder}/`].map((prefix) => ({ ...spec, s3: { ...place, prefix } }));
}

export interface Pinned {
  readonly revision: string;
  /** A repository of charts may replace a version; a commit and a digest have their content for ever. */
  readonly changes: "never" | "rarely";
}

/** The revision that a spec names exactly; undefined for a branch, a tag or a range. */
export function pinnedRevision({ git, oci, helm, archive }: SourceSpec): Pinned | undefined {
  const commit = git?.ref?.commit;
  const never = commit === undefined ? (oci?.ref?.digest ?? (archive && `sha256:${archive.sha256}`)) : `sha1:${commit}`;
  if (never !== undefined) return { revision: never, changes: "never" };
  const [, version] = exactRange.exec(helm?.ref?.semver ?? "") ?? [];
  return version === undefined ? undefined : { revision: version, changes: "rarely" };
}
