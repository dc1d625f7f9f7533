/** The lists of clusters that a planner keeps in the bucket, when somebody deletes them. */
import { describe, expect, test } from "vitest";
import { PlannerWorld } from "#test/support/planner-world.ts";

const names = (count: number) => Array.from({ length: count }, (_, index) => `c${String(index).padStart(3, "0")}`);

async function world(...clusters: readonly string[]): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  for (const name of clusters) await made.addCluster(name, "all");
  await made.setSource("aaa");
  await made.setGroup({ maxConcurrent: 10, maxFailures: 0 });
  return made;
}

async function settled(...clusters: readonly string[]): Promise<PlannerWorld> {
  const made = await world(...clusters);
  await made.rollOut();
  await made.plan();
  return made;
}

const gone = (blobs: PlannerWorld["blobs"], key: string) => blobs.lose(key);
const written = (text: string) => (blobs: PlannerWorld["blobs"], key: string) =>
  blobs.overwrite(key, Buffer.from(text));

describe.each([
  ["is lost", gone],
  ["was emptied", written("[]")],
  ["was cut off", written('[{"cluster":"a","inp')],
] as const)("a list of clusters that %s", (_what, loseOne) => {
  async function lose(made: PlannerWorld): Promise<void> {
    for (const key of [(await made.head())?.members, ...made.rollouts().map(({ members }) => members)]) {
      if (key !== undefined) await loseOne(made.blobs, key);
    }
  }

  test("is stored again when nothing has changed, and nothing is rolled out for it", async () => {
    const made = await settled("a", "b");
    const key = (await made.head())?.members ?? "";
    const before = await made.blobs.get(key);
    await lose(made);
    made.advanceClock(700);
    await made.plan();
    expect(await made.blobs.get(key)).toEqual(before);
    expect(made.rollouts()).toHaveLength(1);
    expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: 2, ready: 2 } });
  });

  test("holds up no commit, and who left is let go", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.removeCluster("b");
    await made.setSource("bbb");
    await made.rollOut();
    expect(made.states()).toEqual({ a: "Succeeded", b: "Skipped" });
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
  });

  test("holds up no reconcile", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.operate({ reconcile: { by: "ana", at: made.now.toISOString() } });
    await made.plan();
    for (const name of ["a", "b"]) await made.observe(name, "Ready");
    await made.plan();
    expect((await made.group()).status).toMatchObject({ state: "Complete", reconciled: 1 });
  });

  test("holds up no suspended group", async () => {
    const made = await settled("a", "b");
    await made.operate({ suspended: { by: "ana", at: made.now.toISOString() } });
    await lose(made);
    await made.plan();
    expect((await made.group()).status).toMatchObject({ state: "Suspended" });
  });

  test("of a halted rollout holds up no newer commit", async () => {
    const made = await settled("a", "b");
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll();
    await made.plan();
    await made.observe("a", "Failed");
    await made.plan();
    expect(made.newest()).toMatchObject({ phase: "Halted" });
    await lose(made);
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.states()).toEqual({ a: "Succeeded", b: "Succeeded" });
  });

  test("holds up no deletion, which reaches every cluster", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.operate({ deletion: { by: "ana", at: made.now.toISOString(), cascade: "delete" } });
    await made.plan();
    for (const name of ["a", "b"]) expect((await made.sync(name))?.desired.action).toBe("delete");
  });

  test("while a rollout is planned makes it planned anew", async () => {
    const made = await world(...names(200));
    // The first targets are written, and then the planner dies.
    const write = made.table.write.bind(made.table);
    made.table.write = async (writes) => {
      await write(writes);
      if (made.rollouts().length > 0) throw new Error("killed");
    };
    await expect(made.plan()).rejects.toThrow("killed");
    made.table.write = write;
    expect(made.newest()).toMatchObject({ number: 1, phase: "Planning" });
    await lose(made);
    await made.plan();
    expect(made.rollouts()).toMatchObject([{ phase: "Superseded" }, { phase: "Running", size: 200 }]);
  });
});
