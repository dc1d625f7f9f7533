/** Where what a Sync comes to on its cluster was said, and how to see what a change would make of it. */

import { percentEncode } from "#shared/base/percent-encoding.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ClusterObject, RolloutObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { type Origin, originsIn } from "#shared/fleet/forecast/origins.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";
import { type Ask, unlessNone } from "#shared/pages/ask.ts";
import { apiPath } from "#shared/pages/places.ts";
import { brief, type Child, count, type Html, html, nothing, table } from "#shared/pages/view.ts";

const shown = 60;

/** Of the content that the cluster was assigned, by the values that it has now; none where nobody knows them any more. */
export async function readOrigins(
  ask: Ask,
  sync: SyncObject | UnreadableObject<"Sync">,
  { subject, cluster }: { readonly subject: Subject; readonly cluster: string },
): Promise<readonly Origin[]> {
  const number = isUnreadable(sync) ? undefined : sync.status.desired?.rollout;
  if (isUnreadable(sync) || number === undefined) return [];
  const [content, known] = await Promise.all([
    unlessNone(ask<RolloutObject | UnreadableObject<"Rollout">>(`${apiPath(subject)}/rollouts/${number}`)),
    unlessNone(ask<ClusterObject | UnreadableObject<"Cluster">>(`/v1/clusters/${percentEncode(cluster)}`)),
  ]);
  if (content === undefined || known === undefined || isUnreadable(content) || isUnreadable(known)) return [];
  const { templates } = content.spec.plan;
  const template = templates.find(({ name }) => name === sync.status.template) ?? templates[0];
  if (template === undefined) return [];
  const { status, metadata } = known;
  const labels = status.labels ?? metadata.labels ?? {};
  return originsIn(template, { cluster: { name: cluster, labels }, values: status.values ?? {} });
}

export function originParts(origins: readonly Origin[]): Html {
  if (origins.length === 0) return nothing("Nobody knows any more.");
  const rows = origins
    .slice(0, shown)
    .map(({ field, value, from }): Child[] => [html`<code>${field}</code>`, brief(value, 240), from.join(" from ")]);
  const more = origins.length - rows.length;
  return html`${table("Where each value was said, the nearest first", ["Field", ["Value", "text"], ["Said by", "text"]], rows)}
${more > 0 ? html`<p>and ${count(more)} more: <code>starling render --show-origin</code></p>` : ""}`;
}

/** A rendering is made for that, which no page does. */
export function planWords(subject: Subject, cluster?: string): Html {
  const { kind, namespace, name } = subject;
  const what = quoted(kind === "Sync" ? `sync/${name}` : name);
  const on = cluster === undefined ? "" : ` --cluster ${quoted(cluster)}`;
  const where = ` -n ${quoted(namespace)}`;
  return html`<p>What a folder, a revision or documents would change: <code>starling plan ${what}${on}${where} --source SOURCE=FOLDER</code>, or with <code>-f FILE</code>.</p>`;
}
