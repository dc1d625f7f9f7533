/** The filter of a Source's `ref`, by which only some tags count before the range is applied. */
import { parseLinearRegex } from "#shared/source/linear-regex.ts";

/** Names of tags that a message shows. */
const shownTags = 5;

interface Filtering<Tag> {
  readonly tagFilter: string | undefined;
  nameOf(tag: Tag): string;
}

export interface FilteredTags<Tag> {
  readonly tags: readonly Tag[];
  /** For messages: `among 12 tags`. */
  readonly among: string;
  /** Ends a message that no tag is in the range. */
  readonly remedy: string;
}

export function filterTags<Tag>(seen: readonly Tag[], { tagFilter, nameOf }: Filtering<Tag>): FilteredTags<Tag> {
  if (tagFilter === undefined) return { tags: seen, among: `among ${seen.length} tags`, remedy: "" };
  const regex = parseLinearRegex(tagFilter);
  if (typeof regex === "string") throw new Error(`a Source with a tagFilter that ${regex} passed its checks`);
  const tags = seen.filter((tag) => regex(nameOf(tag)));
  const shown = (tags.length === 0 ? seen : tags).slice(-shownTags).map(nameOf);
  const examples = shown.length === 0 ? "" : ` (${shown.join(", ")})`;
  const among =
    tags.length === 0
      ? `because tagFilter ${tagFilter} matches none of ${seen.length} tags${examples}`
      : `among the ${tags.length} of ${seen.length} tags that tagFilter ${tagFilter} matches${examples}`;
  return { tags, among, remedy: ", or correct tagFilter" };
}
