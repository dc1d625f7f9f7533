/** The list of clusters, and the page of one cluster with its Syncs. */
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { ApiList, ClusterObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { valueText } from "#shared/fleet/kinds/values.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { ownerSearch } from "#shared/pages/owner-page.ts";
import { clusterPlace, ownerPagePlace, syncPlace } from "#shared/pages/places.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  fields,
  type Host,
  type Html,
  html,
  nothing,
  table,
  type View,
} from "#shared/pages/view.ts";
import { type ListedWindow, readWindows, windowParts } from "#shared/pages/window-table.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { stateRank } from "#shared/words/state-words.ts";

const clustersShown = "100";
const syncsShown = "200";

export async function clustersPage(ask: Ask, query: Readonly<Record<string, string>>, host: Host): Promise<View> {
  const list = await ask<ApiList<ClusterObject | UnreadableObject<"Cluster">>>("/v1/clusters", {
    limit: clustersShown,
    continue: query.continue,
    labelSelector: query.labelSelector === "" ? undefined : query.labelSelector,
  });
  const rows = list.items
    .map((cluster) => ({ cluster, state: objectState(cluster) }))
    .sort((a, b) => stateRank(a.state.word) - stateRank(b.state.word))
    .map(({ cluster, state }): Child[] => {
      const seen = isUnreadable(cluster) ? undefined : cluster.status;
      return [
        badge(state.word),
        host.link(clusterPlace(cluster.metadata.name), cluster.metadata.name),
        seen?.version ?? "-",
        seen?.syncs === undefined ? "-" : `${seen.syncs.ready}/${seen.syncs.total}`,
        age(state.since, host),
        age(state.seenAt, host),
        isUnreadable(cluster) ? "" : labels(cluster),
        brief(state.remark),
      ];
    });
  const columns: readonly Column[] = [
    "State",
    "Cluster",
    "Version",
    ["Ready", "number"],
    "For",
    "Seen",
    ["Labels", "text"],
    ["Remark", "text"],
  ];
  return {
    title: "Clusters",
    main: html`<h1>Clusters</h1>
${host.search({ place: { path: "/clusters" }, name: "labelSelector", label: "Labels", value: query.labelSelector ?? "", example: "env=prod,tier in (gold,std)" })}
${rows.length === 0 ? nothing("No registered cluster has these labels.") : table("Clusters of this page, the worst first", columns, rows)}
${nextPage({ path: "/clusters", query }, list.metadata.continue, host)}`,
  };
}

export async function clusterPage(
  ask: Ask,
  { name, query }: { readonly name: string; readonly query: Readonly<Record<string, string>> },
  host: Host,
): Promise<View> {
  const path = `/v1/clusters/${percentEncode(name)}`;
  const [cluster, windows, syncs] = await Promise.all([
    ask<ClusterObject | UnreadableObject<"Cluster">>(path),
    readWindows(ask),
    ask<ApiList<SyncObject | UnreadableObject<"Sync">>>(`${path}/syncs`, {
      limit: syncsShown,
      continue: query.continue,
    }),
  ]);
  const state = objectState(cluster);
  return {
    title: name,
    main: html`<h1>${name} ${badge(state.word)}</h1>
${state.remark === "" ? "" : html`<p class="remark">${state.remark}</p>`}
${isUnreadable(cluster) ? "" : facts(cluster, host)}
${isUnreadable(cluster) ? "" : windowParts(windowsOver(windows, cluster), { host })}
<h2>Syncs</h2>
${ownerSearch(name, "", host)}
${syncTable(syncs.items, host)}
${nextPage({ path: `/clusters/${name}`, query }, syncs.metadata.continue, host)}`,
  };
}

function windowsOver(windows: readonly ListedWindow[], { metadata, status }: ClusterObject): readonly ListedWindow[] {
  const seen = { name: metadata.name, labels: status.labels ?? metadata.labels ?? {} };
  return windows.filter((window) => isUnreadable(window) || selects(window.spec.clusters ?? { all: true }, seen));
}

function facts(cluster: ClusterObject, host: Host): Html {
  const { spec, status, metadata } = cluster;
  const values = Object.entries(status.values ?? {}).map(
    ([key, { value, from }]) =>
      html`<li><code>${key}</code> ${valueText(value)} <small>${from.kind} ${from.name}</small></li>`,
  );
  return fields([
    ["Server", spec.eks?.arn ?? spec.endpoint?.server ?? status.discovered?.arn],
    ["Reached at", spec.eks?.endpointOverride?.server],
    ["Kubernetes", status.version],
    ["Seen", age(status.lastSeenAt, host)],
    ["Registered", age(metadata.creationTimestamp, host)],
    ["Labels", labels(cluster)],
    ["Values", values.length === 0 ? undefined : html`<ul>${values}</ul>`],
  ]);
}

function labels({ metadata, status }: ClusterObject): Html {
  const shown = Object.entries(status.labels ?? metadata.labels ?? {});
  return html`<span class="labels">${shown.map(([key, value]) => html`<code>${key}=${value}</code> `)}</span>`;
}

function syncTable(syncs: readonly (SyncObject | UnreadableObject<"Sync">)[], host: Host): Html {
  if (syncs.length === 0) return nothing("No Sync is assigned to this cluster.");
  const rows = syncs
    .map((sync) => ({ sync, state: objectState(sync) }))
    .sort((a, b) => stateRank(a.state.word) - stateRank(b.state.word))
    .map(({ sync, state }): Child[] => {
      const { namespace = "", name } = sync.metadata;
      const cluster = sync.spec.cluster ?? "";
      const group = isUnreadable(sync) ? undefined : sync.status.group;
      return [
        badge(state.word),
        host.link(syncPlace({ cluster, namespace, name }), `${namespace}/${name}`),
        group === undefined ? "" : host.link(ownerPagePlace({ kind: "SyncGroup", namespace, name: group }), group),
        isUnreadable(sync) ? "-" : revisionText(sync.status.observed?.applied?.revision),
        isUnreadable(sync) || sync.status.observed === undefined
          ? "-"
          : `${sync.status.observed.objects.ready}/${sync.status.observed.objects.total}`,
        age(state.since, host),
        age(state.seenAt, host),
        brief(state.remark),
      ];
    });
  const columns: readonly Column[] = ["State", "Sync", "Group", "Runs", "Objects", "For", "Seen", ["Remark", "text"]];
  return table("Syncs of the cluster, the worst first", columns, rows);
}
