/** Rollouts with their commits, the newest first. */
import { digestText } from "#cli/format/get-table.ts";
import type { TextTable } from "#cli/format/table.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { CommitItem, HistoryItem, RevisionItem, TemplateHistory } from "#shared/fleet/api/history-item.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { commitOf } from "#shared/source/forge-links.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";
import { reasonText } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { triggerText } from "#shared/words/trigger-text.ts";

/** At most this many commits between two rollouts are shown below a template. */
const shownBetween = 5;

interface HistoryView {
  /** Name of the owner, or of a group's Sync. */
  readonly name: string;
  readonly now: Date;
  readonly links: "shown" | "hidden";
}

export function formatHistory(
  items: readonly (HistoryItem | UnreadableObject<"Rollout">)[],
  view: HistoryView,
): string {
  return items
    .map((item) => ("status" in item ? `${item.metadata.name}   Unreadable\n` : rolloutLine(item, view)))
    .join("");
}

function rolloutLine(item: HistoryItem, view: HistoryView): string {
  const { number, at, phase, clusters, skipped, onCluster } = item;
  const failed = clusters.failed === 0 ? "" : `, ${clusters.failed} failed`;
  const there =
    onCluster === undefined
      ? ""
      : `   on this cluster: ${reasonText(onCluster.state, onCluster.reason)} in ${onCluster.stage}, ${formatTime(onCluster.endedAt, view.now)}`;
  const passed = skipped === undefined ? "" : `   ${skipped.count} skipped before it`;
  const head = `${view.name}-${number}   ${phase}   ${clusters.done}/${clusters.size} clusters${failed}   ${formatTime(at, view.now)}, ${formatAge(at, view.now)} ago   trigger: ${triggerText(item)}${passed}${there}`;
  return `${plainLine(head)}\n${item.templates.map((template) => templateText(template, view)).join("")}`;
}

function templateText(
  { name, revision, commit, commits = [], more = 0, compare, besides = [] }: TemplateHistory,
  view: HistoryView,
): string {
  const unknown =
    commitOf(revision) === undefined ? "(its title is no longer known)" : "(its commit is no longer known)";
  const lines = [`  ${name}   ${revisionText(revision)}   ${commit === undefined ? unknown : commitText(commit)}`];
  const links = view.links === "shown" ? [commit?.link, compare] : [];
  for (const link of links) if (link !== undefined) lines.push(`      ${link}`);
  const between = commits.slice(1);
  for (const one of between.slice(0, shownBetween)) lines.push(`    + ${shortId(one)}   ${commitText(one)}`);
  const left = Math.max(0, between.length - shownBetween) + more;
  if (left > 0) lines.push(`    + ${left} more`);
  for (const { source, revision: at, from } of besides) {
    const was = from === undefined ? "" : `, before ${revisionText(from)}`;
    lines.push(`    values of source/${source}   ${revisionText(at)}${was}`);
  }
  return lines.map((line) => `${plainLine(line)}\n`).join("");
}

function commitText({ title, author }: CommitItem): string {
  return author === "" ? `"${title}"` : `"${title}" (${author})`;
}

function shortId({ id, revision }: CommitItem): string {
  return id === undefined ? revisionText(revision) : id.slice(0, 7);
}

export function revisionsTable(items: readonly RevisionItem[], now: Date, output: string | undefined): TextTable {
  const wide = output === "wide";
  const content = items.every(({ revision }) => commitOf(revision) === undefined) ? "CONTENT" : "COMMIT";
  return {
    columns: ["REVISION", "SINCE", "AGE", "AUTHOR", ...(wide ? ["DIGEST", "LINK"] : []), content],
    rows: items.map((item) => [
      wide ? item.revision : revisionText(item.revision),
      formatTime(item.at, now),
      formatAge(item.at, now),
      item.author === "" ? "-" : item.author,
      ...(wide ? [digestText(item.digest), item.link ?? "-"] : []),
      item.title,
    ]),
  };
}
