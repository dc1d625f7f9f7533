/** Problems that need a user's attention, the rollouts in progress, and all groups. */
import { clustersIn } from "#shared/fleet/api/fleet-overview.ts";
import type { SourceObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable } from "#shared/fleet/api/unreadable-object.ts";
import type { ClusterTallies } from "#shared/fleet/sync/tally.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { oldest, unreachable } from "#shared/pages/fleet-behind.ts";
import { cutText, type Listed, ownerLink, readFleetOwners } from "#shared/pages/fleet-owners.ts";
import { readPages } from "#shared/pages/read-pages.ts";
import {
  age,
  badge,
  bar,
  brief,
  type Child,
  count,
  type Host,
  type Html,
  html,
  nothing,
  type Share,
  table,
  type View,
} from "#shared/pages/view.ts";
import { readWindows, type WaitsForWindow, windowParts } from "#shared/pages/window-table.ts";
import { needsYou, objectState, ownerState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { needsSomebody, stateRank } from "#shared/words/state-words.ts";

/** Further Sources are not read, and the page says so. */
const mostSourcePages = 4;

export async function fleetPage(ask: Ask, host: Host): Promise<View> {
  const [seen, windows, sources] = await Promise.all([
    readFleetOwners(ask),
    readWindows(ask),
    readPages<SourceObject>(ask, { path: "/v1/sources", query: { limit: "500" }, mostPages: mostSourcePages }),
  ]);
  const items = worstFirst(seen.items);
  return {
    title: "Fleet",
    main: html`<h1>Fleet</h1>
${cutText(seen)}
${
  sources.isCut
    ? html`<p class="remark">This page shows the first ${count(sources.items.length)} Sources; see ${host.link({ path: "/sources" }, "all Sources")}.</p>`
    : ""
}
${totals(items)}
<h2>Needs attention</h2>
${needy(items, sources.items, host)}
<h2>Rollouts in progress</h2>
${underWay(items, host)}
${windowParts(windows, { waits: items.flatMap((item) => waitsOf(item, host)), host })}
<h2>Unreachable</h2>
${unreachable(items, host)}
<h2>Oldest revisions</h2>
${oldest(items, host)}
<h2>Everything</h2>
${everything(items, host)}`,
  };
}

function waitsOf(item: Listed, host: Host): readonly WaitsForWindow[] {
  const waits = isUnreadable(item) ? [] : (item.windowWaits ?? []);
  return waits.map(({ window, clusters }) => ({ window, clusters, who: ownerLink(item, host) }));
}

function worstFirst(items: readonly Listed[]): readonly Listed[] {
  const name = (item: Listed) => `${item.metadata.namespace}/${item.metadata.name}`;
  return items.toSorted(
    (a, b) =>
      stateRank(ownerState(a).word) - stateRank(ownerState(b).word) ||
      name(a).localeCompare(name(b), "en", { numeric: true }),
  );
}

function countsOf(item: Listed): ClusterTallies | undefined {
  return isUnreadable(item) ? undefined : clustersIn(item);
}

/** The states of its clusters, which together are all selected clusters. */
function sharesOf(counts: ClusterTallies): readonly Share[] {
  const { ready, failed, unreachable, changing, waiting, drifted = 0 } = counts;
  return [
    { tone: "good", name: "ready", count: ready },
    { tone: "bad", name: "failed", count: failed },
    { tone: "bad", name: "unreachable", count: unreachable },
    ...(drifted === 0 ? [] : [{ tone: "busy" as const, name: "with drift", count: drifted }]),
    { tone: "busy", name: "changing", count: changing },
    { tone: "rest", name: "waiting", count: waiting },
  ];
}

function totals(items: readonly Listed[]): Html {
  const counts = items.map((item) => countsOf(item)).filter((each) => each !== undefined);
  const sum = (name: keyof ClusterTallies) => counts.reduce((total, each) => total + (each[name] ?? 0), 0);
  const selected = sum("selected");
  const shares = sharesOf({
    selected,
    ready: sum("ready"),
    drifted: sum("drifted"),
    failed: sum("failed"),
    unreachable: sum("unreachable"),
    changing: sum("changing"),
    waiting: sum("waiting"),
  });
  const words = shares.map(
    ({ tone, name, count: many }) => html`<li class="${tone}"><b>${count(many)}</b> ${name}</li>`,
  );
  return html`<section class="totals" aria-label="Targets, each a cluster of a group"><p><b>${count(items.length)}</b> ${items.length === 1 ? "group" : "groups"}, <b>${count(selected)}</b> ${selected === 1 ? "target" : "targets"}</p>${bar(shares)}<ul>${words}</ul></section>`;
}

function needy(items: readonly Listed[], sources: readonly SourceObject[], host: Host): Html {
  const rows: Child[][] = [];
  for (const item of items) {
    const { word, since, remark } = ownerState(item);
    // A group that is rolling out or suspended can also have unhealthy clusters.
    const isNeedy = needsYou(word, isUnreadable(item) ? undefined : item.status);
    const unhealthy = isNeedy ? "" : unhealthyText(countsOf(item));
    if (!isNeedy && unhealthy === "") continue;
    const why = [unhealthy, remark].filter((text) => text !== "").join("; ");
    rows.push([badge(word), ownerLink(item, host), age(since, host), brief(why)]);
  }
  for (const source of sources) {
    const { word, since, remark } = objectState(source);
    if (!needsSomebody(word)) continue;
    const { namespace, name } = source.metadata;
    rows.push([
      badge(word),
      host.link({ path: "/sources" }, `source ${namespace}/${name}`),
      age(since, host),
      brief(remark),
    ]);
  }
  if (rows.length === 0)
    return nothing("Nothing has failed, halted, stalled or become unreachable, and nothing waits for people.");
  return table("Needs attention", ["State", "What", "For", ["Why", "text"]], rows);
}

function unhealthyText(counts: ClusterTallies | undefined): string {
  const { failed = 0, unreachable: away = 0 } = counts ?? {};
  return [
    ...(failed === 0 ? [] : [`${count(failed)} failed`]),
    ...(away === 0 ? [] : [`${count(away)} unreachable`]),
  ].join(", ");
}

function underWay(items: readonly Listed[], host: Host): Html {
  const rows = items.flatMap((item): Child[][] => {
    if (isUnreadable(item)) return [];
    const updatingTo = (item.status.stages ?? []).filter((stage) => stage.updatingTo !== undefined);
    if (updatingTo.length === 0) return [];
    const [newest] = item.versions;
    const words = (item.status.stages ?? []).map(
      ({ name, current, updatingTo: to }) =>
        html`<li>${name} ${to === undefined ? html`<span class="on">${current === undefined ? "no rollout" : `${current}`}</span>` : html`<b class="to">${current ?? "-"} → ${to}</b>`}</li>`,
    );
    return [
      [
        ownerLink(item, host),
        revisionText(newest?.revision),
        age(newest?.at, host),
        html`<ul class="stages">${words}</ul>`,
      ],
    ];
  });
  if (rows.length === 0) return nothing("No rollouts are in progress.");
  return table("Rollouts in progress", ["Group", "Newest", "Age", ["Stages", "text"]], rows);
}

function everything(items: readonly Listed[], host: Host): Html {
  if (items.length === 0) return nothing("There is no SyncGroup yet; `starling init` writes the first one.");
  const rows = items.map((item): Child[] => {
    const { word, since, seenAt } = ownerState(item);
    const counts = countsOf(item);
    const versions = isUnreadable(item) ? [] : item.versions;
    return [
      badge(word),
      ownerLink(item, host),
      revisionText(isUnreadable(item) ? undefined : item.status.revision),
      versions.length > 1 ? `${versions.length} versions` : "",
      counts === undefined ? "" : bar(sharesOf(counts)),
      counts === undefined ? "-" : `${count(counts.ready)}/${count(counts.selected)}`,
      counts === undefined ? "-" : count(counts.failed),
      counts === undefined ? "-" : count(counts.unreachable),
      age(since, host),
      age(seenAt, host),
    ];
  });
  return table(
    "SyncGroups and Syncs, the worst first",
    [
      "State",
      "Group",
      "Revision",
      "Behind",
      "Clusters",
      ["Ready", "number"],
      ["Failed", "number"],
      ["Unreachable", "number"],
      "For",
      "Seen",
    ],
    rows,
  );
}
