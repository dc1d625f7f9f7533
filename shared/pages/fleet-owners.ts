/** The owners of the fleet (SyncGroups and users' Syncs), for every page about the whole fleet. */
import type { OwnerInFleet } from "#shared/fleet/api/fleet-overview.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { ownerPagePlace } from "#shared/pages/places.ts";
import { type PagesRead, readPages } from "#shared/pages/read-pages.ts";
import { count, type Host, type Html, html } from "#shared/pages/view.ts";

export type Listed = OwnerInFleet | UnreadableObject<"SyncGroup" | "Sync">;

/** Further groups are not read, and the page says so. */
const mostPages = 10;

/** @param namespace - default: all namespaces. */
export function readFleetOwners(ask: Ask, namespace?: string): Promise<PagesRead<Listed>> {
  return readPages(ask, { path: "/v1/fleet", mostPages, ...(namespace === undefined ? {} : { query: { namespace } }) });
}

/** A remark when the page does not cover all groups. */
export function cutText({ items, isCut }: PagesRead<Listed>): Html {
  return isCut
    ? html`<p class="remark">This page shows the first ${count(items.length)} groups; there are more.</p>`
    : html``;
}

export function ownerLink({ kind, metadata: { namespace = "", name } }: Listed, host: Host): Html {
  return host.link(ownerPagePlace({ kind, namespace, name }), `${namespace}/${name}`);
}
