/** The page of one Sync on its cluster: the desired and the applied revision, and problems. */
import type { ApiList, EventItem, SyncObject } from "#shared/fleet/api/objects.ts";
import type { SyncObjectItem } from "#shared/fleet/api/sync-objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { ObjectProblem } from "#shared/fleet/rows/sync-row.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { eventTable } from "#shared/pages/event-table.ts";
import { historyTable, readHistory } from "#shared/pages/history-page.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { objectTable } from "#shared/pages/object-table.ts";
import { originParts, planParts, readOrigins } from "#shared/pages/origin-parts.ts";
import {
  apiPath,
  clusterPlace,
  eventsPlace,
  historyPlace,
  modulePlace,
  ownerPagePlace,
  syncPlace,
} from "#shared/pages/places.ts";
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
import { nextTryText } from "#shared/words/next-try.ts";
import { objectState, reasonText } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const eventsShown = "30";
const objectsShown = "100";
const historyShown = "5";

interface SyncAsked {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly query: Readonly<Record<string, string>>;
}

export async function syncPage(ask: Ask, { cluster, namespace, name, query }: SyncAsked, host: Host): Promise<View> {
  const path = apiPath({ kind: "Sync", namespace, name });
  const group = name.includes(".") ? (name.split(".")[0] ?? name) : undefined;
  const owner = ownerNamed(namespace, { name, group });
  const [sync, objects, history, events] = await Promise.all([
    ask<SyncObject | UnreadableObject<"Sync">>(path, { cluster }),
    ask<ApiList<SyncObjectItem>>(`${path}/objects`, { cluster, limit: objectsShown, continue: query.continue }),
    readHistory(ask, { kind: "Sync", namespace, name }, { cluster, limit: historyShown }),
    ask<ApiList<EventItem>>(`${path}/events`, { cluster, limit: eventsShown }),
  ]);
  const origins = await readOrigins(ask, sync, { owner, cluster });
  const state = objectState(sync);
  const on = { namespace, name, cluster };
  return {
    title: `${namespace}/${name} on ${cluster}`,
    main: html`<h1>${namespace}/${name} on ${host.link(clusterPlace(cluster), cluster)} ${badge(state.word)}</h1>
${state.remark === "" ? "" : html`<p class="remark">${state.remark}</p>`}
${isUnreadable(sync) ? "" : parts(sync, state.word, host)}
<h2>Objects</h2>
${objectTable(objects.items, host)}
${nextPage(syncPlace({ cluster, namespace, name }), objects.metadata.continue, host)}
<h2>Where its values come from</h2>
${originParts(origins, on)}
${planParts(owner, on)}
<h2>History</h2>
${historyTable(history.items, { owner, host })}
${history.metadata.continue === undefined ? "" : html`<p>This shows the newest ${count(history.items.length)}; see ${host.link(historyPlace(owner), group === undefined ? "all rollouts" : "all rollouts of its group")}.</p>`}
<h2>Events</h2>
${eventTable(events.items, host)}
${events.metadata.continue === undefined ? "" : html`<p>This shows the newest ${count(events.items.length)}; see ${host.link(eventsPlace({ kind: "Sync", namespace, name }, cluster), "all events")}.</p>`}`,
  };
}

/** The owner of the Sync: its group, or the Sync itself. */
function ownerNamed(
  namespace: string,
  { name, group }: { readonly name: string; readonly group: string | undefined },
): Owner {
  return group === undefined ? { kind: "Sync", namespace, name } : { kind: "SyncGroup", namespace, name: group };
}

function parts({ metadata, spec, status }: SyncObject, word: string, host: Host): Html {
  const { desired, observed, group, conditions } = status;
  const { namespace = "", name } = metadata;
  const owner = ownerNamed(namespace, { name, group });
  const objects = observed?.objects;
  const columns: readonly Column[] = ["Condition", "Status", "Reason", "Since", ["Remark", "text"]];
  return html`${fields([
    ["Written by", host.link(ownerPagePlace(owner), `${owner.namespace}/${owner.name}`)],
    [
      "From",
      spec.source === ""
        ? undefined
        : html`${host.link(modulePlace({ namespace, source: spec.source, path: spec.path }), `${spec.source}, path ${spec.path}`)}`,
    ],
    [
      "Desired",
      desired === undefined
        ? undefined
        : html`${revisionText(desired.revision)}, rollout ${desired.rollout}, assigned ${age(desired.assignedAt, host)} ago`,
    ],
    [
      "Runs",
      observed?.applied === undefined
        ? "nothing"
        : html`${revisionText(observed.applied.revision)}, since ${age(observed.applied.at, host)}`,
    ],
    ["Seen", age(observed?.at, host)],
    ["Next try", word === "Retrying" ? nextTryText(observed, host.now) : undefined],
    [
      "Objects",
      objects === undefined
        ? undefined
        : `${count(objects.total)}: ${count(objects.ready)} ready, ${count(objects.failed)} failed, ${count(objects.foreign)} foreign`,
    ],
    [
      "Drift",
      observed?.drift === undefined
        ? undefined
        : html`${count(observed.drift.objects)} ${observed.drift.corrected ? "corrected" : "not corrected"} ${age(observed.drift.at, host)} ago`,
    ],
  ])}
<h2>Conditions</h2>
${
  conditions.length === 0
    ? nothing("No worker has checked it yet.")
    : table(
        "Conditions",
        columns,
        conditions.map(({ type, status: is, reason, since, message }): Child[] => [
          type,
          is,
          reason,
          age(since, host),
          brief(message, 240),
        ]),
      )
}
${problems("Objects with problems", observed?.problems)}
${problems("Objects left alone", observed?.leftAlone)}
${leftOut(desired?.leftOut)}`;
}

function problems(title: string, those: readonly ObjectProblem[] = []): Html {
  if (those.length === 0) return html``;
  const rows = those.map(({ object, reason, message }): Child[] => [object, brief(reasonText(reason, message), 400)]);
  return html`<h2>${title}</h2>${table(title, ["Object", ["Why", "text"]], rows)}`;
}

function leftOut(texts: readonly string[] = []): Html {
  return texts.length === 0
    ? html``
    : html`<h2>Marks that are not followed</h2><ul>${texts.map((text) => html`<li>${text}</li>`)}</ul>`;
}
