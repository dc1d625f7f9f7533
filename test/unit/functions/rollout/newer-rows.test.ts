/**
 * Rows that a newer version wrote before its deployment was rolled back: this version does not change them, and other
 * clusters go on.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { fleetVersionUpdate } from "#shared/fleet/rows/fleet-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, newestRowSchema, type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { owner, PlannerWorld } from "#test/support/planner-world.ts";

let world: PlannerWorld;

beforeEach(async () => {
  world = new PlannerWorld();
  for (const name of ["c1", "c2", "c3"]) await world.addCluster(name, "rest");
  await world.setSource("aaa");
  await world.setGroup({ maxUnreachable: "50%", maxConcurrent: "100%" });
  await world.rollOut();
  world.sender.take();
});

async function setSchema(key: RowKey, schema: number): Promise<void> {
  await world.table.write([{ update: key, set: { schema } }]);
}

async function makeNewer(key: RowKey): Promise<void> {
  await setSchema(key, newestRowSchema + 1);
  // A writer of a cluster's row in the fleet also changes the fleet's version.
  if (key.pk === keys.fleet("c2").pk) await world.table.write([fleetVersionUpdate(key.sk)]);
}
const makeReadable = (key: RowKey) => setSchema(key, rowSchema);

function stored(key: RowKey): Row | undefined {
  return world.table.all().find((row) => keyText(row) === keyText(key));
}

/** Plays every cluster that can be read, until nothing changes any more. */
async function playOn(): Promise<void> {
  for (let round = 0; round < 10; round++) {
    await world.plan();
    await world.renderAll();
    await world.plan();
    for (const { cluster } of world.slots()) if ((await world.sync(cluster)) !== undefined) await world.finish(cluster);
  }
}

const desired = async (cluster: string) => (await world.sync(cluster))?.desired;
const syncKey = keys.sync("c2", owner.namespace, "web.app");

describe("a cluster whose row in the fleet is unreadable", () => {
  beforeEach(() => makeNewer(keys.fleet("c2")));

  test("a group that selects the cluster by name goes on with its other clusters", async () => {
    await world.setGroup({ maxUnreachable: "50%", maxConcurrent: "100%" }, undefined, { names: ["c1", "c2"] });
    await playOn();
    expect((await world.group()).status).toMatchObject({ state: "Degraded", clusters: { selected: 2 } });
    expect((await desired("c3"))?.action).toBe("orphan");
    await world.setSource("bbb");
    await playOn();
    expect((await desired("c1"))?.revision).toBe("main@sha1:bbb");
    expect((await desired("c2"))?.revision).toBe("main@sha1:aaa");
  });

  test("the cluster stays selected, is not forgotten, and causes no rollout", async () => {
    const before = await desired("c2");
    await playOn();
    expect(world.rollouts()).toHaveLength(1);
    expect(await desired("c2")).toEqual(before);
    expect((await world.group()).status.clusters?.selected).toBe(3);
  });

  test("a new revision goes to the other clusters, and to this one when its row is readable", async () => {
    const before = await desired("c2");
    await world.setSource("bbb");
    await playOn();
    expect(world.stageRun("all").phase).toBe("Passed");
    expect((await desired("c1"))?.revision).toBe("main@sha1:bbb");
    expect(await desired("c2")).toEqual(before);

    await makeReadable(keys.fleet("c2"));
    world.advanceClock(700);
    await playOn();
    expect((await desired("c2"))?.revision).toBe("main@sha1:bbb");
    expect((await world.group()).status.state).toBe("Complete");
  });

  test("a cluster that is removed while unreadable is forgotten only after its row was readable", async () => {
    await world.setSource("bbb");
    await playOn();
    expect((await desired("c2"))?.action).toBe("apply");
    await makeReadable(keys.fleet("c2"));
    await world.removeCluster("c2");
    world.advanceClock(700);
    await playOn();
    expect((await desired("c2"))?.action).toBe("orphan");
  });

  test("a deletion of the group waits for the cluster", async () => {
    await world.operate({ deletion: { by: "dev", at: world.now.toISOString(), cascade: "delete" } });
    await playOn();
    expect(world.states()).toMatchObject({ c1: "Succeeded", c2: "Unreachable" });
    expect(await world.group()).toBeDefined();
    expect((await desired("c2"))?.action).toBe("apply");
  });
});

describe("the status of an idle group with an unreadable row", () => {
  async function checked() {
    world.advanceClock(700);
    await world.plan();
    const { status } = await world.group();
    const before = world.table.all();
    await world.plan();
    expect(world.table.all()).toEqual(before);
    return { ...status, ...status.conditions[0] };
  }
  const skipped = {
    state: "Degraded",
    reason: "NewerRow",
    clusters: { selected: 3, ready: 2, unreachable: 1 },
    message: expect.stringMatching(/^2 of 3 clusters ready; rows of cluster c2 .* newer version .* update the stack$/),
  };
  const well = { state: "Complete", reason: "AllClustersReady", clusters: { selected: 3, ready: 3, unreachable: 0 } };

  test("the status names a cluster whose row in the fleet is unreadable", async () => {
    expect(await checked()).toMatchObject(well);
    await makeNewer(keys.fleet("c2"));
    expect(await checked()).toMatchObject(skipped);
    await makeReadable(keys.fleet("c2"));
    expect(await checked()).toMatchObject(well);
  });

  test("the status does not mention an unreadable cluster that is not selected", async () => {
    await world.setGroup({}, undefined, { selector: { matchLabels: { ring: "rest" } } });
    await world.addCluster("other", "none");
    await playOn();
    await makeNewer(keys.fleet("other"));
    expect(await checked()).toMatchObject(well);
  });

  test("the status names a cluster that a rollout left out because its Sync is unreadable", async () => {
    await makeNewer(syncKey);
    await world.setSource("bbb");
    await playOn();
    expect(world.stageRun("all").phase).toBe("Passed");
    expect(await checked()).toMatchObject(skipped);
  });
});

describe("a cluster whose Sync is unreadable", () => {
  test("the cluster counts as unreachable, its row is left alone, and it catches up when the row is readable", async () => {
    await makeNewer(syncKey);
    const before = stored(syncKey);
    await world.setSource("bbb");
    await playOn();
    expect(world.states()).toEqual({ c1: "Succeeded", c2: "Unreachable", c3: "Succeeded" });
    expect(world.targets().find(({ cluster }) => cluster === "c2")?.reason).toMatch(/^NewerRow: .* update the stack/);
    expect(stored(syncKey)).toEqual(before);

    await makeReadable(syncKey);
    world.advanceClock(700);
    await playOn();
    expect((await desired("c2"))?.revision).toBe("main@sha1:bbb");
  });

  /** One cluster has the only slot, for a Sync that a newer worker has written. */
  async function slotOfNewer() {
    await world.setGroup({ maxUnreachable: "50%", maxConcurrent: 1 });
    await world.setSource("bbb");
    await world.plan();
    await world.renderAll();
    await world.plan();
    const slots = world.slots();
    expect(slots).toHaveLength(1);
    await makeNewer(keys.sync(slots[0]?.cluster ?? "", owner.namespace, "web.app"));
    return slots;
  }

  test("the cluster keeps its slot until its deadline, and then releases it", async () => {
    const slots = await slotOfNewer();
    // A newer worker may still be working on it.
    world.advanceClock(599);
    await world.plan();
    expect(world.slots()).toEqual(slots);
    world.advanceClock(1);
    await world.plan();
    await playOn();
    expect(Object.values(world.states()).sort()).toEqual(["Succeeded", "Succeeded", "Unreachable"]);
  });

  test("the cluster keeps its slot for as long as the group is suspended", async () => {
    const slots = await slotOfNewer();
    await world.operate({ suspended: { by: "ana", at: world.now.toISOString() } });
    world.advanceClock(3600);
    await world.plan();
    expect(world.slots()).toEqual(slots);
    await world.operate({ resumed: { by: "ana", at: world.now.toISOString() } });
    world.advanceClock(599);
    await world.plan();
    expect(world.slots()).toEqual(slots);
    world.advanceClock(1);
    await world.plan();
    await playOn();
    expect(Object.values(world.states()).sort()).toEqual(["Succeeded", "Succeeded", "Unreachable"]);
  });

  test("a Sync whose cluster left the fleet is not forgotten while it is unreadable", async () => {
    await makeNewer(syncKey);
    const before = stored(syncKey);
    await world.removeCluster("c2");
    await playOn();
    await world.setSource("bbb");
    await playOn();
    // Only a deletion includes clusters that are not members.
    expect(world.stageRun("all").size).toBe(2);
    expect(stored(syncKey)).toEqual(before);
    await makeReadable(syncKey);
    world.advanceClock(700);
    await playOn();
    expect((await desired("c2"))?.action).toBe("orphan");
  });

  test("a Sync whose cluster was deselected is forgotten when it is readable", async () => {
    await makeNewer(syncKey);
    await playOn();
    await world.setGroup({ maxUnreachable: "50%", maxConcurrent: "100%" }, undefined, { names: ["c1", "c3"] });
    await playOn();
    expect(stored(syncKey)).toMatchObject({ schema: newestRowSchema + 1 });
    await makeReadable(syncKey);
    world.advanceClock(700);
    await playOn();
    expect((await desired("c2"))?.action).toBe("orphan");
  });

  test("a reconcile does not write an unreadable Sync", async () => {
    await makeNewer(syncKey);
    const before = stored(syncKey);
    await world.operate({ reconcile: { by: "dev", at: world.now.toISOString() } });
    await world.plan();
    expect(stored(syncKey)).toEqual(before);
    expect((await world.sync("c1"))?.reconcile).toBeDefined();
  });
});

describe("a group that has an unreadable row", () => {
  const unread: Readonly<Record<string, RowKey>> = {
    Source: keys.object(owner.namespace, "Source", "app"),
    "rollout state": keys.rolloutState(owner),
    Rollout: keys.rollout(owner, 2),
    "stage run in progress": keys.stageRun(owner, { rollout: 2, stage: "all", snapshot: 2 }),
    "stage run that has passed": keys.stageRun(owner, { rollout: 1, stage: "all", snapshot: 1 }),
  };

  test.each(Object.entries(unread))(
    "a group with this unreadable row reports it, changes no other row, and is planned when the row is readable: %s",
    async (_, key) => {
      await world.setSource("bbb");
      await world.plan();
      world.sender.take();
      await makeNewer(key);
      const others = () => world.table.all().filter(({ type }) => type !== "SyncGroup");
      const before = others();
      await world.plan();
      await world.plan();
      expect(others()).toEqual(before);
      const { status, dueKey } = await world.group();
      expect(status).toMatchObject({ state: "Waiting", conditions: [{ reason: "NewerRow" }] });
      expect(status.conditions[0]?.message).toMatch(/update the stack/);
      expect(dueKey).toBeDefined();

      await makeReadable(key);
      await playOn();
      expect((await world.group()).status.state).toBe("Complete");
    },
  );

  test("a group whose own row is unreadable is left alone, and the planner does not fail", async () => {
    const key = keys.object(owner.namespace, "SyncGroup", owner.name);
    await makeNewer(key);
    const before = world.table.all();
    await world.plan();
    expect(world.table.all()).toEqual(before);
    expect((stored(key) as SyncGroupRow | undefined)?.status.state).toBe("Complete");
  });
});

test("clusters with an unreadable rendering count as unreachable until it is readable", async () => {
  await world.setSource("bbb");
  await world.plan();
  await world.renderAll();
  const input = world.rows<RenderingRow>("Rendering").at(-1)?.input ?? "";
  const newest = world.rows<RenderingRow>("Rendering").find(({ artifactDigest }) => artifactDigest === digestOf("bbb"));
  const key = keys.rendering(newest?.input ?? input);
  await makeNewer(key);
  const before = stored(key);
  await playOn();
  expect(new Set(Object.values(world.states()))).toEqual(new Set(["Unreachable"]));
  expect(stored(key)).toEqual(before);
  await makeReadable(key);
  world.advanceClock(700);
  await playOn();
  expect((await world.group()).status.state).toBe("Complete");
});

test("every one of many unreadable clusters catches up when it is readable, also those that the row does not name", {
  timeout: 60_000,
}, async () => {
  const group = { maxUnreachable: "100%", maxConcurrent: "100%" } as const;
  for (let number = 0; number < 105; number++) await world.addCluster(`n${number}`, "rest");
  await world.setGroup(group);
  await playOn();
  const rows = world.rows<SyncRow>("SyncOnCluster").slice(0, 107);
  for (const row of rows) await makeNewer(row);
  await world.setSource("bbb");
  await playOn();
  expect(world.stages()).toEqual({ all: "2" });
  expect(world.rolloutState().unreadable).toHaveLength(100);
  world.advanceClock(60);
  await world.plan();
  expect((await world.group()).status.clusters).toMatchObject({ selected: 108, ready: 1, unreachable: 107 });
  for (const row of rows) await makeReadable(row);
  world.advanceClock(700);
  await playOn();
  const old = world.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.revision !== "main@sha1:bbb");
  expect(old).toEqual([]);
  expect(world.rolloutState()).toMatchObject({ unreadable: [], catchUps: { waiting: 0, changing: 0, failed: 0 } });
});

test("every one of many clusters with unreadable fleet rows goes on when its row is readable", {
  timeout: 60_000,
}, async () => {
  for (let number = 0; number < 97; number++) await world.addCluster(`n${number}`, "rest");
  await world.setGroup({ maxUnreachable: "100%", maxConcurrent: "100%" });
  await playOn();
  const all = world.rows<FleetRow>("Fleet");
  for (const row of all) await makeNewer(row);
  await world.table.write([fleetVersionUpdate("c1")]);
  await playOn();
  expect(world.rolloutState().unreadable).toHaveLength(100);
  // One cluster leaves, and fewer are left than the row could name.
  await world.removeCluster("n5");
  world.advanceClock(700);
  await playOn();
  for (const row of all) if (row.name !== "n5") await makeReadable(row);
  world.advanceClock(700);
  await playOn();
  await world.setSource("ddd");
  await playOn();
  const old = world.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.revision !== "main@sha1:ddd");
  expect(old.map(({ cluster }) => cluster)).toEqual(["n5"]);
});
