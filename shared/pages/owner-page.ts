/** Finds the Sync that manages an object of a cluster, and from there its rollout, its commit and the author. */

import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import type { OwnedObject } from "#shared/fleet/api/sync-objects.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { objectTable } from "#shared/pages/object-table.ts";
import { clusterPlace, ownerPlace, syncPlace } from "#shared/pages/places.ts";
import { type Host, type Html, html, nothing, type View } from "#shared/pages/view.ts";
import { revisionText } from "#shared/words/revision-text.ts";

export async function ownerPage(
  ask: Ask,
  { cluster, query }: { readonly cluster: string; readonly query: Readonly<Record<string, string>> },
  host: Host,
): Promise<View> {
  const { object = "" } = query;
  const found =
    object === ""
      ? undefined
      : await ask<ApiList<OwnedObject>>(`/v1/clusters/${percentEncode(cluster)}/objects`, {
          object,
          continue: query.continue,
        });
  const next = found?.metadata.continue;
  const parts = found === undefined ? html`` : answerOf(found.items, { cluster, isLast: next === undefined, host });
  return {
    title: `${cluster}: objects`,
    main: html`<h1>${host.link(clusterPlace(cluster), cluster)}: the owner of an object</h1>
${ownerSearch(cluster, object, host)}
${parts}
${nextPage(ownerPlace(cluster, object), next, host)}`,
    isStill: true,
  };
}

export function ownerSearch(cluster: string, value: string, host: Host): Html {
  const place = ownerPlace(cluster);
  return host.search({ place, name: "object", label: "Object", value, example: "Deployment shop/web" });
}

function answerOf(
  items: readonly OwnedObject[],
  { cluster, isLast, host }: { readonly cluster: string; readonly isLast: boolean; readonly host: Host },
): Html {
  if (items.length === 0)
    return nothing(
      isLast ? "No Sync manages an object with this name." : "No Sync so far; there are more Syncs to search.",
    );
  return objectTable(items, host, {
    column: "Sync, and what it runs",
    cellOf: (at) => {
      const item = items[at];
      if (item === undefined) return "";
      const { namespace, name } = item.sync;
      return html`${host.link(syncPlace({ cluster, namespace, name }), `${namespace}/${name}`)} ${revisionText(item.revision)}`;
    },
  });
}
