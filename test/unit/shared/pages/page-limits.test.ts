/** A page that leaves something out says so, with the number if it is known, and links to the rest. */
import { expect, test } from "vitest";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { fleetPage } from "#shared/pages/fleet-page.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { modulePage } from "#shared/pages/module-page.ts";
import { rolloutsPage } from "#shared/pages/rollouts-page.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { timelinePage } from "#shared/pages/timeline-page.ts";
import { tableIn, textOf } from "#test/support/html-tables.ts";

const now = new Date("2026-11-20T08:00:00.000Z");
const host = pageHost(now);
const at = "2026-11-20T07:00:00.000Z";

function numbered<T>(many: number, make: (name: string, at: number) => T): readonly T[] {
  return Array.from({ length: many }, (_, index) => make(`n${String(index).padStart(4, "0")}`, index));
}

/** An API that returns lists in pages of the requested size, and 404 for unknown objects. */
function apiOf(
  lists: Readonly<Record<string, readonly object[]>>,
  objects: Readonly<Record<string, object>> = {},
): Ask {
  return async <T>(path: string, query: Readonly<Record<string, string | undefined>> = {}) => {
    const list = lists[path];
    if (list === undefined) {
      if (objects[path] === undefined) throw new Refusal(404, "there is none");
      return objects[path] as T;
    }
    const from = Number(query.continue ?? 0);
    const to = from + Number(query.limit ?? 100);
    const metadata = to < list.length ? { continue: String(to) } : {};
    return { items: list.slice(from, to), metadata } as T;
  };
}

function failedSource(name: string) {
  const conditions = [{ type: "Ready", status: "False", reason: "GitNotFound", message: "gone", since: at }];
  const spec = { git: { url: "https://git.example/a" } };
  return { kind: "Source", metadata: { namespace: "shop", name, generation: 1 }, spec, status: { conditions } };
}

const counts = { selected: 4, ready: 1, failed: 0, unreachable: 1, changing: 2, waiting: 0 };

/** A group with a cluster that does not answer, and with clusters that are behind. */
function group(name: string) {
  const versions = [
    { number: 2, revision: "main@sha1:2", at, clusters: 2, stages: ["rest"] },
    { number: 1, revision: "main@sha1:1", at, clusters: 2, stages: ["rest"] },
  ];
  const status = { state: "Rolling", conditions: [], clusters: counts, asOf: at };
  return { kind: "SyncGroup", metadata: { namespace: "shop", name, generation: 1 }, status, versions, bare: 0 };
}

function rollout(name: string, number = 1) {
  const spec = {
    owner: { kind: "SyncGroup", namespace: "shop", name },
    number,
    revision: "main@sha1:1",
    trigger: "Push",
  };
  const status = { phase: "Superseded", conditions: [], transitions: [], size: 4, endedAt: at };
  return {
    kind: "Rollout",
    metadata: { namespace: "shop", name: `${name}-${number}`, creationTimestamp: at },
    spec,
    status,
  };
}

test("the fleet page names every Source that needs attention, up to its limit", async () => {
  const ask = apiOf({ "/v1/fleet": [], "/v1/sources": numbered(700, failedSource) });
  const html = (await fleetPage(ask, host)).main.toString();
  expect(tableIn(html, "Needs attention")).toHaveLength(700);
});

test("the fleet page says when it shows only the first 2,000 Sources, and links to all of them", async () => {
  const ask = apiOf({ "/v1/fleet": [], "/v1/sources": numbered(2400, failedSource) });
  const html = (await fleetPage(ask, host)).main.toString();
  expect(tableIn(html, "Needs attention")).toHaveLength(2000);
  expect(textOf(html)).toContain("This page shows the first 2,000 Sources; see all Sources.");
  expect(html).toContain('<a href="/sources">');
});

test("the fleet page lists ten groups with unreachable or outdated clusters, and counts the others", async () => {
  const ask = apiOf({ "/v1/fleet": numbered(13, group), "/v1/sources": [] });
  const html = (await fleetPage(ask, host)).main.toString();
  expect(tableIn(html, "Clusters that do not answer")).toHaveLength(10);
  expect(textOf(html)).toContain("And 3 more groups with 3 clusters; see Everything below.");
  expect(tableIn(html, "Oldest revisions")).toHaveLength(10);
  expect(textOf(html)).toContain("And 16 more with 19 clusters; see all versions.");
});

test("the page of a module says when it covers only the first SyncGroups and Syncs", async () => {
  const source = failedSource("app");
  const base = "/v1/namespaces/shop";
  const sync = (name: string) => ({ ...group(name), kind: "Sync" });
  const written = (name: string) => ({ ...sync(name), spec: { source: "app", path: "." } });
  const own = numbered(50, written);
  const objects = Object.fromEntries([
    [`${base}/sources/app`, source],
    ...own.map((each) => [`${base}/syncs/${each.metadata.name}`, each] as const),
  ]);
  const groups = numbered(700, (name) => ({
    ...group(`g${name}`),
    spec: { templates: [{ name: "app", source: "other", path: "." }] },
  }));
  const ask = apiOf({ "/v1/fleet": numbered(50, sync), [`${base}/syncgroups`]: groups }, objects);
  const text = textOf((await modulePage(ask, { namespace: "shop", source: "app" }, host)).main.toString());
  expect(text).toContain("This page shows the first 500 SyncGroups; there are more.");
  expect(text).toContain("This page shows the first 20 of 50 Syncs that users wrote.");
});

test("the timeline says how many groups it covers, and how many rollouts of one group", async () => {
  const all = apiOf({ "/v1/rollouts": numbered(620, (name) => rollout(name)) });
  const text = textOf((await timelinePage(all, {}, host)).main.toString());
  expect(text).toContain("the last 50 of 500");
  expect(text).toContain("This page covers the first 500 groups; there are more.");
  const one = apiOf({
    "/v1/namespaces/shop/syncgroups/web/rollouts": numbered(80, (_, number) => rollout("web", number)),
  });
  const own = textOf((await timelinePage(one, { group: "shop/web" }, host)).main.toString());
  expect(own).toContain("This page covers the newest 50 rollouts; there are more.");
});

test("a group's page counts the unhealthy clusters that it does not name, and links to them, to events and to rollouts", async () => {
  const path = "/v1/namespaces/shop/syncgroups/web";
  const target = (cluster: string) => ({
    cluster,
    stage: "rest",
    state: "Failed",
    reason: "ApplyFailed: no",
    preexisting: false,
  });
  const stageRunCounts = {
    Succeeded: 0,
    Unchanged: 0,
    Failed: 42,
    Unreachable: 0,
    Assigned: 0,
    Pending: 0,
    Skipped: 0,
  };
  const stageRun = {
    rollout: 2,
    phase: "Halted",
    since: at,
    size: 42,
    counts: stageRunCounts,
    preexistingFailures: 0,
    startedAt: at,
    allows: { failures: 1, unreachable: 1 },
  };
  const overview = {
    spec: {
      owner: { kind: "SyncGroup", namespace: "shop", name: "web" },
      strategy: { maxConcurrent: 1, maxFailures: 0, maxUnreachable: 0 },
    },
    status: {
      rollouts: [],
      stages: [{ name: "rest", members: 42, changing: 0, updatingTo: stageRun }],
      slots: { used: 0, bound: 1 },
      catchUps: {},
      waits: [],
    },
  };
  const object = { ...group("web"), spec: { templates: [] } };
  const event = { at, severity: "info", reason: "RolloutUpdating", message: "moves" };
  const lists = {
    [`${path}/events`]: numbered(40, () => event),
    [`${path}/rollouts`]: numbered(30, (_, number) => rollout("web", number)),
    [`${path}/rollouts/2/targets`]: numbered(42, target),
  };
  const owner = { kind: "SyncGroup", namespace: "shop", name: "web" } as const;
  const html = (
    await rolloutsPage(apiOf(lists, { [path]: object, [`${path}/rollout`]: overview }), owner, host)
  ).main.toString();
  expect(tableIn(html, "Clusters, the worst first")).toHaveLength(10);
  expect(textOf(html)).toContain("And 32 more clusters: all of them.");
  expect(textOf(html)).toContain("This shows the newest 15; see all events.");
  expect(textOf(html)).toContain("This shows the newest 10; see all rollouts, with commits and authors.");
});

test("a Sync's page links to all of its events, and to the rest of its history", async () => {
  const path = "/v1/namespaces/shop/syncs/web.app";
  const metadata = { namespace: "shop", name: "web.app", generation: 1 };
  const status = { state: "Ready", conditions: [], group: "web", template: "app" };
  const sync = { kind: "Sync", metadata, spec: { cluster: "c1", source: "", path: "." }, status };
  const event = { at, severity: "info", reason: "Ready", message: "" };
  const rollout = (_: string, number: number) => ({
    ...{ number, phase: "Passed", trigger: "Push", at, clusters: { done: 1, size: 1, failed: 0 }, templates: [] },
  });
  const lists = {
    [`${path}/objects`]: [],
    [`${path}/events`]: numbered(40, () => event),
    [`${path}/history`]: numbered(9, rollout),
  };
  const asked = { cluster: "c1", namespace: "shop", name: "web.app", query: {} };
  const html = (await syncPage(apiOf(lists, { [path]: sync }), asked, host)).main.toString();
  expect(textOf(html)).toContain("This shows the newest 30; see all events.");
  expect(html).toContain('<a href="/syncs/shop/web.app/events?cluster=c1">');
  expect(textOf(html)).toContain("This shows the newest 5; see all rollouts of its group.");
  expect(html).toContain('<a href="/syncgroups/shop/web/history">');
});
