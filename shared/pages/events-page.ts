/** The events of one object or of all groups, newest first, in pages. */
import type { ApiList, EventItem, EventList } from "#shared/fleet/api/objects.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { allEventsTable, eventTable } from "#shared/pages/event-table.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { apiPath, eventsPlace, ownerPagePlace } from "#shared/pages/places.ts";
import { count, type Host, html, type View } from "#shared/pages/view.ts";

const shown = "100";
/** The most owners that the API reads from its directory. */
const mostKnown = 1000;

/** @param query.cluster - shows only events of this cluster. */
export async function eventsPage(
  ask: Ask,
  { owner, query }: { readonly owner: Owner; readonly query: Readonly<Record<string, string>> },
  host: Host,
): Promise<View> {
  const { cluster } = query;
  const asked = { limit: shown, cluster, continue: query.continue };
  const list = await ask<ApiList<EventItem>>(`${apiPath(owner)}/events`, asked);
  const name = `${owner.namespace}/${owner.name}`;
  return {
    title: `${name}: events`,
    main: html`<h1>${host.link(ownerPagePlace(owner), name)}: events${cluster === undefined ? "" : ` on ${cluster}`}</h1>
${eventTable(list.items, host)}
${nextPage(eventsPlace(owner, cluster), list.metadata.continue, host)}`,
  };
}

/** @param query.namespace - shows only events of this namespace. */
export async function allEventsPage(ask: Ask, query: Readonly<Record<string, string>>, host: Host): Promise<View> {
  const { namespace } = query;
  const { items, metadata, owners } = await ask<EventList>("/v1/events", {
    limit: shown,
    namespace,
    continue: query.continue,
  });
  const { known, asked } = owners;
  const cut = `These are the events of the ${count(asked)} groups that changed last, of ${known >= mostKnown ? "at least " : ""}${count(known)} groups.`;
  const search = { place: { path: "/events" }, name: "namespace", label: "Namespace", value: namespace ?? "" };
  return {
    title: "Events",
    main: html`<h1>Events${namespace === undefined || namespace === "" ? "" : ` in ${namespace}`}</h1>
${host.search({ ...search, example: "shop" })}
${asked < known ? html`<p class="remark">${cut}</p>` : ""}
${allEventsTable(items, host)}
${nextPage({ path: "/events", query: { namespace } }, metadata.continue, host)}`,
  };
}
