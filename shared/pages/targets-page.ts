/** The clusters of one rollout, with their states and reasons. */
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { ApiList, TargetItem } from "#shared/fleet/api/objects.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { apiPath, clusterPlace, ownerPagePlace, syncPlace, targetsPlace } from "#shared/pages/places.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  type Host,
  type Html,
  html,
  nothing,
  table,
  type View,
} from "#shared/pages/view.ts";
import { worstTargetsFirst } from "#shared/words/causes.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const targetsShown = "200";

export async function targetsPage(
  ask: Ask,
  { owner, query }: { readonly owner: Owner; readonly query: Readonly<Record<string, string>> },
  host: Host,
): Promise<View> {
  const { namespace, name } = owner;
  const { number = "newest", stage, state } = query;
  const path = `${apiPath(owner)}/rollouts/${percentEncode(number)}/targets`;
  const list = await ask<ApiList<TargetItem>>(path, { limit: targetsShown, stage, state, continue: query.continue });
  const what = `${number === "newest" ? "the newest rollout" : `rollout ${number}`}${stage === undefined ? "" : ` in ${stage}`}`;
  const place = targetsPlace(owner, { number, stage, state });
  return {
    title: `${namespace}/${name}: clusters`,
    main: html`<h1>${host.link(ownerPagePlace(owner), `${namespace}/${name}`)}: clusters of ${what}</h1>
${list.items.length === 0 ? nothing("No clusters match.") : targetRows(worstTargetsFirst(list.items), { owner, host })}
${nextPage(place, list.metadata.continue, host)}`,
  };
}

export function targetRows(
  targets: readonly TargetItem[],
  { owner, host }: { readonly owner: Owner; readonly host: Host },
): Html {
  const rows = targets.map(
    ({ cluster, stage, state, reason, revision, sync, assignedAt, endedAt, preexisting }): Child[] => [
      badge(state),
      host.link(clusterPlace(cluster), cluster),
      stage,
      age(endedAt ?? assignedAt, host),
      revisionText(revision),
      sync === undefined ? "" : host.link(syncPlace({ cluster, namespace: owner.namespace, name: sync }), sync),
      html`${brief(reason, 240)}${preexisting === true ? " (was not ready before the rollout)" : ""}`,
    ],
  );
  const columns: readonly Column[] = ["State", "Cluster", "Stage", "For", "Revision", "Sync", ["Why", "text"]];
  return table("Clusters, the worst first", columns, rows);
}
