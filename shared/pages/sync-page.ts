/** One Sync on its cluster: what is wanted, what is there, and what is wrong. */
import type { ApiList, EventItem, SyncObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { ObjectTrouble } from "#shared/fleet/rows/sync-row.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { eventTable } from "#shared/pages/event-table.ts";
import { clusterPlace, part, subjectPlace } from "#shared/pages/places.ts";
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
import { objectState, reasonText } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const eventsShown = "30";

export async function syncPage(
  ask: Ask,
  { cluster, namespace, name }: { readonly cluster: string; readonly namespace: string; readonly name: string },
  host: Host,
): Promise<View> {
  const path = `/v1/namespaces/${part(namespace)}/syncs/${part(name)}`;
  const [sync, events] = await Promise.all([
    ask<SyncObject | UnreadableObject<"Sync">>(path, { cluster }),
    ask<ApiList<EventItem>>(`${path}/events`, { cluster, limit: eventsShown }),
  ]);
  const state = objectState(sync);
  return {
    title: `${namespace}/${name} on ${cluster}`,
    main: html`<h1>${namespace}/${name} on ${host.link(clusterPlace(cluster), cluster)} ${badge(state.word)}</h1>
${state.remark === "" ? "" : html`<p class="remark">${state.remark}</p>`}
${isUnreadable(sync) ? "" : parts(sync, host)}
<h2>Events</h2>
${eventTable(events.items, host)}`,
  };
}

function parts({ metadata, spec, status }: SyncObject, host: Host): Html {
  const { desired, observed, group, conditions } = status;
  const { namespace = "", name } = metadata;
  const subject =
    group === undefined
      ? ({ kind: "Sync", namespace, name } as const)
      : ({ kind: "SyncGroup", namespace, name: group } as const);
  const objects = observed?.objects;
  const columns: readonly Column[] = ["Condition", "Status", "Reason", "Since", ["Remark", "text"]];
  return html`${fields([
    ["Written by", host.link(subjectPlace(subject), `${subject.namespace}/${subject.name}`)],
    ["From", spec.source === "" ? undefined : `source ${spec.source}, path ${spec.path}`],
    [
      "Wanted",
      desired === undefined
        ? undefined
        : html`${revisionText(desired.revision)}, content ${desired.rollout}, assigned ${age(desired.assignedAt, host)} ago`,
    ],
    [
      "Runs",
      observed?.applied === undefined
        ? "nothing"
        : html`${revisionText(observed.applied.revision)}, since ${age(observed.applied.at, host)}`,
    ],
    ["Seen", age(observed?.at, host)],
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
        : html`${count(observed.drift.objects)} ${observed.drift.corrected ? "put back" : "left so"} ${age(observed.drift.at, host)} ago`,
    ],
  ])}
<h2>Conditions</h2>
${
  conditions.length === 0
    ? nothing("No worker has looked at it yet.")
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
${troubles("Objects in trouble", observed?.troubles)}
${troubles("Objects left alone", observed?.leftAlone)}
${leftOut(desired?.leftOut)}`;
}

function troubles(title: string, those: readonly ObjectTrouble[] = []): Html {
  if (those.length === 0) return html``;
  const rows = those.map(({ object, reason, message }): Child[] => [object, brief(reasonText(reason, message), 400)]);
  return html`<h2>${title}</h2>${table(title, ["Object", ["Why", "text"]], rows)}`;
}

function leftOut(texts: readonly string[] = []): Html {
  return texts.length === 0
    ? html``
    : html`<h2>Not honoured</h2><ul>${texts.map((text) => html`<li>${text}</li>`)}</ul>`;
}
