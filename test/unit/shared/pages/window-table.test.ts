/** Windows on the pages of the fleet, of a group and of a cluster. */
import { expect, test } from "vitest";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { clusterPage } from "#shared/pages/clusters-page.ts";
import { fleetPage } from "#shared/pages/fleet-page.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { rolloutsPage } from "#shared/pages/rollouts-page.ts";
import { tableIn } from "#test/support/html-tables.ts";

const host = pageHost(new Date("2026-11-20T08:00:00.000Z"));
const night = { cron: "0 22 * * *", duration: "4h", timeZone: "Europe/Berlin" };
const open = { open: true, nextClosing: "2026-11-21T01:00:00.000Z" };
const closed = { open: false, nextOpening: "2026-11-20T21:00:00.000Z" };

function window(name: string, spec: object, status: object) {
  return { kind: "Window", metadata: { name }, spec: { allow: [night], deny: [], ...spec }, status };
}

const windows = [
  window("day", { clusters: { names: ["c2"] }, groups: { namespaces: ["payments"] } }, open),
  window("past", { clusters: { names: ["c1"] } }, { open: false }),
  window("nights", { clusters: { selector: { matchLabels: { env: "prod" } } } }, closed),
  window("always", { clusters: { all: true }, groups: { names: ["other/web"] } }, { open: true }),
];

const group = {
  kind: "SyncGroup",
  metadata: { namespace: "payments", name: "shop", generation: 1 },
  status: { state: "Rolling", conditions: [] },
};
const owner = { kind: "SyncGroup", namespace: "payments", name: "shop" } as const;
const waits = [
  {
    reason: "window",
    stage: "rest",
    blocker: "nights, past",
    clusters: { count: 1, names: [] },
    message: "x",
    clear: [],
  },
  { reason: "window", blocker: "nights", clusters: { count: 3, names: [] }, message: "y", clear: [] },
  { reason: "frozen", stage: "rest", blocker: "nights", clusters: { count: 9, names: [] }, message: "z", clear: [] },
];
const overview = {
  spec: { owner, strategy: { maxConcurrent: 1, maxFailures: 0, maxUnreachable: 0 } },
  status: { rollouts: [], stages: [], slots: { used: 0, bound: 1 }, catchUps: {}, waits },
};
const cluster = {
  kind: "Cluster",
  metadata: { name: "c1", labels: {}, creationTimestamp: "2026-11-01T00:00:00.000Z", generation: 1 },
  spec: {},
  status: { labels: { env: "prod" }, conditions: [] },
};
const fleetItem = { ...group, versions: [], bare: 0, windowWaits: [{ window: "always, nights, past", clusters: 1 }] };

/** @param listed - the Windows; an API of an earlier version has no list of them. */
function apiOf(listed: readonly object[] | undefined): Ask {
  const answers: Readonly<Record<string, unknown>> = {
    "/v1/windows": listed === undefined ? undefined : { items: listed, metadata: {} },
    "/v1/fleet": { items: [fleetItem], metadata: {} },
    "/v1/clusters/c1": cluster,
    "/v1/namespaces/payments/syncgroups/shop": group,
    "/v1/namespaces/payments/syncgroups/shop/rollout": overview,
  };
  const lists = ["/v1/sources", "/v1/clusters/c1/syncs", "/v1/namespaces/payments/syncgroups/shop/events"];
  return async <T>(path: string) => {
    const answer = lists.includes(path) ? { items: [], metadata: {} } : answers[path];
    if (answer === undefined) throw new Refusal(404, "there is none");
    return answer as T;
  };
}

const title = "Windows, the closed ones first";
const opens = "opens in 13h: 2026-11-20T22:00+01:00 Europe/Berlin, 2026-11-20T21:00Z";
const closes = "closes in 17h: 2026-11-21T02:00+01:00 Europe/Berlin, 2026-11-21T01:00Z";

test("the fleet page shows whether each window is open, when that changes, and what waits for it", async () => {
  const { main } = await fleetPage(apiOf(windows), host);
  expect(tableIn(`${main}`, title)).toEqual([
    ["closed", "nights", "env=prod", opens, "payments/shop 1 cluster"],
    ["closed", "past", "c1", "never opens again", "payments/shop 1 cluster"],
    ["open", "always", "all of groups other/web", "stays open", ""],
    ["open", "day", "c2 of groups payments/*", closes, ""],
  ]);
});

test("the page of a group shows the windows over it, and the stages that wait for each", async () => {
  const { main } = await rolloutsPage(apiOf(windows), owner, host);
  expect(tableIn(`${main}`, title).map((row) => [row[1], row[4]])).toEqual([
    ["nights", "rest 1 cluster, catching up 3 clusters"],
    ["past", "rest 1 cluster"],
    ["day", ""],
  ]);
});

test("the page of a cluster shows the windows over it", async () => {
  const { main } = await clusterPage(apiOf(windows), { name: "c1", query: {} }, host);
  expect(tableIn(`${main}`, title).map(([state, name, ...more]) => [state, name, more.length])).toEqual([
    ["closed", "nights", 2],
    ["closed", "past", 2],
    ["open", "always", 2],
  ]);
});

test.each([
  ["no Window", []],
  ["an API of an earlier version", undefined],
])("the pages have no part about windows with %s", async (_, listed) => {
  const ask = apiOf(listed);
  const views = [
    fleetPage(ask, host),
    rolloutsPage(ask, owner, host),
    clusterPage(ask, { name: "c1", query: {} }, host),
  ];
  for (const { main } of await Promise.all(views)) expect(`${main}`).not.toContain("<h2>Windows</h2>");
});
