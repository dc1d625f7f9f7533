import type { EventAbout, EventItem } from "#shared/fleet/api/objects.ts";
import { clusterPlace, ownerPagePlace } from "#shared/pages/places.ts";
import { age, brief, type Child, type Column, type Host, type Html, html, nothing, table } from "#shared/pages/view.ts";
import { revisionText } from "#shared/words/revision-text.ts";

export function eventTable(events: readonly EventItem[], host: Host): Html {
  if (events.length === 0) return nothing("No events in the last thirty days.");
  const rows = events.map(({ at, severity, reason, message, cluster, revision }): Child[] => [
    age(at, host),
    reasonText(severity, reason),
    cluster === undefined ? "" : host.link(clusterPlace(cluster), cluster),
    revision === undefined ? "" : revisionText(revision),
    brief(message, 240),
  ]);
  const columns: readonly Column[] = ["Age", "Reason", "Cluster", "Revision", ["Remark", "text"]];
  return table("Events, the newest first", columns, rows);
}

/** Events of several groups, each with its group. */
export function allEventsTable(events: readonly (EventItem & EventAbout)[], host: Host): Html {
  if (events.length === 0) return nothing("No events in the last thirty days.");
  const rows = events.map(({ about, at, severity, reason, cluster, message }): Child[] => [
    age(at, host),
    host.link(ownerPagePlace(about), `${about.namespace}/${about.name}`),
    reasonText(severity, reason),
    cluster === undefined ? "" : host.link(clusterPlace(cluster), cluster),
    brief(message, 240),
  ]);
  return table("Events, the newest first", ["Age", "Group", "Reason", "Cluster", ["Remark", "text"]], rows);
}

function reasonText(severity: EventItem["severity"], reason: string): Child {
  return severity === "error" ? html`<span class="state bad">${reason}</span>` : reason;
}
