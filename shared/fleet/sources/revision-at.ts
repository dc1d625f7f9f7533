/** The revision that a text of a template means: how it is recognised, and how a Source is asked for it. Pure. */
import { followsTags, ociTag, type SourceSpec, uploadVersion, upstreamOf } from "#shared/fleet/kinds/source.ts";
import { plainVersion, wholeVersion } from "#shared/fleet/sources/pinned-revision.ts";
import { type GitReference, namesTags } from "#shared/source/git-ref-schema.ts";
import { commitIn } from "#shared/source/git-reference.ts";

const wholeCommit = /^(?:(.+)@)?(?:sha1:)?([0-9a-f]{40})$/;
const wholeDigest = /^(?:.+@)?(sha256:[0-9a-f]{64})$/;
const onlyVersion = new RegExp(`^${wholeVersion}$`);

/** Whether `revision`, as a Source's history writes it, is the one that `text` means. */
export function isRevision(spec: SourceSpec, revision: string, text: string): boolean {
  if (revision === text) return true;
  const [, , commit] = wholeCommit.exec(text) ?? [];
  if (commit !== undefined) return spec.git !== undefined && commitIn(revision) === commit;
  const [, digest] = wholeDigest.exec(text) ?? [];
  if (digest !== undefined) return revision.slice(revision.lastIndexOf("@") + 1) === digest;
  const name = revision.slice(0, Math.max(0, revision.lastIndexOf("@"))) || revision;
  if (spec.helm !== undefined) return plainVersion(name) === plainVersion(text);
  // A branch has a name, too.
  return name === text && (spec.external !== undefined || followsTags(upstreamOf(spec)));
}

/** The spec that finds exactly this revision at the upstream, or why the upstream cannot be asked for it. */
export function specAt(spec: SourceSpec, text: string): SourceSpec | string {
  const { git, helm, oci, external } = spec;
  const [, name, commit] = wholeCommit.exec(text) ?? [];
  const [, digest] = wholeDigest.exec(text) ?? [];
  const [version = ""] = text.split("@");
  if (git !== undefined) {
    const isOfTag = git.verify !== undefined && git.verify.mode !== "HEAD";
    if (git.ref?.branch === text) return "it is the branch that the Source follows; leave revision out to follow it";
    if (digest !== undefined)
      return "it is a digest, and the Source follows git; write a commit with all of its 40 digits, or a tag";
    if (git.ref?.name === text && !namesTags(git.ref))
      return "it is the reference that the Source follows; leave revision out to follow it";
    if (commit === undefined) return { ...spec, git: { ...git, ref: tagReference(text) } };
    if (!isOfTag) return { ...spec, git: { ...git, ref: { commit } } };
    if (name !== undefined) return { ...spec, git: { ...git, ref: tagReference(name) } };
    return "it is not stored, and spec.git.verify of the Source verifies tags, and a commit has none; write the tag";
  }
  if (helm !== undefined) {
    if (onlyVersion.test(version)) return { ...spec, helm: { ...helm, ref: { semver: `=${plainVersion(version)}` } } };
    return "it is not stored, and a chart is found by its whole version, such as 4.11.3";
  }
  if (oci !== undefined) {
    if (digest !== undefined) return { ...spec, oci: { ...oci, ref: { digest } } };
    // Anything else could lead to another repository of the registry.
    if (ociTag.safeParse(text).success) return { ...spec, oci: { ...oci, ref: { tag: text } } };
    return "it is not stored, and a registry finds it by its tag, of letters, digits and . _ -, or by sha256: and its digest";
  }
  if (external !== undefined && uploadVersion.safeParse(version).success)
    return { ...spec, external: { ...external, version } };
  return "it is not stored, and its upstream has only what it has now; name a stored revision, or leave revision out";
}

/** @param name - of a tag, as the history or a person writes it. */
function tagReference(name: string): GitReference {
  return name.startsWith("refs/") ? { name } : { tag: name };
}
