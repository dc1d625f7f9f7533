/** The revisions that clusters run, and the clusters that are behind. */
import { behindIn } from "#shared/fleet/api/fleet-overview.ts";
import { isUnreadable } from "#shared/fleet/api/unreadable-object.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { cutText, ownerLink, readFleetOwners } from "#shared/pages/fleet-owners.ts";
import { age, badge, bar, type Child, count, type Host, html, nothing, table, type View } from "#shared/pages/view.ts";
import { ownerState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

export async function versionsPage(ask: Ask, host: Host): Promise<View> {
  const seen = await readFleetOwners(ask);
  const sections = seen.items.map((item) => {
    const heading = html`<h2>${ownerLink(item, host)} ${badge(ownerState(item).word)}</h2>`;
    if (isUnreadable(item)) return html`${heading}${nothing(ownerState(item).remark)}`;
    const [newest] = item.versions;
    const unseen = Math.min(newest?.clusters ?? 0, behindIn(item).unseen);
    const rows: Child[][] = item.versions.map(({ number, revision, at, clusters, stages }) => [
      `${number}`,
      revisionText(revision),
      age(at, host),
      count(clusters),
      stages.join(", "),
      number !== newest?.number
        ? html`<span class="state busy">behind</span>`
        : unseen === 0
          ? ""
          : `${count(unseen)} not seen with it yet`,
    ]);
    if (item.bare > 0)
      rows.push(["-", "nothing yet", "", count(item.bare), "", html`<span class="state busy">waiting</span>`]);
    if (rows.length === 0) return html`${heading}${nothing("There was no rollout yet.")}`;
    const shares = item.versions.map(({ number, clusters }) => ({
      tone: number === newest?.number ? ("good" as const) : ("busy" as const),
      name: `run ${number}`,
      count: number === newest?.number ? clusters - unseen : clusters,
    }));
    return html`${heading}${bar([...shares, { tone: "rest", name: "not seen with the newest rollout", count: unseen }, { tone: "rest", name: "without a rollout", count: item.bare }])}${table(
      `Versions of ${item.metadata.name}`,
      ["Rollout", "Revision", "Age", ["Clusters", "number"], ["Stages", "text"], ["Remark", "text"]],
      rows,
    )}`;
  });
  return {
    title: "Versions",
    main: html`<h1>Versions</h1>
${cutText(seen)}
<p>The versions that each group's clusters run, according to the stages that have passed. Unhealthy clusters are listed as the
group's problems.</p>
${sections.length === 0 ? nothing("There is no SyncGroup yet.") : sections}`,
  };
}
