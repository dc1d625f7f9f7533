/** Whether a tag or version that a Source follows has moved: it was at one digest, and is at another now. */
import { addressOf, followsTags, type SourceSpec, upstreamOf } from "#shared/fleet/kinds/source.ts";
import type { FollowedTags, SourceRow } from "#shared/fleet/rows/object-rows.ts";

/** Revisions that a Source with `immutableTags` remembers. The row of the Source has them. */
const remembered = 50;

interface Tag {
  readonly name: string;
  /** `sha1:<commit>`, `sha256:<digest>`, or `noDigest` */
  readonly id: string;
}

/** A repository of charts may leave the digests out of its index, also later: that must not hide another content. */
const noDigest = "no digest";

/** A tag that is elsewhere than before. */
export interface MovedTag extends Tag {
  readonly before: string;
}

/** @returns undefined for a branch, a commit or a digest. */
function tagIn(spec: SourceSpec, revision: string): Tag | undefined {
  const at = revision.lastIndexOf("@");
  if (at <= 0 && spec.helm !== undefined) return { name: revision, id: noDigest };
  if (at <= 0 || !followsTags(upstreamOf(spec))) return undefined;
  return { name: revision.slice(0, at), id: revision.slice(at + 1) };
}

type Following = Pick<SourceRow, "spec" | "status">;

/** The tag of a revision, if the Source had it at another digest. */
export function movedTag({ spec, status }: Following, revision: string): MovedTag | undefined {
  const tag = tagIn(spec, revision);
  if (tag === undefined) return undefined;
  const before = seenAt(spec, status.followedTags)
    .map((each) => tagIn(spec, each))
    .find((each) => each?.name === tag.name)?.id;
  return before === undefined || before === noDigest || before === tag.id ? undefined : { ...tag, before };
}

/** The tags that a Source remembers after it followed a revision: only the newest one, unless its tags are immutable. */
export function tagsAfter({ spec, status }: Following, revision: string): FollowedTags | undefined {
  const tag = tagIn(spec, revision);
  if (tag === undefined) return undefined;
  const others = seenAt(spec, status.followedTags).filter((each) => tagIn(spec, each)?.name !== tag.name);
  const seen = spec.immutableTags === true ? [revision, ...others].slice(0, remembered) : [revision];
  return { of: addressOf(spec), seen };
}

/** Tags of another repository are other tags. */
function seenAt(spec: SourceSpec, tags: FollowedTags | undefined): readonly string[] {
  return tags?.of === addressOf(spec) ? tags.seen : [];
}

/** @param moved - a tag of a Source with `immutableTags`. */
export function movedMessage(spec: SourceSpec, { name, id, before }: MovedTag): string {
  const what = spec.helm === undefined ? "tag" : "version";
  return (
    `the ${what} ${name} of ${addressOf(spec)} was at ${before} and is at ${id} now, and spec.immutableTags refuses that; ` +
    `the Source keeps what it has. Publish the new content under a new ${what}. If the move is right, set ` +
    "spec.immutableTags to false until the Source has followed it"
  );
}
