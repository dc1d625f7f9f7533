/** The latest events of a namespace, or of all: events of many owners, one after the other. */
import { eventOf } from "#functions/api/read/list-events.ts";
import {
  decodeCursor,
  encodeCursor,
  firstRows,
  type ListPage,
  type PageRequest,
} from "#functions/api/request/page-request.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { EventAbout, EventItem, EventList } from "#shared/fleet/api/objects.ts";
import { keys, type Owner, ranges } from "#shared/fleet/rows/keys.ts";
import { isNewer, keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Number of owners in the directory; a larger fleet is asked namespace by namespace. */
const mostOwners = 1000;
/** Number of owners whose events are read: no index has events by time, and each owner is a query of its own. */
const mostAsked = 50;
const atOnce = 10;
const mostItems = 100;
/** Sorts before every key, because DynamoDB does not compare a key with an empty text. */
const first = " ";

export interface AllEvents extends ListPage<EventItem & EventAbout> {
  /** Number of groups and written Syncs, at most a thousand, and the number whose events were read. */
  readonly owners: EventList["owners"];
}

/**
 * The newest first, for the fifty owners that changed last where there are more. A page costs as many queries as owners
 * are asked, at most twelve to choose them and ten for the directory, however long their histories are.
 */
export async function listAllEvents(
  table: Table,
  { namespace, page }: { readonly namespace?: string; readonly page: PageRequest },
): Promise<AllEvents> {
  const limit = Math.min(page.limit, mostItems);
  const before = page.after === undefined ? undefined : decodeCursor(page.after).before;
  const known = await ownersOf(table, namespace);
  const asked = known.length > mostAsked ? await changedLast(table, known) : known;
  const found: { readonly sk: string; readonly item: EventItem & EventAbout }[] = [];
  await runConcurrently(asked, atOnce, async (about) => {
    const { pk } = ranges.events(about);
    const range = before === undefined ? ranges.events(about) : ({ pk, between: [first, before] } as const);
    // One more than requested, because the last event of the page before may be among them.
    const rows = await firstRows(table, { ...range, newestFirst: true, newer: "kept", limit: limit + 1 });
    const others = rows.filter(({ sk }) => sk !== before);
    found.push(...others.map((row) => ({ sk: row.sk, item: { ...eventOf(row), about } })));
  });
  const newest = found.toSorted((a, b) => compareText(b.sk, a.sk));
  const last = newest[limit - 1];
  // Two owners may have events with one key, and a page continues before a key: none of them is left for the next page.
  const reported = last === undefined ? newest : newest.filter(({ sk }) => sk >= last.sk);
  return {
    items: reported.map(({ item }) => item),
    owners: { known: known.length, asked: asked.length },
    ...(last === undefined || reported.length === newest.length ? {} : { next: encodeCursor({ before: last.sk }) }),
  };
}

async function ownersOf(table: Table, namespace: string | undefined): Promise<readonly Owner[]> {
  const owners: Owner[] = [];
  const range = ranges.owners(namespace);
  for await (const entries of allPages((start) => table.query({ ...range, newer: "kept", limit: 100, ...start }))) {
    owners.push(...entries.flatMap((entry) => keys.owner.parse(entry) ?? []));
    if (owners.length >= mostOwners) break;
  }
  return owners.slice(0, mostOwners);
}

/** Sorts by the time of the planner's last report. */
async function changedLast(table: Table, owners: readonly Owner[]): Promise<readonly Owner[]> {
  const rowKeys = owners.map(({ namespace, kind, name }) => keys.object(namespace, kind, name));
  const rows = await table.getMany(rowKeys, { newer: "kept" });
  const changed = new Map<string, string>();
  for (const row of rows) {
    if (isNewer(row) || (row.type !== "SyncGroup" && row.type !== "Sync")) continue;
    changed.set(keyText(row), row.status.asOf ?? row.createdAt);
  }
  const when = ({ namespace, kind, name }: Owner) => changed.get(keyText(keys.object(namespace, kind, name))) ?? "";
  return owners.toSorted((a, b) => compareText(when(b), when(a))).slice(0, mostAsked);
}
