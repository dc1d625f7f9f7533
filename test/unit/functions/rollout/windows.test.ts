/** Windows: no attempt starts while the windows over its cluster are closed. */
import { describe, expect, test } from "vitest";
import { windowWaits as windowWaitsOf } from "#shared/fleet/forecast/window-waits.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { windowsAmong } from "#shared/fleet/rows/windows-row.ts";
import type { Wait } from "#shared/fleet/waits/wait.ts";
import { waitText } from "#shared/words/rollout-words.ts";
import { allSay, begin, lease, names, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const hour = 3600;
const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;
const inRing = (ring: string) => ({ selector: { matchLabels: { ring } } });

async function ask(made: PlannerWorld, method: string, to: string, body?: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const answer = await api.call(method, to, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body;
}

/** A time of the story's day. */
function hoursFrom(made: PlannerWorld, hours: number): string {
  return new Date(made.now.getTime() + hours * hour * 1000).toISOString();
}

async function applyWindow(made: PlannerWorld, name: string, spec: object): Promise<void> {
  const document = { apiVersion: "starling.dev/v1alpha1", kind: "Window", metadata: { name }, spec };
  await ask(made, "POST", "/v1/apply", { documents: [document] });
}

/** The clusters with this ring get changes only from 2 to 4 hours from now. */
async function closedFor(made: PlannerWorld, ring: string): Promise<void> {
  const allow = [{ start: hoursFrom(made, 2), end: hoursFrom(made, 4) }];
  await applyWindow(made, "night", { clusters: inRing(ring), allow });
}

async function windowWaits(made: PlannerWorld): Promise<readonly Wait[]> {
  const { status } = await ask(made, "GET", `${path}/rollout`);
  const waits: readonly Wait[] = status.waits;
  return waits.filter(({ reason }) => reason === "window");
}

async function revisionOf(made: PlannerWorld, cluster: string): Promise<string | undefined> {
  return (await made.sync(cluster))?.desired.revision;
}

const everywhere = { ...rings, maxConcurrent: 5 };

/** The window is open for an hour, and then from 23 hours on. */
async function openForAnHour(made: PlannerWorld): Promise<void> {
  const allow = [
    { start: hoursFrom(made, -1), end: hoursFrom(made, 1) },
    { start: hoursFrom(made, 23), end: hoursFrom(made, 25) },
  ];
  await applyWindow(made, "night", { clusters: inRing("rest"), allow });
}

/** The clock and the planner go on until the planner has nothing more to do for the closing of the window. */
async function pastClosing(made: PlannerWorld): Promise<void> {
  made.advanceClock(hour + 120);
  await made.plan();
}

describe("an attempt that no worker begins before its window closes", () => {
  test("its slot is free for others, it is named with its window, and has its turn at the next opening", async () => {
    const made = await worldOf({ c1: "rest", c2: "other" }, { maxConcurrent: 1 });
    await openForAnHour(made);
    await begin(made);
    const assigned = await made.sync("c1");
    expect(assigned?.desired.beginBefore).toBe(hoursFrom(made, 1));
    expect(assigned?.schema).toBe(newestRowSchema);
    made.advanceClock(hour + 119);
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c1"]);
    made.advanceClock(1);
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c2"]);
    expect((await made.sync("c1"))?.paused).toMatchObject({ window: true });
    expect(await windowWaits(made)).toMatchObject([{ until: hoursFrom(made, 22 - 2 / 60) }]);
    await playOn(made);
    const { counts, phase } = made.stageRun("all");
    expect({ counts, phase }).toMatchObject({ counts: { Waiting: 1, Succeeded: 1, Failed: 0 }, phase: "Updating" });
    made.advanceClock(22 * hour);
    await playOn(made);
    expect(made.states()).toEqual({ c1: "Succeeded", c2: "Succeeded" });
    expect((await made.sync("c1"))?.paused).toBeUndefined();
  });

  test("the planner is due when the window has closed", async () => {
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5, progressDeadline: "3h" });
    await openForAnHour(made);
    await begin(made);
    expect(made.rolloutState().deadline).toBe(new Date(made.now.getTime() + (hour + 120) * 1000).toISOString());
    made.advanceClock(60);
    await made.plan();
    expect(made.rolloutState().deadline).toBe(new Date(made.now.getTime() + (hour + 60) * 1000).toISOString());
  });

  test.each([
    ["another Sync", "shop/other.app", false],
    ["the Sync", `${owner.namespace}/web.app`, true],
    ["a Sync that is not noted yet", undefined, true],
  ])("while a worker has the lease and works on %s, the attempt stands: %s %s", async (_what, sync, stands) => {
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5 });
    await openForAnHour(made);
    await begin(made);
    made.advanceClock(hour + 120);
    await lease(made, "c1", { fence: 1, seconds: 30 });
    const row = await made.table.get(keys.lease("c1"));
    const begun = sync === undefined ? {} : { begun: { sync, desired: "", alone: false } };
    await made.table.write([{ put: { ...row, ...begun } as LeaseRow }]);
    await made.plan();
    expect((await made.sync("c1"))?.paused === undefined).toBe(stands);
  });

  test("an attempt whose worker died at it has begun", async () => {
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5 });
    await openForAnHour(made);
    await begin(made);
    const row = await made.sync("c1");
    if (row === undefined) throw new Error("nothing was assigned");
    const { attempt } = row.desired;
    const died: SyncRow = { ...row, deaths: { desired: "", attempt, at: made.now.toISOString(), alone: 0 } };
    await made.table.write([{ put: died }]);
    await pastClosing(made);
    expect((await made.sync("c1"))?.paused).toBeUndefined();
    expect(made.states()).toEqual({ c1: "Assigned" });
  });

  test("an attempt whose worker died at an earlier one has not begun, whatever the worker's clock said", async () => {
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5 });
    await openForAnHour(made);
    await begin(made);
    const row = await made.sync("c1");
    if (row === undefined) throw new Error("nothing was assigned");
    const attempt = row.desired.attempt - 1;
    const died: SyncRow = { ...row, deaths: { desired: "", attempt, at: hoursFrom(made, 0.1), alone: 0 } };
    await made.table.write([{ put: died }]);
    await pastClosing(made);
    expect((await made.sync("c1"))?.paused).toMatchObject({ window: true });
  });

  test("Syncs that have begun finish, and the others of their cluster wait", async () => {
    const templates = [
      { name: "app", source: "app" },
      { name: "more", source: "app", path: "more" },
    ];
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5, progressDeadline: "3h" }, templates);
    await openForAnHour(made);
    await begin(made);
    await made.observe("c1", "Verifying", { name: "web.app" });
    await pastClosing(made);
    expect((await made.sync("c1", "web.app"))?.paused).toBeUndefined();
    expect((await made.sync("c1", "web.more"))?.paused).toMatchObject({ window: true });
    expect(made.slots().map(({ attempts }) => attempts)).toEqual([{ "web.app": 1 }]);
    await allSay(made, "Ready");
    expect(made.slots()).toEqual([]);
    expect(made.stageRun("all").holds).toEqual([{ cause: "window", name: "night", clusters: [0] }]);
    made.advanceClock(22 * hour);
    await made.plan();
    expect(made.slots().map(({ attempts }) => attempts)).toEqual([{ "web.more": 2 }]);
    await playOn(made);
    expect(made.states()).toEqual({ c1: "Succeeded" });
  });

  test("a cluster that catches up keeps its place", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await openForAnHour(made);
    await made.addCluster("j1", "rest");
    await begin(made);
    expect((await made.sync("j1"))?.desired.beginBefore).toBe(hoursFrom(made, 1));
    await pastClosing(made);
    expect(made.slots()).toEqual([]);
    expect(made.rolloutState().catchUpsHeld?.holds).toEqual([{ cause: "window", name: "night", clusters: 1 }]);
    made.advanceClock(22 * hour);
    await playOn(made);
    expect(made.isThrough()).toBe(true);
  });

  test("a deletion has no such time", async () => {
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5 });
    await made.rollOut();
    await openForAnHour(made);
    await ask(made, "DELETE", `${path}?confirm=true`);
    await made.plan();
    expect((await made.sync("c1"))?.desired).toMatchObject({ action: "delete" });
    expect((await made.sync("c1"))?.desired.beginBefore).toBeUndefined();
  });

  test("starts that a jitter spreads are before half of the time until the closing", async () => {
    const made = await worldOf(names(20), { maxConcurrent: 20, jitter: "15m" });
    const allow = [{ start: hoursFrom(made, -1), end: hoursFrom(made, 0.1) }];
    await applyWindow(made, "night", { clusters: { all: true }, allow });
    await begin(made);
    const syncs = await Promise.all(names(20).map((name) => made.sync(name)));
    const starts = syncs.map((sync) => sync?.desired.startAt ?? "");
    expect(new Set(starts).size).toBeGreaterThan(10);
    for (const startAt of starts) expect(startAt <= hoursFrom(made, 0.05), startAt).toBe(true);
  });
});

describe("a closed window", () => {
  test("the planner is due when a window opens that targets or catch-ups wait for", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, { maxConcurrent: 5 });
    const end = new Date(made.now.getTime() + 20_000).toISOString();
    const deny = [{ start: hoursFrom(made, -1), end }];
    await applyWindow(made, "busy", { clusters: inRing("rest"), deny });
    await begin(made);
    await allSay(made, "Ready");
    expect(dueAtOf(made.rolloutState().dueKey ?? "")).toBe(end);
    const joined = await worldOf({ c1: "canary" }, { maxConcurrent: 5 });
    await joined.rollOut();
    const soon = new Date(joined.now.getTime() + 20_000).toISOString();
    await applyWindow(joined, "busy", {
      clusters: inRing("rest"),
      deny: [{ start: hoursFrom(joined, -1), end: soon }],
    });
    await joined.addCluster("j1", "rest");
    await begin(joined);
    expect(dueAtOf(joined.rolloutState().dueKey ?? "")).toBe(soon);
  });

  test("targets outside their window are held while others start, and start when it opens", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest", c3: "other" }, { maxConcurrent: 5 });
    await closedFor(made, "rest");
    await begin(made);
    expect(made.states()).toEqual({ c1: "Assigned", c3: "Assigned" });
    expect(made.stageRun("all").holds).toEqual([{ cause: "window", name: "night", clusters: [1] }]);
    await allSay(made, "Ready");
    made.advanceClock(2 * hour);
    await made.plan();
    expect(made.states()).toMatchObject({ c2: "Assigned" });
    await playOn(made);
    expect(made.stageRun("all").phase).toBe("Passed");
  });

  test("a stage run that waits only for a window says so, is not passed, and lets a newer rollout in", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await closedFor(made, "rest");
    const until = hoursFrom(made, 2);
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    const [wait] = await windowWaits(made);
    expect(wait).toMatchObject({ until, message: expect.stringMatching(/^1 cluster waits until window night opens /) });
    await revise(made, "ccc");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (3)" });
    expect(await revisionOf(made, "c2")).toContain("aaa");
    made.advanceClock(2 * hour);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(await revisionOf(made, "c2")).toContain("ccc");
  });

  test("the wait names only the windows that are closed, in the status and in the plan", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, { maxConcurrent: 5 });
    const clusters = inRing("rest");
    const opening = hoursFrom(made, 3);
    await applyWindow(made, "always", { clusters, allow: [{ start: hoursFrom(made, -1), end: hoursFrom(made, 9) }] });
    await applyWindow(made, "busy", { clusters, deny: [{ start: hoursFrom(made, -1), end: opening }] });
    await applyWindow(made, "later", { clusters, deny: [{ start: hoursFrom(made, 5), end: hoursFrom(made, 6) }] });
    await begin(made);
    const message = expect.stringMatching(/^1 cluster waits until window busy opens /);
    expect(await windowWaits(made)).toMatchObject([{ blocker: "busy", until: opening, message }]);
    await applyWindow(made, "more", { clusters, deny: [{ start: hoursFrom(made, -1), end: hoursFrom(made, 2) }] });
    await made.plan();
    const both = (await windowWaits(made)).map((wait) => waitText(wait, made.now));
    expect(both).toEqual(["1 cluster waits until windows busy, more open 2026-11-21T11:00Z"]);
    const row = await made.table.get(keys.windowState);
    const known = { windows: windowsAmong(row === undefined ? [] : [row]), operations: {} };
    const planned = windowWaitsOf(known, [{ name: "c2", labels: { ring: "rest" } }], made.now);
    expect(planned).toMatchObject([{ window: "busy, more", until: opening }]);
  });

  test("an attempt that began inside its window ends, and no other starts after the window has closed", async () => {
    const made = await worldOf({ c1: "rest", c2: "rest" }, { maxConcurrent: 1 });
    const allow = [{ start: hoursFrom(made, -1), end: hoursFrom(made, 1) }];
    await applyWindow(made, "night", { clusters: inRing("rest"), allow });
    await begin(made);
    expect(made.states()).toEqual({ c1: "Assigned" });
    made.advanceClock(hour);
    await allSay(made, "Ready");
    await made.plan();
    expect(made.states()).toEqual({ c1: "Succeeded" });
    expect(made.slots()).toEqual([]);
    const [wait] = await windowWaits(made);
    expect(wait?.message).toBe("1 cluster waits for window night, which never opens again");
  });

  test("a cluster that joins waits for its window with its catch-up, and gets the rollout when the window opens", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await closedFor(made, "rest");
    await made.addCluster("j1", "rest");
    await begin(made);
    expect(await made.sync("j1")).toBeUndefined();
    expect(made.rolloutState().catchUpsHeld?.holds).toEqual([{ cause: "window", name: "night", clusters: 1 }]);
    made.advanceClock(2 * hour);
    await begin(made);
    expect(await revisionOf(made, "j1")).toContain("aaa");
  });

  test("a window over groups binds the groups that it selects, on the clusters that it selects", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, { maxConcurrent: 5 });
    const allow = [{ start: hoursFrom(made, 2), end: hoursFrom(made, 4) }];
    await applyWindow(made, "others", { groups: { namespaces: ["another"] }, allow });
    await applyWindow(made, "night", {
      clusters: inRing("rest"),
      groups: { names: [`${owner.namespace}/${owner.name}`] },
      allow,
    });
    await begin(made);
    expect(made.states()).toEqual({ c1: "Assigned" });
    expect(made.stageRun("all").holds).toEqual([{ cause: "window", name: "night", clusters: [1] }]);
    expect(await windowWaits(made)).toMatchObject([{ blocker: "night" }]);
    made.advanceClock(2 * hour);
    await playOn(made);
    expect(made.states()).toEqual({ c1: "Succeeded", c2: "Succeeded" });
  });

  test("a group whose labels change leaves the window that selected it", async () => {
    const made = await worldOf({ c1: "rest" }, { maxConcurrent: 5 });
    const labelled = async (tier: string) => {
      const row = await made.table.get(keys.object(owner.namespace, "SyncGroup", owner.name));
      if (row === undefined) throw new Error("the group has no row");
      await made.table.write([{ put: { ...row, labels: { tier }, version: row.version + 1 } as SyncGroupRow }]);
    };
    await labelled("gold");
    const allow = [{ start: hoursFrom(made, 2), end: hoursFrom(made, 4) }];
    await applyWindow(made, "night", { groups: { selector: { matchLabels: { tier: "gold" } } }, allow });
    await begin(made);
    expect(made.slots()).toEqual([]);
    await labelled("silver");
    await begin(made);
    expect(made.states()).toEqual({ c1: "Assigned" });
  });

  test("deleting the window lets its clusters go on", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await closedFor(made, "canary");
    await begin(made);
    expect(made.slots()).toEqual([]);
    await ask(made, "DELETE", "/v1/windows/night?confirm=true");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test("the deletion of a group waits for no window", async () => {
    const made = await worldOf({ c1: "canary", c2: "rest" }, everywhere);
    await made.rollOut();
    await closedFor(made, "canary");
    await ask(made, "DELETE", `${path}?confirm=true`);
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toContain("c1");
  });
});
