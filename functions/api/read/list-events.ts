import { collect, type ListPage, type PageRequest } from "#functions/api/request/page-request.ts";
import { defined } from "#shared/base/defined.ts";
import type { EventItem } from "#shared/fleet/api/objects.ts";
import { newerRow } from "#shared/fleet/api/unreadable-object.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import { isNewer, type NewerRow, newerRowText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface EventQuery {
  readonly about: { readonly namespace: string; readonly kind: string; readonly name: string };
  /** Only events on this cluster: a group's Sync is on many. */
  readonly cluster?: string;
  readonly page: PageRequest;
}

/** Events about one object, newest first; they are kept for 30 days. */
export function listEvents(table: Table, query: EventQuery): Promise<ListPage<EventItem>> {
  const { about, cluster, page } = query;
  return collect(page, {
    read: (part) =>
      table.query({
        ...ranges.events(about),
        newestFirst: true,
        newer: "kept",
        ...part,
      }),
    keep: (row) => (isNewer(row) || cluster === undefined || row.cluster === cluster ? eventOf(row) : undefined),
  });
}

/** The event as people see it; for a row of a newer version, only its time. */
export function eventOf(row: EventRow | NewerRow): EventItem {
  return isNewer(row) ? unreadableEvent(row) : eventItem(row);
}

/** The key has the time; the cluster is unknown. */
function unreadableEvent(row: NewerRow): EventItem {
  return { at: keys.event.read(row).at, severity: "error", reason: newerRow, message: newerRowText(row) };
}

function eventItem({ at, severity, reason, message, cluster, rollout, revision }: EventRow): EventItem {
  return {
    at,
    severity,
    reason,
    message,
    ...defined({ cluster, rollout, revision }),
  };
}
