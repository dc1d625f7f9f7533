/** What a subject was brought to, content by content, each with the commits that are known of it. */
import { defined } from "#shared/base/defined.ts";
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";
import type { PinnedSource, PlannedTemplate, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { commitOf, forgeLinks } from "#shared/source/forge-links.ts";

/** A commit as `resolve` read it: texts are cut, and are somebody else's words. */
export interface CommitItem {
  readonly revision: string;
  readonly id?: string;
  readonly title: string;
  /** `Ana <ana@acme.io>` */
  readonly author: string;
  /** Absent of what was fetched before this was noted. */
  readonly committedAt?: string;
  /** At the forge, where its address says which it is. */
  readonly link?: string;
}

/** One artifact that a Source had, and since when. */
export interface RevisionItem extends CommitItem {
  readonly at: string;
  readonly digest: string;
}

export interface TemplateHistory {
  readonly name: string;
  readonly source: string;
  readonly revision: string;
  /** Absent where it is no longer known: revisions are kept for 30 days. */
  readonly commit?: CommitItem;
  /** What the content before had, where it was another. */
  readonly from?: string;
  /**
   * What the Source had in between, this one first, at most twenty: what was pushed and replaced between two looks is not
   * among them, and the forge has all.
   */
  readonly commits?: readonly CommitItem[];
  /** How many more of them there are. */
  readonly more?: number;
  /** At the forge: everything that is new with it. */
  readonly compare?: string;
  /** Other Sources that it has values from, and what the content before had of each, where that was another. */
  readonly besides?: readonly { readonly source: string; readonly revision: string; readonly from?: string }[];
}

export interface HistoryItem
  extends Pick<RolloutObject["spec"], "number" | "revision" | "trigger" | "fromRevision" | "skipped"> {
  /** When it was taken. */
  readonly at: string;
  readonly phase: RolloutObject["status"]["phase"];
  readonly endedAt?: string;
  /** Targets that came to it, and that failed, of how many. */
  readonly clusters: { readonly done: number; readonly failed: number; readonly size: number };
  readonly templates: readonly TemplateHistory[];
  /** What became of it on the cluster that was asked about; absent while it has not ended there, or never came. */
  readonly onCluster?: Pick<TargetRow, "state" | "reason" | "endedAt"> & { readonly stage: string };
}

/** An item, or the place of a rollout that only a newer version of Starling can read. */
export type ListedHistory = HistoryItem | UnreadableObject<"Rollout">;

const mostBetween = 20;

/** @param url - of the Source, where it is still there. */
export function commitItem(
  { revision, subject, author, committedAt }: Pick<Artifact, "revision" | "subject" | "author" | "committedAt">,
  url: string | undefined,
): CommitItem {
  const id = commitOf(revision);
  const link = id === undefined || url === undefined ? undefined : forgeLinks(url, id)?.commit;
  return { revision, title: subject, author, ...defined({ id, committedAt, link }) };
}

/** What is known of a Source: its address, and what it had, the newest first. */
export interface KnownSource {
  readonly url?: string;
  readonly revisions: readonly RevisionItem[];
}

/** @param before - the same template in the content before. */
export function templateHistory(
  { name, source, revision, besides }: PlannedTemplate,
  before: PlannedTemplate | undefined,
  known: KnownSource | undefined,
): TemplateHistory {
  const revisions = known?.revisions ?? [];
  const at = revisions.findIndex((item) => item.revision === revision);
  const commit = revisions[at];
  const from = before?.source === source && before.revision !== revision ? before.revision : undefined;
  const since = from === undefined ? -1 : revisions.findIndex((item, index) => index > at && item.revision === from);
  const between = at >= 0 && since > at ? revisions.slice(at, since) : [];
  const more = between.length > mostBetween ? between.length - mostBetween : undefined;
  return {
    name,
    source,
    revision,
    ...defined({
      commit: commit === undefined ? undefined : withoutRecord(commit),
      from,
      commits: between.length > 1 ? between.slice(0, mostBetween).map(withoutRecord) : undefined,
      more,
      compare: compareLink(known?.url, revision, from),
      besides: besides?.map((pin) => besideHistory(pin, before?.besides)),
    }),
  };
}

function besideHistory({ source, revision }: PinnedSource, before: readonly PinnedSource[] = []) {
  const had = before.find((one) => one.source === source)?.revision;
  return { source, revision, ...(had === undefined || had === revision ? {} : { from: had }) };
}

function withoutRecord({ at: _at, digest: _digest, ...commit }: RevisionItem): CommitItem {
  return commit;
}

function compareLink(url: string | undefined, revision: string, from: string | undefined): string | undefined {
  const [to, since] = [commitOf(revision), from === undefined ? undefined : commitOf(from)];
  return url === undefined || to === undefined || since === undefined ? undefined : forgeLinks(url, to, since)?.compare;
}
