/** Where what a Sync comes to on its cluster was said, and how to see what a change would make of it. */

import { percentEncode } from "#shared/base/percent-encoding.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ClusterObject, RolloutObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { type Origin, originsIn } from "#shared/fleet/forecast/origins.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import { type Ask, unlessNone } from "#shared/pages/ask.ts";
import { apiPath } from "#shared/pages/places.ts";
import { brief, type Child, command, count, type Html, html, nothing, table } from "#shared/pages/view.ts";

const shown = 60;

/** Of the content that the cluster was assigned, by the values that it has now; none where nobody knows them any more. */
export async function readOrigins(
  ask: Ask,
  sync: SyncObject | UnreadableObject<"Sync">,
  { owner, cluster }: { readonly owner: Owner; readonly cluster: string },
): Promise<readonly Origin[]> {
  const number = isUnreadable(sync) ? undefined : sync.status.desired?.rollout;
  if (isUnreadable(sync) || number === undefined) return [];
  const [content, known] = await Promise.all([
    unlessNone(ask<RolloutObject | UnreadableObject<"Rollout">>(`${apiPath(owner)}/rollouts/${number}`)),
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

/** A Sync where it runs. */
interface SyncOn {
  readonly namespace: string;
  readonly name: string;
  readonly cluster: string;
}

export function originParts(origins: readonly Origin[], sync: SyncOn): Html {
  if (origins.length === 0) return nothing("Nobody knows any more.");
  const rows = origins
    .slice(0, shown)
    .map(({ field, value, from }): Child[] => [html`<code>${field}</code>`, brief(value, 240), from.join(" from ")]);
  const more = origins.length - rows.length;
  return html`${table("Where each value was said, the nearest first", ["Field", ["Value", "text"], ["Said by", "text"]], rows)}
${more > 0 ? html`<p>and ${count(more)} more: ${command(`starling render ${syncWords(sync)} --show-origin`)}</p>` : ""}`;
}

/** A rendering is made for that, which no page does: the commands that do, as a shell reads them. */
export function planParts({ kind, namespace, name }: Owner, sync?: SyncOn): Html {
  const what = quoted(kind === "Sync" ? `sync/${name}` : name);
  const on = sync === undefined ? "" : ` --cluster ${quoted(sync.cluster)}`;
  const alone =
    sync === undefined
      ? ""
      : html`
<p>Of this Sync alone, object by object: ${command(`starling diff ${syncWords(sync)} --against assigned`)}</p>`;
  return html`<h2>What a plan would change</h2>
<p>What is still to come: ${command(`starling plan ${what}${on} -n ${quoted(namespace)}`)}</p>${alone}
<p>What a folder, a revision or documents would change: the same with ${command("--source SOURCE=FOLDER")}, ${command("--revision REVISION")} or ${command("-f FILE")}.</p>`;
}

function syncWords({ namespace, name, cluster }: SyncOn): string {
  return `${quoted(`sync/${name}`)} --cluster ${quoted(cluster)} -n ${quoted(namespace)}`;
}
