import { expect, test } from "vitest";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { countedTable } from "#test/support/counted-table.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { apiFixture, cluster, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";

const minute = (at: number) => new Date(Date.parse("2026-11-20T07:00:00.000Z") + at * 60_000).toISOString();

function event(about: Owner, at: number, id = "1") {
  const put = {
    ...keys.event(about, minute(at), id),
    ...{ type: "Event", schema: 1, version: 1, severity: "info", reason: "RolloutComplete" },
    ...{ at: minute(at), message: `${about.name} ${at}` },
  } as const;
  return { put } as const;
}

/** Groups `g0` to `g<n-1>`; each minute's event is about the next group. */
async function fleetOf(groups: number, events: number, pageItems = 1000) {
  const memory = new MemoryTable({ pageItems });
  const { table, counts } = countedTable(memory);
  const api = apiFixture(memory, table);
  const template = [{ name: "web", source: "app", path: "web" }];
  const names = Array.from({ length: groups }, (_, at) => `g${at}`);
  const documents = [source("app"), cluster("c1", { env: "prod" }), ...names.map((name) => syncGroup(name, template))];
  await api.call("POST", "/v1/apply", { documents });
  const about = (at: number) => ({ namespace: "payments", kind: "SyncGroup", name: `g${at % groups}` }) as const;
  for (let at = 0; at < events; at++) await memory.write([event(about(at), at)]);
  return { api, memory, counts };
}

interface Listed {
  readonly items: readonly { readonly message: string; readonly about: Owner }[];
  readonly metadata: { readonly continue?: string };
  readonly owners: { readonly known: number; readonly asked: number };
}

test("the events of all groups are listed in one order, page by page, none twice and none left out", async () => {
  const { api, memory } = await fleetOf(3, 20, 2);
  // Two events of one moment stand on both sides of the end of a page.
  await memory.write([event({ namespace: "payments", kind: "SyncGroup", name: "g0" }, 13, "2")]);
  // Events of two groups have the same key, and stand likewise.
  await memory.write([event({ namespace: "payments", kind: "SyncGroup", name: "g0" }, 7)]);
  const messages: string[] = [];
  let next = "";
  do {
    const { body } = await api.call("GET", `/v1/events?limit=7${next === "" ? "" : `&continue=${next}`}`);
    const list = body as Listed;
    messages.push(...list.items.map(({ message }) => message));
    next = list.metadata.continue ?? "";
  } while (next !== "");
  expect(messages).toHaveLength(22);
  expect(messages.filter((text) => text.endsWith(" 7")).toSorted()).toEqual(["g0 7", "g1 7"]);
  expect(messages.slice(0, 3)).toEqual(["g1 19", "g0 18", "g2 17"]);
  expect(messages.slice(6, 8).toSorted()).toEqual(["g0 13", "g1 13"]);
  expect(messages.at(-1)).toBe("g0 0");
});

test("the list of one namespace has the events of that namespace, and each event names its object", async () => {
  const { api } = await fleetOf(2, 2);
  const { body } = await api.call("GET", "/v1/events?namespace=payments");
  expect((body as Listed).items.map(({ about }) => about)).toEqual([
    { namespace: "payments", kind: "SyncGroup", name: "g1" },
    { namespace: "payments", kind: "SyncGroup", name: "g0" },
  ]);
  const other = await api.call("GET", "/v1/events?namespace=elsewhere");
  expect(other.body).toMatchObject({ items: [], owners: { known: 0, asked: 0 } });
});

test("the list reads the groups that changed last, and costs the same however many groups there are", async () => {
  const cost = async (groups: number) => {
    const { api, counts } = await fleetOf(groups, groups);
    const before = counts.requests;
    const { body } = await api.call("GET", "/v1/events?limit=20");
    return { requests: counts.requests - before, list: body as Listed };
  };
  const fifty = await cost(50);
  const many = await cost(180);
  expect(fifty.list.owners).toEqual({ known: 50, asked: 50 });
  expect(many.list.owners).toEqual({ known: 180, asked: 50 });
  // This table gives an empty page before each page, so that the requests are doubled.
  expect(fifty.requests).toBeLessThanOrEqual(2 * 51);
  expect(many.requests).toBeLessThanOrEqual(2 * (50 + 2 + 2));
});

test("the list includes a group whose status the planner wrote last", async () => {
  const { api, memory } = await fleetOf(80, 80);
  const key = keys.object("payments", "SyncGroup", "g77");
  const row = await memory.get(key);
  if (row === undefined || isNewer(row) || row.type !== "SyncGroup") throw new Error("there is no such row");
  const status = { ...row.status, asOf: "2027-01-01T00:00:00.000Z" };
  await memory.write([{ put: { ...row, status } as typeof row }]);
  const { body } = await api.call("GET", "/v1/events?limit=100");
  expect((body as Listed).items.map(({ message }) => message)).toContain("g77 77");
});
