/** Clusters that run old revisions or do not answer, for every group, from the fleet's overview. */
import { compareText } from "#shared/base/text-order.ts";
import { type BehindInFleet, behindIn, clustersIn, type OwnerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import { isUnreadable } from "#shared/fleet/api/unreadable-object.ts";
import { type Listed, ownerLink } from "#shared/pages/fleet-owners.ts";
import { targetsPlace } from "#shared/pages/places.ts";
import { age, type Child, count, type Host, type Html, html, nothing, table } from "#shared/pages/view.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const shown = 10;

/** The clusters of one group that are behind for one reason. */
interface BehindLine {
  readonly item: OwnerInFleet;
  readonly runs: string;
  readonly at?: string;
  /** The position of lines without an age. */
  readonly place: "first" | "by age" | "last";
  readonly clusters: number;
  readonly stages: string;
}

/**
 * Clusters that do not run the newest rollout: first those without any rollout, then the oldest rollouts, then those
 * that were not seen with it.
 */
export function oldest(items: readonly Listed[], host: Host): Html {
  const lines = items.flatMap((item) => (isUnreadable(item) ? [] : linesOf(item, behindIn(item))));
  if (lines.length === 0) {
    if (items.some((item) => isUnreadable(item) || item.status.state === undefined))
      return nothing("No cluster is known to be behind, but not every group was counted yet.");
    return nothing("No cluster is behind: every cluster runs the newest rollout of its groups.");
  }
  const by = Map.groupBy(lines, ({ place }) => place);
  const aged = (by.get("by age") ?? []).toSorted((a, b) => compareText(a.at ?? "", b.at ?? ""));
  const sorted = [...(by.get("first") ?? []), ...aged, ...(by.get("last") ?? [])];
  const rows = sorted
    .slice(0, shown)
    .map(({ item, runs, at, clusters, stages }): Child[] => [
      ownerLink(item, host),
      runs,
      age(at, host),
      count(clusters),
      stages,
      revisionText(item.versions[0]?.revision ?? item.status.revision),
    ]);
  const left = sorted.slice(shown);
  const clusters = left.reduce((sum, line) => sum + line.clusters, 0);
  return html`${table(
    "Oldest revisions",
    ["Group", "Runs", "Age", ["Clusters", "number"], ["Stages", "text"], "Newest"],
    rows,
  )}
${left.length === 0 ? "" : html`<p>And ${count(left.length)} more with ${counted(clusters)}; see all ${host.link({ path: "/versions" }, "versions")}.</p>`}`;
}

function linesOf(item: OwnerInFleet, { older, bare, unseen }: BehindInFleet): readonly BehindLine[] {
  return [
    ...(bare === 0 ? [] : [{ item, place: "first" as const, runs: "nothing yet", clusters: bare, stages: "" }]),
    ...older.map(({ revision, at, clusters, stages }) => {
      return { item, place: "by age" as const, runs: revisionText(revision), at, clusters, stages: stages.join(", ") };
    }),
    ...(unseen === 0 ? [] : [{ item, place: "last" as const, runs: "not seen with it", clusters: unseen, stages: "" }]),
  ];
}

function counted(clusters: number): string {
  return `${count(clusters)} ${clusters === 1 ? "cluster" : "clusters"}`;
}

/** Groups with unreachable clusters, the most first. */
export function unreachable(items: readonly Listed[], host: Host): Html {
  const silent = items.flatMap((item) => {
    if (isUnreadable(item)) return [];
    const clusters = clustersIn(item);
    const { namespace = "" } = item.metadata;
    return clusters.unreachable === 0 ? [] : [{ item, clusters, namespace }];
  });
  if (silent.length === 0) return nothing("Every cluster answers.");
  const sorted = silent.toSorted((a, b) => b.clusters.unreachable - a.clusters.unreachable);
  const left = sorted.slice(shown);
  const others = left.reduce((sum, { clusters }) => sum + clusters.unreachable, 0);
  const rows = sorted
    .slice(0, shown)
    .map(({ item, clusters, namespace }): Child[] => [
      ownerLink(item, host),
      `${count(clusters.unreachable)}/${count(clusters.selected)}`,
      host.link(
        targetsPlace({ kind: item.kind, namespace, name: item.metadata.name }, { state: "Unreachable" }),
        "show",
      ),
      age(item.status.asOf, host),
    ]);
  return html`${table("Clusters that do not answer", ["Group", ["Unreachable", "number"], "Clusters", "Seen"], rows)}
${left.length === 0 ? "" : html`<p>And ${count(left.length)} more ${left.length === 1 ? "group" : "groups"} with ${counted(others)}; see Everything below.</p>`}`;
}
