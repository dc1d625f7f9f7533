/** What people wrote, as every page about the whole fleet has it. */
import type { OwnerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { ownerPagePlace } from "#shared/pages/places.ts";
import { type PagesRead, readPages } from "#shared/pages/read-pages.ts";
import { count, type Host, type Html, html } from "#shared/pages/view.ts";

export type Listed = OwnerInFleet | UnreadableObject<"SyncGroup" | "Sync">;

/** Groups beyond these are told of as not looked at. */
const mostPages = 10;

/** @param namespace - left out: all of them. */
export function readFleetOwners(ask: Ask, namespace?: string): Promise<PagesRead<Listed>> {
  return readPages(ask, { path: "/v1/fleet", mostPages, ...(namespace === undefined ? {} : { query: { namespace } }) });
}

/** Said first, where what comes after is not of everything. */
export function cutText({ items, isCut }: PagesRead<Listed>): Html {
  return isCut ? html`<p class="remark">Of the first ${count(items.length)} groups: there are more.</p>` : html``;
}

export function ownerLink({ kind, metadata: { namespace = "", name } }: Listed, host: Host): Html {
  return host.link(ownerPagePlace({ kind, namespace, name }), `${namespace}/${name}`);
}
