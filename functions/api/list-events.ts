import type { ListPage, PageRequest } from "#functions/api/page-request.ts";
import type { EventItem } from "#shared/domain/api/objects.ts";
import type { Row } from "#shared/domain/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Events about one object, newest first; they are kept for 30 days. */
export async function listEvents(
  table: Table,
  query: {
    readonly about: { readonly namespace: string; readonly kind: string; readonly name: string };
    readonly page: PageRequest;
  },
): Promise<ListPage<EventItem>> {
  const { about, page } = query;
  const found = await table.query({
    pk: `EVT#${about.namespace}#${about.kind}#${about.name}`,
    newestFirst: true,
    limit: page.limit,
    ...(page.after === undefined ? {} : { after: page.after }),
  });
  const items = found.items.map(eventItem);
  return found.next === undefined ? { items } : { items, next: found.next };
}

function eventItem(row: Row): EventItem {
  const { pk: _pk, sk, type: _type, schema: _schema, version: _version, expiresAt: _expires, ...fields } = row;
  return { at: sk.slice(0, sk.indexOf("#")), reason: "", message: "", ...fields };
}
