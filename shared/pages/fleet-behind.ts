/** Who runs what is old, and who does not answer: of every group, from what the fleet's overview says. */
import { isUnreadable } from "#shared/fleet/api/unreadable-object.ts";
import { type Listed, subjectLink } from "#shared/pages/fleet-subjects.ts";
import { targetsPlace } from "#shared/pages/places.ts";
import { age, type Child, count, type Host, type Html, html, nothing, table } from "#shared/pages/view.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const shown = 10;

/** Contents that clusters are on while a newer one is there, the oldest first. */
export function oldest(items: readonly Listed[], host: Host): Html {
  const behind = items.flatMap((item) => {
    if (isUnreadable(item)) return [];
    const [newest, ...older] = item.versions;
    return older.filter(({ clusters }) => clusters > 0).map((version) => ({ item, version, newest }));
  });
  if (behind.length === 0) return nothing("Nobody is behind: every cluster is on the newest content of its groups.");
  const sorted = behind.toSorted((a, b) => (a.version.at < b.version.at ? -1 : 1));
  const rows = sorted
    .slice(0, shown)
    .map(({ item, version, newest }): Child[] => [
      subjectLink(item, host),
      revisionText(version.revision),
      age(version.at, host),
      count(version.clusters),
      version.stages.join(", "),
      revisionText(newest?.revision),
    ]);
  const left = sorted.slice(shown);
  const clusters = left.reduce((sum, { version }) => sum + version.clusters, 0);
  return html`${table(
    "Oldest revisions",
    ["Group", "Runs", "Age", ["Clusters", "number"], ["Stages", "text"], "Newest"],
    rows,
  )}
${left.length === 0 ? "" : html`<p>And ${count(left.length)} more with ${counted(clusters)}: all of them are among the ${host.link({ path: "/versions" }, "versions")}.</p>`}`;
}

function counted(clusters: number): string {
  return `${count(clusters)} ${clusters === 1 ? "cluster" : "clusters"}`;
}

/** The most first. */
export function unreachable(items: readonly Listed[], host: Host): Html {
  const silent = items.flatMap((item) => {
    if (isUnreadable(item)) return [];
    const { clusters } = item.status;
    const { namespace = "" } = item.metadata;
    return clusters === undefined || clusters.unreachable === 0 ? [] : [{ item, clusters, namespace }];
  });
  if (silent.length === 0) return nothing("Every cluster answers.");
  const sorted = silent.toSorted((a, b) => b.clusters.unreachable - a.clusters.unreachable);
  const left = sorted.slice(shown);
  const others = left.reduce((sum, { clusters }) => sum + clusters.unreachable, 0);
  const rows = sorted
    .slice(0, shown)
    .map(({ item, clusters, namespace }): Child[] => [
      subjectLink(item, host),
      `${count(clusters.unreachable)}/${count(clusters.selected)}`,
      host.link(
        targetsPlace({ kind: item.kind, namespace, name: item.metadata.name }, { state: "Unreachable" }),
        "which",
      ),
      age(item.status.asOf, host),
    ]);
  return html`${table("Clusters that do not answer", ["Group", ["Unreachable", "number"], "Clusters", "Seen"], rows)}
${left.length === 0 ? "" : html`<p>And ${count(left.length)} more ${left.length === 1 ? "group" : "groups"} with ${counted(others)}: all of them are below, under Everything.</p>`}`;
}
