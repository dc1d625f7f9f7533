/** The history of an owner, rollout by rollout, each with its known commits. */
import { defined } from "#shared/base/defined.ts";
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Artifact } from "#shared/fleet/rows/object-rows.ts";
import type { PinnedSource, PlannedTemplate, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { commitOf, forgeLinks } from "#shared/source/forge-links.ts";

/** A commit as `resolve` read it. Its texts are cut, and come from outside. */
export interface CommitItem {
  readonly revision: string;
  readonly id?: string;
  readonly title: string;
  /** `Ana <ana@acme.io>` */
  readonly author: string;
  /** Absent in artifacts that were fetched before this was recorded. */
  readonly committedAt?: string;
  /** Link to the git host, when the repository's URL tells which one it is. */
  readonly link?: string;
}

/** One artifact of a Source, with the time since which the Source had it. */
export interface RevisionItem extends CommitItem {
  readonly at: string;
  readonly digest: string;
  /** What was verified; absent when the Source demanded no signature. */
  readonly verified?: Artifact["verified"];
}

export interface TemplateHistory {
  readonly name: string;
  readonly source: string;
  readonly revision: string;
  /** Absent when it is no longer known: revisions are kept for 30 days. */
  readonly commit?: CommitItem;
  /** The revision of the rollout before, when it differs. */
  readonly from?: string;
  /**
   * Revisions that the Source had in between, this one first, at most twenty. A revision that was replaced between two
   * polls is missing; the git host has all.
   */
  readonly commits?: readonly CommitItem[];
  /** Number of further revisions. */
  readonly more?: number;
  /** Link to all changes at the git host. */
  readonly compare?: string;
  /** Other Sources with its values, each with the revision of the rollout before, when it differs. */
  readonly besides?: readonly { readonly source: string; readonly revision: string; readonly from?: string }[];
}

export interface HistoryItem
  extends Pick<
    RolloutObject["spec"],
    "number" | "revision" | "trigger" | "fromRevision" | "skipped" | "rollback" | "asked"
  > {
  /** When a stage took it. */
  readonly at: string;
  readonly phase: RolloutObject["status"]["phase"];
  readonly endedAt?: string;
  /** Number of targets that reached it, that failed, and in total. */
  readonly clusters: { readonly done: number; readonly failed: number; readonly size: number };
  readonly templates: readonly TemplateHistory[];
  /** Its result on the requested cluster; absent while it has not ended there, or never reached it. */
  readonly onCluster?: Pick<TargetRow, "state" | "reason" | "endedAt"> & { readonly stage: string };
}

/** An item, or the place of a rollout that only a newer version of Starling can read. */
export type ListedHistory = HistoryItem | UnreadableObject<"Rollout">;

const mostBetween = 20;

/** @param url - URL of the Source, when the Source still exists. */
export function commitItem(
  { revision, subject, author, committedAt }: Pick<Artifact, "revision" | "subject" | "author" | "committedAt">,
  url: string | undefined,
): CommitItem {
  const id = commitOf(revision);
  const link = id === undefined || url === undefined ? undefined : forgeLinks(url, id)?.commit;
  return { revision, title: subject, author, ...defined({ id, committedAt, link }) };
}

/** The known facts about a Source: its URL, and its artifacts, the newest first. */
export interface KnownSource {
  readonly url?: string;
  readonly revisions: readonly RevisionItem[];
}

/** @param before - the same template in the rollout before. */
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

function withoutRecord({ at: _at, digest: _digest, verified: _verified, ...commit }: RevisionItem): CommitItem {
  return commit;
}

function compareLink(url: string | undefined, revision: string, from: string | undefined): string | undefined {
  const [to, since] = [commitOf(revision), from === undefined ? undefined : commitOf(from)];
  return url === undefined || to === undefined || since === undefined ? undefined : forgeLinks(url, to, since)?.compare;
}
