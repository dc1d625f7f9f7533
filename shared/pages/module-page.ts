/**
 * One path of one Source, wherever it is rolled out: the groups that use it, their revisions, and the clusters that are
 * behind.
 */
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { SourceObject, SyncGroupObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
import { staleSince } from "#shared/fleet/sources/stale-source.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { cutText, type Listed, ownerLink, readFleetOwners } from "#shared/pages/fleet-owners.ts";
import { apiPath, modulePlace } from "#shared/pages/places.ts";
import { readPages } from "#shared/pages/read-pages.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  count,
  fields,
  type Host,
  type Html,
  html,
  nothing,
  table,
  type View,
} from "#shared/pages/view.ts";
import { objectState, ownerState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

/** Pages of groups, with a hundred groups each. */
const mostPages = 5;
/** Users' Syncs. Each needs a request, because the fleet's overview does not say which Source it uses. */
const mostSyncs = 20;

export interface Module {
  readonly namespace: string;
  readonly source: string;
  /** Absent: every path of the Source. */
  readonly path?: string | undefined;
}

/** A user of the path: a template of a group, or a Sync. */
interface Taker {
  readonly item: Listed;
  readonly template: string;
  readonly path: string;
}

type Written = SyncGroupObject | SyncObject | UnreadableObject;

export async function modulePage(ask: Ask, { namespace, source, path }: Module, host: Host): Promise<View> {
  const base = `/v1/namespaces/${percentEncode(namespace)}`;
  const [object, fleet, groups] = await Promise.all([
    ask<SourceObject | UnreadableObject<"Source">>(`${base}/sources/${percentEncode(source)}`),
    readFleetOwners(ask, namespace),
    readPages<Written>(ask, { path: `${base}/syncgroups`, query: { limit: "100" }, mostPages }),
  ]);
  const written = fleet.items.filter(({ kind }) => kind === "Sync");
  const own = written.slice(0, mostSyncs);
  const syncs = await Promise.all(
    own.map(({ metadata }) => ask<Written>(apiPath({ kind: "Sync", namespace, name: metadata.name }))),
  );
  const takers = takersOf(fleet.items, [...groups.items, ...syncs], { namespace, source, path });
  const what = path === undefined ? "" : `, path ${path}`;
  return {
    title: `${namespace}/${source}${what}`,
    main: html`<h1>${namespace}/${source}${what} ${badge(objectState(object).word)}</h1>
${isUnreadable(object) ? "" : facts(object, host)}
<h2>Used by</h2>
${cutText(fleet)}
${groups.isCut ? html`<p class="remark">This page shows the first ${count(groups.items.length)} SyncGroups; there are more.</p>` : ""}
${written.length > own.length ? html`<p class="remark">This page shows the first ${count(own.length)} of ${count(written.length)} Syncs that users wrote.</p>` : ""}
${takers.length === 0 ? nothing("No group and no Sync uses it.") : versions(takers, { namespace, source, host })}`,
  };
}

function facts(source: SourceObject, host: Host): Html {
  const { spec, status } = source;
  const { artifact } = status;
  const stale = staleSince(source, host.now);
  return fields([
    ["From", brief(addressOf(spec))],
    [
      "Newest",
      artifact === undefined
        ? undefined
        : html`${revisionText(artifact.revision)}, ${age(artifact.storedAt, host)} ago`,
    ],
    [
      spec.git === undefined ? "Content" : "Commit",
      artifact === undefined
        ? undefined
        : html`${brief(artifact.subject)} <small>${brief(artifact.author, 60)}</small>`,
    ],
    ["Seen", age(status.attemptedAt, host)],
    ["Stale since", stale === undefined ? undefined : html`${age(stale, host)} ago`],
  ]);
}

function takersOf(fleet: readonly Listed[], written: readonly Written[], { source, path }: Module): readonly Taker[] {
  const listed = new Map(fleet.map((item) => [`${item.kind}/${item.metadata.name}`, item]));
  return written.flatMap((object): readonly Taker[] => {
    if (isUnreadable(object)) return [];
    const item = listed.get(`${object.kind}/${object.metadata.name}`);
    if (item === undefined) return [];
    const templates =
      object.kind === "SyncGroup" ? object.spec.templates : [{ ...object.spec, name: object.metadata.name }];
    return templates
      .filter((template) => template.source === source && (path === undefined || template.path === path))
      .map((template) => ({ item, template: template.name, path: template.path }));
  });
}

function versions(
  takers: readonly Taker[],
  { namespace, source, host }: Pick<Module, "namespace" | "source"> & { readonly host: Host },
): Html {
  const rows = takers.flatMap(({ item, template, path }): Child[][] => {
    const place = modulePlace({ namespace, source, path });
    const head: Child[] = [badge(ownerState(item).word), ownerLink(item, host), template, host.link(place, path)];
    if (isUnreadable(item) || item.versions.length === 0) return [[...head, "-", "", "", "", ""]];
    const [newest] = item.versions;
    return item.versions.map(({ number, revision, at, clusters, stages }): Child[] => [
      ...head,
      revisionText(revision),
      age(at, host),
      count(clusters),
      stages.join(", "),
      number === newest?.number ? "" : html`<span class="state busy">behind</span>`,
    ]);
  });
  const columns: readonly Column[] = [
    "State",
    "Group",
    "Template",
    "Path",
    "Runs",
    "Age",
    ["Clusters", "number"],
    ["Stages", "text"],
    "Remark",
  ];
  return table("Groups and Syncs that use it, with their versions", columns, rows);
}
