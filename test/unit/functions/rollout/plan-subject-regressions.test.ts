/** Each of these was a defect once: found by the property test of the planner, or by reading it with a hostile eye. */
import { describe, expect, test } from "vitest";
import { render } from "#functions/render/render.ts";
import { planSubject } from "#functions/rollout/plan-subject.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { digestOf } from "#shared/base/digest.ts";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { Crash, DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { PlannerWorld, silentLog, subject } from "#test/support/planner-world.ts";

class CountingBlobs extends MemoryBlobStore {
  reads = 0;

  override async get(key: string): Promise<Uint8Array> {
    this.reads++;
    return super.get(key);
  }
}

const ana = (at: Date) => ({ by: "ana", at: at.toISOString() });
const names = (count: number) => Array.from({ length: count }, (_, index) => `c${String(index).padStart(3, "0")}`);

type Group = Parameters<PlannerWorld["setGroup"]>;

async function world(clusters: readonly string[], ...group: Group): Promise<PlannerWorld> {
  const table = new MemoryTable(clusters.length < 90 ? {} : { pageItems: 50 });
  const made = new PlannerWorld({ table, blobs: new MemoryBlobStore() });
  for (const name of clusters) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup(...group);
  return made;
}

/** Up to the first assignments. */
async function begun(made: PlannerWorld): Promise<void> {
  await made.plan();
  await made.renderAll();
  await made.plan();
}

const web = [{ name: "app", source: "app" }];
const fleetOfWeb = { selector: { matchLabels: { ring: "all" } } };

describe("clusters that do not answer", () => {
  test("one that answers again before anybody saw it away gets another turn, and no deadline kills it", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1 });
    await begun(made);
    await made.observe("a", "Unreachable");
    await made.observe("a", "Reachable");
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned", b: "Waiting" });
    expect((await made.sync("a"))?.desired.attempt).toBe(2);
  });

  test("one that a deadline failed, and that answers later, is brought up when the rollout is over", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1, maxFailures: 1, progressDeadline: "60s" });
    await begun(made);
    made.advanceClock(61);
    await made.plan();
    await made.observe("a", "Unreachable");
    await made.observe("b", "Ready");
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 1, phase: "Complete" });
    await made.observe("a", "Reachable");
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, trigger: "membership", size: 1 });
    await made.rollOut();
    expect((await made.group()).status.clusters).toMatchObject({ selected: 2, ready: 2 });
  });

  test("a rollout that stalls for them says so only as long as it does", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 2, maxUnreachable: 0 });
    await begun(made);
    await made.observe("a", "Ready");
    await made.observe("b", "Unreachable");
    await made.plan();
    expect((await made.group()).status.state).toBe("Stalled");
    await made.observe("b", "Reachable");
    await made.plan();
    expect((await made.group()).status.state).toBe("Rolling");
  });
});

describe("clusters that come and go", () => {
  test("one that is deleted while it is assigned is skipped, not waited for", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1 });
    await begun(made);
    await made.removeCluster("a");
    await made.table.write([{ delete: keys.sync("a", "shop", "web.app") }]);
    await made.plan();
    expect(made.states()).toEqual({ a: "Skipped", b: "Assigned" });
    expect(await made.sync("a")).toBeUndefined();
  });

  test("one that is deselected before its turn is skipped, and brought up when it is selected again", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1 }, web, fleetOfWeb);
    await begun(made);
    await made.addCluster("b", "none");
    await made.observe("a", "Ready");
    await made.plan();
    expect(made.targets(1).map((target) => target.state)).toEqual(["Succeeded", "Skipped"]);
    await made.addCluster("b", "all");
    await made.rollOut();
    expect((await made.sync("b"))?.desired.action).toBe("apply");
  });

  test("one that is registered anew under its name starts over", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 2 });
    await made.rollOut();
    await made.table.write([{ delete: keys.sync("a", "shop", "web.app") }]);
    await made.addCluster("a", "all", { uid: "another" });
    await made.rollOut();
    expect(made.newest()).toMatchObject({ number: 2, trigger: "membership", size: 1 });
    expect((await made.sync("a"))?.observed?.phase).toBe("Ready");
  });

  test("one that left is forgotten by the rollout that takes over from the one that was to forget it", async () => {
    const stages = [{ name: "first", clusters: { names: ["a"] } }, { name: "rest" }];
    const made = await world(["a", "b"], { maxConcurrent: 1, stages }, web, fleetOfWeb);
    await made.rollOut();
    await made.addCluster("b", "none");
    await made.setSource("bbb");
    await made.plan();
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.newest().number).toBe(3);
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
  });

  test("a suspended subject forgets nobody", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 2 }, web, fleetOfWeb);
    await begun(made);
    await made.observe("a", "Unreachable");
    await made.plan();
    await made.operate({ suspended: ana(made.now) });
    await made.addCluster("a", "none");
    await made.plan();
    expect((await made.sync("a"))?.desired.action).toBe("apply");
  });
});

describe("clusters that an earlier rollout left changing", () => {
  test("what was observed about an older attempt frees no slot", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1 });
    await begun(made);
    await made.observe("a", "Unreachable");
    await made.setSource("bbb");
    await begun(made);
    expect(made.states()).toEqual({ a: "Assigned", b: "Waiting" });
    await made.setSource("ccc");
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 3, carried: [{ cluster: "a" }] });
  });

  test("a suspension does not run their deadline out", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1, progressDeadline: "60s" });
    await begun(made);
    await made.observe("a", "Applying");
    await made.setSource("bbb");
    await made.plan();
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    made.advanceClock(3600);
    await made.plan();
    await made.operate({ resumed: ana(made.now) });
    await made.plan();
    expect(made.newest().carried).toEqual([
      { cluster: "a", until: new Date(made.now.getTime() + 60_000).toISOString() },
    ]);
    made.advanceClock(60);
    await made.plan();
    expect(made.newest().carried).toEqual([]);
  });

  test("a stricter bound waits for them before it changes any of them again", async () => {
    const made = await world(["a", "b", "c"], { maxConcurrent: 3 });
    await begun(made);
    await made.setGroup({ maxConcurrent: 1 });
    await made.setSource("bbb");
    await begun(made);
    expect(made.newest().outstanding).toEqual([]);
    await made.observe("a", "Ready");
    await made.observe("b", "Ready");
    await made.plan();
    expect(made.newest().outstanding.map((ref) => ref.cluster)).toEqual(["c"]);
  });
});

describe("the budget", () => {
  test("of failures holds within one step: what follows a rendering that fails is not assigned", async () => {
    const path = "clusters/{{ cluster.name }}";
    const made = await world(["a", "b"], { maxConcurrent: 2 }, [{ name: "app", source: "app", path }]);
    await made.plan();
    await made.renderAll("no kind", (row) => row.path === "clusters/a");
    await made.renderAll();
    await made.plan();
    expect(made.newest().phase).toBe("Halted");
    expect(await made.sync("b")).toBeUndefined();
  });
});

describe("templates that go", () => {
  const both = [...web, { name: "old", source: "app" }];

  async function without(made: PlannerWorld): Promise<void> {
    await made.plan();
    for (const target of made.targets()) {
      if (target.state === "Assigned") await made.observe(target.cluster, "Gone", { name: "web.old" });
    }
    await made.plan();
  }

  async function withBoth(clusters: readonly string[], strategy: Group[0]): Promise<PlannerWorld> {
    const made = await world(clusters, strategy, both);
    await begun(made);
    for (const name of clusters) {
      await made.observe(name, "Ready");
      await made.observe(name, "Ready", { name: "web.old" });
    }
    await made.plan();
    expect(made.newest().phase).toBe("Complete");
    return made;
  }

  test("are done with when they are gone: no second rollout", async () => {
    const made = await withBoth(["a", "b"], { maxConcurrent: 2 });
    await made.setGroup({ maxConcurrent: 2 }, web);
    await without(made);
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, phase: "Complete" });
    expect((await made.head())?.templates).toEqual(["app"]);
    expect(await made.sync("a", "web.old")).toBeUndefined();
  });

  test("are remembered while a cluster that failed before it was assigned anything still has them", async () => {
    const made = await withBoth(["a"], { maxConcurrent: 1, maxFailures: 1 });
    await made.setGroup({ maxConcurrent: 1, maxFailures: 1 }, [{ ...web[0], path: "{{ cluster.values.none }}" }]);
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, phase: "Complete" });
    expect((await made.head())?.templates).toEqual(["app", "old"]);
    await made.setGroup({ maxConcurrent: 1, maxFailures: 1 }, web);
    await without(made);
    expect((await made.sync("a", "web.old"))?.desired.action ?? "gone").toBe("gone");
  });
});

describe("a deletion", () => {
  test("reaches every cluster, whatever stages the subject had when they were assigned", async () => {
    const stages = [{ name: "first", clusters: { names: ["a"] } }, { name: "rest" }];
    const made = await world(["a", "b"], { maxConcurrent: 2, stages });
    await made.rollOut();
    await made.setGroup({ maxConcurrent: 2 });
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned", b: "Assigned" });
  });

  test("that failed somewhere is not over, whatever the budget: it is shown, and tried again when asked for", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 2, maxFailures: 1 });
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.plan();
    await made.observe("a", "Failed", { reason: "DeleteFailed" });
    await made.observe("b", "Gone");
    for (let look = 0; look < 3; look++) await made.plan();
    expect(made.states()).toEqual({ a: "Failed", b: "Succeeded" });
    const { status } = await made.group();
    expect(status).toMatchObject({ state: "Deleting", conditions: [{ reason: "DeletionFailed" }] });
    expect(status.conditions[0]?.message).toMatch(
      /1 cluster failed: a: DeleteFailed; mend that and reconcile, or .*orphan/,
    );
    expect((await made.sync("a"))?.desired.action).toBe("delete");

    const deletion = (await made.group()).operations.deletion;
    if (deletion === undefined) throw new Error("the deletion is forgotten");
    await made.operate({ deletion, reconcile: ana(made.now) });
    await made.plan();
    expect(made.states()).toEqual({ a: "Assigned", b: "Unchanged" });
    await made.observe("a", "Gone");
    for (let look = 0; look < 3; look++) await made.plan();
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.rows("SyncOnCluster")).toEqual([]);
  });

  test("waits for who does not answer, whatever the budget", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 2, maxUnreachable: 1 });
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.plan();
    await made.observe("a", "Unreachable");
    await made.observe("b", "Gone");
    for (let look = 0; look < 3; look++) await made.plan();
    expect((await made.group()).status.state).toBe("Deleting");

    await made.observe("a", "Reachable");
    await made.plan();
    await made.observe("a", "Gone");
    for (let look = 0; look < 3; look++) await made.plan();
    expect(made.rows("SyncGroup")).toEqual([]);
  });

  test("that leaves the objects needs no slots and no workers", async () => {
    const made = await world(names(30), { maxConcurrent: 1 });
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } });
    await made.plan();
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.rows<SyncRow>("SyncOnCluster").map((row) => row.desired.action)).toEqual(names(30).map(() => "orphan"));
  });
});

describe("a group that has the name of one before it", () => {
  test("takes nothing for its own that was left when that one was deleted", async () => {
    const made = await world(["a"], {});
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } });
    await made.plan();
    const left = await made.sync("a");
    expect(left).toMatchObject({ desired: { action: "orphan" }, observed: { phase: "Ready" } });

    await made.setGroup({});
    const row = await made.group();
    const another = { ...row, version: row.version + 1, uid: "uid-of-another" };
    await made.table.write([{ put: another }]);
    await made.plan();
    await made.renderAll();
    await made.plan();
    const sync = await made.sync("a");
    expect(sync).toMatchObject({ desired: { action: "apply", keptThrough: left?.desired.attempt } });
    expect(sync?.observed).toBeUndefined();
    expect(sync?.desired.earlier).toContain(left?.desired.token);
  });

  test("and one that selects a cluster again has what it left there", async () => {
    const made = await world(["a", "b"], {});
    await made.rollOut();
    await made.removeCluster("b");
    await made.rollOut();
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
    await made.addCluster("b", "all");
    await made.plan();
    await made.renderAll();
    await made.plan();
    const sync = await made.sync("b");
    expect(sync).toMatchObject({ desired: { action: "apply" }, observed: { phase: "Ready" } });
    expect(sync?.desired.keptThrough).toBeUndefined();
  });
});

describe("looks", () => {
  test("that find only other reasons write nothing, however many, and reach the last target", async () => {
    const made = await world(names(130), { maxConcurrent: "100%" });
    await begun(made);
    for (const name of names(130)) await made.observe(name, "Verifying", { reason: "NotReady" });
    await made.plan();
    for (const name of names(130)) await made.observe(name, "Verifying", { reason: "StillNotReady" });
    const before = made.newest().version;
    await made.plan();
    expect(made.newest().version).toBe(before);
    await made.observe("c129", "Ready");
    await made.plan();
    expect(made.states()).toMatchObject({ c000: "Verifying", c129: "Succeeded" });
  });

  test("compare what DynamoDB gives back in another order of members", async () => {
    const made = await world(["a"], {});
    await made.rollOut();
    const row = await made.sync("a");
    if (row === undefined) throw new Error("nothing was assigned");
    const apply = Object.fromEntries(Object.entries(row.desired.apply).reverse()) as SyncRow["desired"]["apply"];
    const turned: SyncRow = { ...row, desired: { ...row.desired, apply } };
    await made.table.write([{ put: turned }]);
    const group = await made.group();
    const status = Object.fromEntries(Object.entries(group.status).reverse()) as typeof group.status;
    await made.table.write([{ put: { ...group, status } as typeof group }]);
    await made.plan();
    expect((await made.group()).version).toBe(group.version);
    await made.setGroup({}, [...web, { name: "more", source: "app" }]);
    await begun(made);
    expect(made.targets()[0]?.attempts).toEqual({ "web.more": 1 });
  });

  test("of a rollout that is over see what came meanwhile", async () => {
    const stages = [{ name: "first", clusters: { names: ["a"] } }, { name: "rest" }];
    const made = await world(["a", "b"], { stages });
    await begun(made);
    await made.observe("a", "Ready");
    await made.plan();
    await made.setSource("bbb");
    await made.observe("b", "Ready");
    await made.plan();
    expect(made.rollouts().map((rollout) => rollout.phase)).toEqual(["Complete", "Running"]);
  });

  test("put back a watchdog that has grown past a deadline, or was lost", async () => {
    const made = await world(["a"], { progressDeadline: "60s" });
    await begun(made);
    const key = keys.rollout(subject, 1);
    await made.table.update({ update: key, set: { dueKey: "2026-11-21T09:00:00.000Z#later" } });
    await made.plan();
    expect(made.newest().dueKey).toMatch(/^2026-11-21T08:01:00.000Z#/);
    await made.table.update({ update: key, remove: ["dueKey", "dueShard"] });
    await made.plan();
    expect(made.newest().dueKey).toMatch(/^2026-11-21T08:01:00.000Z#/);
  });

  test("pass over a target whose rendering does not come", async () => {
    const path = "clusters/{{ cluster.name }}";
    const made = await world(names(40), { maxConcurrent: 3 }, [{ name: "app", source: "app", path }]);
    for (let round = 0; round < 60; round++) {
      await made.plan();
      await made.renderAll(undefined, (row) => row.path !== "clusters/c000");
      await made.plan();
      for (const target of made.targets()) if (target.state === "Assigned") await made.observe(target.cluster, "Ready");
    }
    const states = Object.values(made.states());
    expect(states.filter((state) => state === "Succeeded")).toHaveLength(39);
    expect(made.states()).toMatchObject({ c000: "Rendering" });
  });
});

describe("large fleets", () => {
  test("are planned with one reading of their list, however many pages it takes", async () => {
    const blobs = new CountingBlobs();
    const made = new PlannerWorld({ table: new MemoryTable({ pageItems: 50 }), blobs });
    for (const name of names(400)) await made.addCluster(name, "all");
    await made.setSource("aaa");
    await made.setGroup({});
    await made.plan();
    expect(made.targets()).toHaveLength(400);
    expect(blobs.reads).toBe(1);
  });

  test("that do not answer fill no row: the rollout stops in time, and says why", { timeout: 60_000 }, async () => {
    const made = await world(names(1600), { maxConcurrent: "100%", maxUnreachable: "100%" });
    await begun(made);
    expect(made.newest().outstanding).toHaveLength(1500);
    for (const { cluster } of made.newest().outstanding) await made.observe(cluster, "Unreachable");
    await made.plan();
    expect(made.newest()).toMatchObject({ outstanding: [], reason: "TooManyUnreachable" });
    expect(JSON.stringify(made.newest()).length).toBeLessThan(200_000);
    for (const name of names(200)) await made.observe(name, "Reachable");
    await made.plan();
    expect(made.newest()).toMatchObject({ reason: "StageStarted" });
    expect(made.newest().outstanding.length).toBe(200);
  });
});

describe("people", () => {
  test("whose clock is behind can still start a halted rollout over", async () => {
    const made = await world(["a"], {});
    await begun(made);
    await made.observe("a", "Failed");
    await made.plan();
    await made.operate({ reconcile: ana(new Date(made.now.getTime() - 5000)) });
    await made.plan();
    expect(made.newest()).toMatchObject({ number: 2, trigger: "reconcile" });
  });

  test("who resume wake the clusters whose work stood still", async () => {
    const made = await world(["a", "b"], { maxConcurrent: 1 });
    await begun(made);
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    made.sender.take();
    await made.operate({ resumed: ana(made.now) });
    await made.plan();
    expect(made.sender.take()).toContainEqual({ to: "apply", cluster: "a" });
  });
});

test("a rendering that was asked for knows whom to tell, even when the message was lost", async () => {
  const made = await world(["a"], {});
  await made.plan();
  const [row] = made.rows<RenderingRow>("Rendering");
  if (row === undefined) throw new Error("no rendering was asked for");
  const told = { to: "render", input: row.input } as const;
  expect(made.sender.take()).toContainEqual(expect.objectContaining({ ...told, notify: subject }));
  made.advanceClock(31);
  const { table, sender, blobs } = made;
  const ports = { table, sender, clock: { now: () => made.now }, log: silentLog, metrics: { count() {} } };
  await claimDue(ports);
  // The tick knows the row's key only: whom to tell stands in the row.
  expect(made.sender.take()).toContainEqual(told);
  const built = { digest: digestOf("built"), objects: 1, bytes: Buffer.from("built") };
  await render(told, { ...ports, blobs, ids: randomIds, builder: { build: async () => built } });
  expect(made.sender.take()).toEqual([{ to: "rollout", subject }]);
});

describe.each(["before", "after"] as const)("killed %s any of its calls", (when) => {
  /** What does not depend on when it was killed. */
  const outcome = (made: PlannerWorld) => ({
    rollouts: made.rollouts().map(({ number, phase, stages, size }) => ({ number, phase, size, stages })),
    targets: made.targets().map(({ cluster, order, state, attempts }) => ({ cluster, order, state, attempts })),
    syncs: made
      .rows<SyncRow>("SyncOnCluster")
      .map(({ cluster, desired: { token: _token, ...desired } }) => ({ cluster, desired })),
  });

  test("the planner goes on with the same targets, planned in pages", { timeout: 60_000 }, async () => {
    const fleet = names(95);
    const strategy = { maxConcurrent: "100%" as const };
    const quiet = await world(fleet, strategy);
    await begun(quiet);
    let killed = true;
    for (let at = 1; killed; at++) {
      const made = await world(fleet, strategy);
      killed = await planUntil(made, { at, when });
      await made.plan();
      await made.renderAll();
      await planUntil(made, { at, when });
      await made.plan();
      expect(outcome(made), `killed at call ${at}`).toEqual(outcome(quiet));
    }
  });

  /** @returns whether the planner was killed before it had done. */
  async function planUntil(
    made: PlannerWorld,
    crash: { readonly at: number; readonly when: "before" | "after" },
  ): Promise<boolean> {
    const { table, sender } = new DisturbedPorts(made, { crash });
    const clock = { now: () => made.now };
    try {
      const ports = { table, sender, clock, blobs: made.blobs, ids: randomIds, log: silentLog, installation: "test" };
      await planSubject(subject, ports);
      return false;
    } catch (error) {
      if (error instanceof Crash) return true;
      throw error;
    }
  }
});

test("a group whose clusters change, or seem to, or just did, is looked at again within a minute or so", async () => {
  const made = new PlannerWorld();
  await made.addCluster("a", "all");
  await made.setSource("aaa");
  await made.setGroup({});
  await made.rollOut();
  const restSeconds = async () => {
    await made.plan();
    const head = await made.head();
    return (new Date(dueAtOf(head?.dueKey ?? "")).getTime() - made.now.getTime()) / 1000;
  };
  await made.observe("a", "Verifying", { reason: "NotReady" });
  expect(await restSeconds()).toBeLessThan(70);
  expect((await made.group()).status.clusters).toMatchObject({ changing: 1, ready: 0 });
  await made.observe("a", "Ready");
  expect(await restSeconds()).toBeLessThan(70);
  made.advanceClock(60);
  expect(await restSeconds()).toBeGreaterThan(500);
  expect((await made.group()).status.clusters).toMatchObject({ changing: 0, ready: 1 });
});
