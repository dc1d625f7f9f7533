/** A deletion ends while its group is suspended, after its template was added again. */
import { expect, test } from "vitest";
import { ana, begin, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";

const both = [...web, { name: "old", source: "app" }];
const pace = { maxConcurrent: 1 };

async function removingSuspended() {
  const made = await worldOf(["a", "b"], pace, both);
  await made.rollOut();
  await made.setGroup(pace, web);
  await begin(made);
  expect((await made.sync("a", "web.old"))?.desired.action).toBe("delete");
  await made.operate({ suspended: ana(made.now) });
  return made;
}

for (const seen of ["before", "after"] as const)
  test(`a Sync that a worker deleted during a suspension is restored on the resume, when its template was added again ${seen} that`, async () => {
    const made = await removingSuspended();
    if (seen === "after") await made.finish("a");
    await made.setGroup(pace, both);
    await made.plan(made.table, []);
    await made.finish("a");
    await made.plan();
    expect(made.slots()).toEqual([]);
    expect(await made.sync("a", "web.old")).toBeUndefined();
    expect(made.rows("CatchUp")).toMatchObject([{ cluster: "a", why: "returned", rollout: 1 }]);
    // The next rollout cannot help: its renderings are not made.
    await made.setSource("ccc");
    await made.operate({});
    await made.plan();
    expect((await made.sync("a", "web.old"))?.desired).toMatchObject({ action: "apply", rollout: 1 });
    await playOn(made);
    expect(made.rows("CatchUp")).toEqual([]);
    expect((await made.group()).status.clusters).toMatchObject({ selected: 2, ready: 2 });
  });

test("a Sync whose deletion failed during a suspension is restored on the resume", async () => {
  const made = await removingSuspended();
  await made.setGroup(pace, both);
  await made.plan(made.table, []);
  await made.finish("a", "Failed");
  await made.plan();
  expect(made.slots()).toEqual([]);
  await made.setSource("ccc");
  await made.operate({});
  await made.plan();
  expect((await made.sync("a", "web.old"))?.desired).toMatchObject({ action: "apply", rollout: 1 });
});

test("a deleted Sync is not restored when its template is dropped again before the resume", async () => {
  const made = await removingSuspended();
  await made.setGroup(pace, both);
  await made.plan(made.table, []);
  await made.finish("a");
  await made.plan();
  await made.setGroup(pace, web);
  await made.operate({});
  await made.plan();
  expect(await made.sync("a", "web.old")).toBeUndefined();
  await playOn(made);
  for (const name of ["a", "b"]) expect(await made.sync(name, "web.old")).toBeUndefined();
  expect(made.rows("CatchUp")).toEqual([]);
});

test("a deleted Sync is restored on the resume although its cluster's stage is removed and another rollout is in progress", async () => {
  const wide = { maxConcurrent: 4 };
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...wide, ...rings }, both);
  await made.rollOut();
  await revise(made, "bbb");
  await made.finish("c1");
  await begin(made);
  await made.setGroup({ ...wide, ...rings }, web);
  await begin(made);
  expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
  expect((await made.sync("c1", "web.old"))?.desired.action).toBe("delete");
  await made.operate({ suspended: ana(made.now) });
  await made.setGroup({ ...wide, stages: [{ name: "rest" }] }, both);
  await made.plan();
  await made.finish("c1");
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "r1" }]);
  expect(made.rows("CatchUp")).toMatchObject([{ cluster: "c1", rollout: 2 }]);
  // Nothing newer can be rendered, and the snapshot of the stage run does not include this cluster.
  await made.setSource("ccc");
  await made.operate({});
  await made.plan();
  expect(made.stages()).toEqual({ rest: "1 (2)" });
  expect((await made.sync("c1", "web.old"))?.desired).toMatchObject({ action: "apply", rollout: 2 });
});

test("a Sync that is restored in a slot of a removed stage gets the rollout that this stage had passed", async () => {
  const wide = { maxConcurrent: 4 };
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...wide, ...rings }, both);
  await made.rollOut();
  await made.setGroup({ ...wide, ...rings }, web);
  await begin(made);
  await made.setSource("ccc");
  await made.setGroup({ ...wide, stages: [{ name: "rest" }] }, both);
  // The planner does not check this slot before the stage is removed.
  await made.plan(made.table, []);
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "c1", stage: "canary", restores: 1 }]);
});

test("a cluster that changes stage and is to be restored has one catch-up for both", async () => {
  const wide = { maxConcurrent: 4, ...rings };
  const made = await worldOf({ c1: "canary", r1: "rest" }, wide, both);
  await made.rollOut();
  await made.setGroup(wide, web);
  await begin(made);
  await made.operate({ suspended: ana(made.now) });
  await made.setGroup(wide, both);
  await made.addCluster("c1", "rest");
  await made.plan();
  expect(made.rows("CatchUp")).toMatchObject([{ cluster: "c1", why: "joined" }]);
  expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 0, failed: 0 });
  await made.finish("c1");
  await made.plan();
  expect(made.slots()).toEqual([]);
  expect(made.rows("CatchUp")).toMatchObject([{ cluster: "c1", why: "joined", rollout: 1 }]);
  expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 0, failed: 0 });
});
