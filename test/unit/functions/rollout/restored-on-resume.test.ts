/** A removal that is through while its group is suspended, of what was put back meanwhile. */
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
  test(`what a worker deletes while the group is suspended is given back on its resume, where it was put back ${seen} that`, async () => {
    const made = await removingSuspended();
    if (seen === "after") await made.finish("a");
    await made.setGroup(pace, both);
    await made.plan(made.table, []);
    await made.finish("a");
    await made.plan();
    expect(made.slots()).toEqual([]);
    expect(await made.sync("a", "web.old")).toBeUndefined();
    expect(made.rows("CatchUp")).toMatchObject([{ cluster: "a", why: "returned", rollout: 1 }]);
    // The next content, which nobody renders, does not help.
    await made.setSource("ccc");
    await made.operate({});
    await made.plan();
    expect((await made.sync("a", "web.old"))?.desired).toMatchObject({ action: "apply", rollout: 1 });
    await playOn(made);
    expect(made.rows("CatchUp")).toEqual([]);
    expect((await made.group()).status.clusters).toMatchObject({ selected: 2, ready: 2 });
  });

test("what could not be deleted while the group is suspended is given back, too", async () => {
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

test("is given back to nobody where it is dropped again before the resume", async () => {
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

test("is given back where the stage of its cluster is no more by the resume, and another content goes through the next", async () => {
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
  // Nothing newer can be rendered, and what goes through its stage was sealed without it.
  await made.setSource("ccc");
  await made.operate({});
  await made.plan();
  expect(made.stages()).toEqual({ rest: "1 (2)" });
  expect((await made.sync("c1", "web.old"))?.desired).toMatchObject({ action: "apply", rollout: 2 });
});

test("what is taken back in the slot of a stage that is no more is given of what that had passed", async () => {
  const wide = { maxConcurrent: 4 };
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...wide, ...rings }, both);
  await made.rollOut();
  await made.setGroup({ ...wide, ...rings }, web);
  await begin(made);
  await made.setSource("ccc");
  await made.setGroup({ ...wide, stages: [{ name: "rest" }] }, both);
  // Its slot is not looked at before the stage is gone.
  await made.plan(made.table, []);
  await made.plan();
  expect(made.slots()).toMatchObject([{ cluster: "c1", stage: "canary", restores: 1 }]);
});

test("where its cluster is to come to another stage besides, one arrival stands for both", async () => {
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
