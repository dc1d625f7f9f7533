/** The clusters of a rollout: one line for each, the worst first, or the reasons if there are many. */

import { formatTable } from "#cli/format/table.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { TargetItem } from "#shared/fleet/api/objects.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import { formatAge } from "#shared/words/age.ts";
import { causesOf, isQuiet, worstTargetsFirst, zonesAmong } from "#shared/words/causes.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { shorten } from "#shared/words/shorten.ts";

/** Above this many clusters, counts and reasons replace the lines of clusters. */
export const manyClusters = 40;
/** Width of a reason in a terminal, because it is not the last column. */
const reasonWidth = 80;
const causesShown = 8;
const worstShown = 3;
const namesPerLine = 8;

export interface TargetLines {
  /** All targets if there are few clusters, otherwise those with problems. */
  readonly targets: readonly TargetItem[];
  /** One line for each of `targets`, whatever their number. */
  readonly lines: "all" | "some";
  /** Width of the terminal. Absent: nothing is cut. */
  readonly columns?: number | undefined;
  readonly now: Date;
}

/** One line for every cluster with a remark, and for every zone that is down; the others share a line for each state. */
export function targetsText({ targets, lines, columns: width, now }: TargetLines): string {
  const collapse = lines === "some";
  const { zones, others } = collapse ? zonesAmong(targets) : { zones: [], others: targets };
  const sorted = worstTargetsFirst(others);
  const ofZones = zones.map(({ word, detail, targets: those }) => [
    `${those.length} of zone ${those[0]?.zone?.name}`,
    [...new Set(those.map(({ stage }) => stage))].join(","),
    "Unreachable",
    formatAge(those[0]?.zone?.since, now),
    "",
    `${word}: ${detail}`,
  ]);
  const ofClusters = sorted
    .filter((target) => !(collapse && isQuiet(target)))
    .map((target) => [
      target.cluster,
      target.stage,
      target.state,
      formatAge(target.endedAt ?? target.assignedAt, now),
      revisionText(target.revision),
      `${target.reason}${target.preexisting === true ? " (not ready before the rollout)" : ""}`,
    ]);
  const rows = [...ofZones, ...ofClusters];
  let text = "";
  if (rows.length > 0) {
    const columns = ["CLUSTER", "STAGE", "STATE", "FOR", "REVISION", "REASON"];
    text += formatTable({ columns, rows }, { headers: "show", indent: "  ", columns: width });
  }
  if (!collapse) return text;
  const quiet = Map.groupBy(sorted.filter(isQuiet), (target) => `${target.state}, ${target.stage}`);
  for (const [state, group] of quiet) {
    const names = group.slice(0, namesPerLine).map((target) => target.cluster);
    const rest = group.length > namesPerLine ? ` +${group.length - namesPerLine}` : "";
    text += `  ${state} (${group.length}): ${plainLine(names.join(" "))}${rest}\n`;
  }
  return text;
}

export interface AllTargets {
  /** Number of clusters. */
  readonly size: number;
  /** The command that shows those with problems. */
  readonly command: string;
}

/** The causes of targets with problems, the most common first. */
export function reasonsText({ targets, columns }: Pick<TargetLines, "targets" | "columns">, of: AllTargets): string {
  if (targets.length === 0) return "";
  const causes = causesOf(targets);
  const rows = causes
    .slice(0, causesShown)
    .map(({ word, detail, targets: those }) => [
      word,
      columns === undefined ? detail : shorten(detail, reasonWidth),
      those.length.toLocaleString("en"),
    ]);
  const others = causes.slice(causesShown).reduce((sum, { targets: those }) => sum + those.length, 0);
  if (others > 0) rows.push(["other", "(--state failed --all)", others.toLocaleString("en")]);
  const title = `PROBLEMS (${targets.length.toLocaleString("en")} of ${of.size.toLocaleString("en")})`;
  const table = formatTable({ columns: [title, "", "CLUSTERS"], rows }, { headers: "show", indent: "  ", columns });
  const worst = worstTargetsFirst(targets);
  const names = worst.slice(0, worstShown).map((target) => target.cluster);
  const more = worst.length > worstShown ? ` +${worst.length - worstShown}` : "";
  return `${table}  worst: ${plainLine(names.join(" "))}${more}     ${of.command}\n`;
}

/** The command that shows the reason. A cluster without an assignment has no Sync, so that the command describes the group. */
export function describeCommand(owner: Owner, { sync, cluster }: TargetItem): string {
  const where = `-n ${owner.namespace}`;
  if (owner.kind === "Sync") return `starling describe sync/${owner.name} ${where}`;
  if (sync === undefined) return `starling describe syncgroup/${owner.name} ${where}`;
  return `starling describe sync/${sync} --cluster ${cluster} ${where}`;
}
