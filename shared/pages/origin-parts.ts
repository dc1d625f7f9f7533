/** Shows the origins of a Sync's values on its cluster, and how to preview a change. */

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

/**
 * The origins of the assigned rollout's values, with the cluster's values of now; empty when they are not known any
 * more.
 */
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

/** A Sync on one cluster. */
interface SyncOn {
  readonly namespace: string;
  readonly name: string;
  readonly cluster: string;
}

export function originParts(origins: readonly Origin[], sync: SyncOn): Html {
  if (origins.length === 0) return nothing("The origins are not known any more.");
  const rows = origins
    .slice(0, shown)
    .map(({ field, value, from }): Child[] => [html`<code>${field}</code>`, brief(value, 240), from.join(" from ")]);
  const more = origins.length - rows.length;
  return html`${table("Origins of the values, nearest first", ["Field", ["Value", "text"], ["Set by", "text"]], rows)}
${more > 0 ? html`<p>and ${count(more)} more: ${command(`starling render ${syncWords(sync)} --show-origin`)}</p>` : ""}`;
}

/** The commands for a preview, quoted for a shell. A preview needs a rendering, which no page makes. */
export function planParts({ kind, namespace, name }: Owner, sync?: SyncOn): Html {
  const what = quoted(kind === "Sync" ? `sync/${name}` : name);
  const on = sync === undefined ? "" : ` --cluster ${quoted(sync.cluster)}`;
  const alone =
    sync === undefined
      ? ""
      : html`
<p>For this Sync alone, object by object: ${command(`starling diff ${syncWords(sync)} --against assigned`)}</p>`;
  return html`<h2>What a plan would change</h2>
<p>Pending changes: ${command(`starling plan ${what}${on} -n ${quoted(namespace)}`)}</p>${alone}
<p>To preview a folder, a revision or documents, add ${command("--source SOURCE=FOLDER")}, ${command("--revision REVISION")} or ${command("-f FILE")}.</p>`;
}

function syncWords({ namespace, name, cluster }: SyncOn): string {
  return `${quoted(`sync/${name}`)} --cluster ${quoted(cluster)} -n ${quoted(namespace)}`;
}
