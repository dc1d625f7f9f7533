/** A removal that is through while its group is suspended, of what was put back meanwhile. */
import { expect, test } from "vitest";
import { ana, begin, playOn, web, worldOf } from "#test/support/planner-story.ts";

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
    expect(made.rows("Arrival")).toMatchObject([{ cluster: "a", why: "returned", content: 1 }]);
    // The next content, which nobody renders, does not help.
    await made.setSource("ccc");
    await made.operate({});
    await made.plan();
    expect((await made.sync("a", "web.old"))?.desired).toMatchObject({ action: "apply", rollout: 1 });
    await playOn(made);
    expect(made.rows("Arrival")).toEqual([]);
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
  expect(made.rows("Arrival")).toEqual([]);
});
