/** Windows as objects of the API: written, read, and deleted with the row that the planner reads. */
import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { windowsAmong } from "#shared/fleet/rows/windows-row.ts";
import type { RowQuery, Table } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { type ApiFixture, apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const apiVersion = "starling.dev/v1alpha1";
const night = { cron: "0 22 * * *", duration: "4h", timeZone: "Europe/Berlin" };
const past = { start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" };

function windowDocument(name: string, spec: object) {
  return { apiVersion, kind: "Window", metadata: { name }, spec: { clusters: { all: true }, ...spec } };
}

async function stored(api: ApiFixture) {
  return windowsAmong(await api.table.getMany([keys.windowState])).map(({ name, allow }) => [name, allow]);
}

test("a Window shows when it opens next and when it closes, and one that never opens is named so", async () => {
  const api = apiFixture();
  api.setNow("2026-07-01T12:00:00.000Z");
  const documents = [windowDocument("night", { allow: [night] }), windowDocument("over", { allow: [past] })];
  await api.call("POST", "/v1/apply", { documents });
  const { body } = await api.call("GET", "/v1/windows");
  const items = (body as { items: { metadata: { name: string }; status: object }[] }).items;
  expect(items.map(({ metadata: { name }, status }) => [name, status])).toEqual([
    ["night", { conditions: [], clusters: 0, open: false, nextOpening: "2026-07-01T20:00:00.000Z" }],
    ["over", { conditions: [], clusters: 0, open: false }],
  ]);
  api.setNow("2026-07-01T21:00:00.000Z");
  expect(await api.call("GET", "/v1/windows/night")).toMatchObject({
    body: { status: { open: true, nextClosing: "2026-07-02T00:00:00.000Z" } },
  });
});

test("the row of all windows has the specs that are in force, after edits and deletions, too", async () => {
  const api = apiFixture();
  await api.call("POST", "/v1/apply", { documents: [windowDocument("a", { allow: [night] })] });
  await api.call("POST", "/v1/apply", { documents: [windowDocument("b", { allow: [past] })] });
  await api.call("POST", "/v1/apply", { documents: [windowDocument("a", { allow: [past] })] });
  expect(await stored(api)).toEqual([
    ["a", [past]],
    ["b", [past]],
  ]);
  expect(await api.call("DELETE", "/v1/windows/a")).toMatchObject({ status: 409 });
  expect(await stored(api)).toHaveLength(2);
  expect(await api.call("DELETE", "/v1/windows/a?confirm=true")).toMatchObject({ status: 200 });
  expect(await stored(api)).toEqual([["b", [past]]]);
});

test("a Window over groups that do not exist warns, and names what it selects", async () => {
  const api = apiFixture();
  const group = {
    apiVersion,
    kind: "SyncGroup",
    metadata: { name: "web", namespace: "shop", labels: { tier: "gold" } },
    spec: { clusters: { all: true }, templates: [{ name: "app", source: "app" }], rollout: {} },
  };
  const over = (groups: object) => ({ ...windowDocument("w", { allow: [night] }), spec: { groups, allow: [night] } });
  const warnings = async (...documents: object[]) => {
    const { body } = await api.call("POST", "/v1/apply", { documents });
    return (body as { items: { warnings?: string[] }[] }).items.flatMap((item) => item.warnings ?? []).join("; ");
  };
  expect(await warnings(over({ names: ["shop/web"] }))).toContain("no group matches shop/web yet");
  expect(await warnings(over({ names: ["shop/web"] }), group)).not.toContain("no group");
  expect(await warnings(over({ selector: { matchLabels: { tier: "gold" } } }))).not.toContain("no group");
  expect(await warnings(over({ namespaces: ["shop"] }))).not.toContain("no group");
  expect(await warnings(over({ namespaces: ["other"] }))).toContain("no group matches other/* yet");
  expect(await api.call("DELETE", "/v1/windows/w")).toMatchObject({
    body: { message: expect.stringContaining("lets changes of groups other/* on 0 clusters start") },
  });
});

test("a Window that never opens is applied, and a warning says why and what to do", async () => {
  const api = apiFixture();
  const always = { cron: "0 * * * *", duration: "1h", timeZone: "UTC" };
  const documents = [
    windowDocument("over", { allow: [past, { start: "2019-01-01T00:00:00Z", end: "2019-01-02T00:00:00Z" }] }),
    windowDocument("denied", { allow: [night], deny: [always] }),
    windowDocument("closed", { deny: [always] }),
    windowDocument("night", { allow: [night, past] }),
    windowDocument("once", { deny: [past] }),
  ];
  const { status, body } = await api.call("POST", "/v1/apply", { documents });
  const never = "the Window never opens, and nothing that it selects changes; allow a later time, or delete it";
  const own = (body as { items: { warnings: string[] }[] }).items.map(({ warnings }) =>
    warnings.filter((text) => text.includes("never")),
  );
  expect(status).toBe(200);
  expect(own).toEqual([
    [`spec.allow has only times that are over, the last since 2020-01-02T00:00:00Z: ${never}`],
    [`spec.deny denies every time that spec.allow allows: ${never}`],
    [`spec.deny denies every time from now on: ${never}`],
    [],
    [],
  ]);
});

test.each([
  ["neither clusters nor groups", { clusters: undefined, allow: [night] }, "needs clusters, groups, or both"],
  ["a group without its namespace", { groups: { names: ["web"] }, allow: [night] }, "such as payments/shop"],
  ["neither allow nor deny", {}, "needs allow or deny"],
  ["a cron expression of six fields", { allow: [{ ...night, cron: "0 0 9 * * *" }] }, "must have five fields"],
  ["a time zone that does not exist", { allow: [{ ...night, timeZone: "Europe/Londen" }] }, "must be a time zone"],
  ["cron without a duration", { deny: [{ cron: "0 9 * * *" }] }, "needs either cron, duration and timeZone"],
  ["both forms at once", { deny: [{ ...night, ...past }] }, "needs either cron, duration and timeZone"],
  ["an end before its start", { deny: [{ start: past.end, end: past.start }] }, "must be later than start"],
  ["a field that does nothing yet", { allow: [night], overrun: false }, "is not a field Starling knows"],
])("a Window with %s is refused", async (_what, spec, said) => {
  const answer = await apiFixture().call("POST", "/v1/apply", { documents: [windowDocument("w", spec)] });
  expect(answer.status).toBe(422);
  expect(JSON.stringify(answer.body)).toContain(said);
});

test("a list of Windows that counts no clusters reads none", async () => {
  const table = new MemoryTable();
  const api = apiFixture(table);
  await api.call("POST", "/v1/apply", { documents: [windowDocument("night", { allow: [night] })] });
  const reads: RowQuery[] = [];
  const counting = apiFixture(
    table,
    watched(table, (query) => reads.push(query)),
  );
  const { body } = await counting.call("GET", "/v1/windows?count=false");
  expect(body).toMatchObject({ items: [{ metadata: { name: "night" }, status: { open: expect.any(Boolean) } }] });
  expect((body as { items: { status: object }[] }).items[0]?.status).not.toHaveProperty("clusters");
  const ofFleet = () => reads.filter(({ pk }) => pk === keys.fleet("c1").pk);
  expect(ofFleet()).toHaveLength(0);
  expect(await counting.call("GET", "/v1/windows")).toMatchObject({ body: { items: [{ status: { clusters: 0 } }] } });
  expect(ofFleet()).not.toHaveLength(0);
});

/** The table, which reports each query. */
function watched(table: MemoryTable, onQuery: (query: RowQuery) => void): Table {
  return new Proxy(table, {
    get(target, name) {
      if (name === "query")
        return (query: RowQuery) => {
          onQuery(query);
          return target.query(query);
        };
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
