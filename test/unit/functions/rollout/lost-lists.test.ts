/** The planner's lists of clusters in the bucket, when somebody deletes or damages them. */
import { describe, expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import type { Job, RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { BlobStore, Table } from "#shared/ports.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { Crash, DisturbedPorts } from "#test/support/planner-model/disturbed-ports.ts";
import { allSay, ana, begin, names, ownPaths, revise, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const group = { maxConcurrent: 10, maxFailures: 0 };

async function settled(...clusters: readonly string[]): Promise<PlannerWorld> {
  const made = await worldOf(clusters, group);
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
    const keys = [made.rolloutState().members, ...made.stageRuns().flatMap(({ pages }) => pages.map(({ key }) => key))];
    for (const key of keys) if (key !== undefined) await loseOne(made.blobs, key);
  }

  test("a damaged list changes nothing while nothing else has changed", async () => {
    const made = await settled("a", "b");
    await lose(made);
    made.advanceClock(700);
    await made.plan();
    expect(made.rollouts()).toHaveLength(1);
    expect((await made.sync("a"))?.desired).toMatchObject({ action: "apply", attempt: 1 });
    expect((await made.group()).status).toMatchObject({ state: "Complete", clusters: { selected: 2, ready: 2 } });
  });

  test("a damaged list delays no commit: every cluster gets it", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.setSource("bbb");
    await made.rollOut();
    expect(made.states()).toEqual({ a: "Succeeded", b: "Succeeded" });
    expect((await made.sync("a"))?.desired).toMatchObject({ action: "apply", attempt: 2 });
  });

  test("a damaged list delays no commit, and a cluster that left is forgotten", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.removeCluster("b");
    await made.setSource("bbb");
    await made.rollOut();
    expect(made.states()).toEqual({ a: "Succeeded" });
    expect((await made.sync("a"))?.desired).toMatchObject({ action: "apply", attempt: 2 });
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
  });

  test("a cluster that joins gets its rollout although the list is damaged", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.addCluster("c", "all");
    await made.rollOut();
    expect((await made.sync("c"))?.observed?.phase).toBe("Ready");
    expect((await made.sync("a"))?.desired.attempt).toBe(1);
  });

  test("a cluster whose labels change gets its new rendering although the list is damaged", async () => {
    const made = await worldOf(["a", "b"], group, [{ name: "app", source: "app", path: "{{ cluster.labels.ring }}" }]);
    await made.rollOut();
    await lose(made);
    await made.addCluster("b", "other");
    await made.rollOut();
    expect((await made.sync("b"))?.desired).toMatchObject({
      attempt: 2,
      renderDigest: digestOf(`${digestOf("aaa")}other`),
    });
    expect((await made.sync("a"))?.desired.attempt).toBe(1);
    expect(made.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  });

  test("a damaged list delays no reconcile", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    for (const name of ["a", "b"]) await made.observe(name, "Ready");
    await made.plan();
    expect((await made.group()).status).toMatchObject({ state: "Complete", reconciled: 1 });
  });

  test("a damaged list does not affect a suspended group", async () => {
    const made = await settled("a", "b");
    await made.operate({ suspended: ana(made.now) });
    await lose(made);
    await made.plan();
    expect((await made.group()).status).toMatchObject({ state: "Suspended" });
  });

  test("a damaged list of a halted stage run delays no newer commit", async () => {
    const made = await settled("a", "b");
    await revise(made, "bbb");
    await allSay(made, "Failed");
    expect(made.stageRun("all").phase).toBe("Halted");
    await lose(made);
    await made.setSource("ccc");
    await made.rollOut();
    expect(made.states()).toEqual({ a: "Succeeded", b: "Succeeded" });
  });

  test("a damaged list of a halted stage run does not start it again", async () => {
    const made = await worldOf(["a", "b", "c"], { maxConcurrent: 1 });
    await begin(made);
    await allSay(made, "Failed");
    for (const { key } of made.stageRun("all").pages) await loseOne(made.blobs, key);
    made.advanceClock(700);
    await made.plan();
    expect(made.stageRuns().map(({ phase }) => phase)).toEqual(["Halted"]);
    expect((await made.group()).status).toMatchObject({ state: "Halted", clusters: { selected: 3, failed: 1 } });
  });

  test("a stage run in progress whose list is damaged takes a new snapshot, and keeps the attempts in progress", {
    timeout: 60_000,
  }, async () => {
    const made = await worldOf(names(200), group);
    await begin(made);
    expect(made.stageRun("all").counts.Assigned).toBe(10);
    await lose(made);
    await allSay(made, "Ready");
    await made.rollOut();
    expect(made.stageRuns().map(({ rollout, phase }) => [rollout, phase])).toEqual([
      [1, "Superseded"],
      [1, "Passed"],
    ]);
    expect(made.stageRun("all").counts).toMatchObject({ Succeeded: 200, Unchanged: 0 });
    expect((await made.sync("c000"))?.desired.attempt).toBe(1);
  });

  test("a damaged list delays no deletion, which reaches every cluster", async () => {
    const made = await settled("a", "b");
    await lose(made);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await made.plan();
    for (const name of ["a", "b"]) expect((await made.sync(name))?.desired.action).toBe("delete");
  });
});

test("the planner does not need the list of a passed stage run, also when a target of it could not be rendered", async () => {
  const made = await worldOf(["a", "b"], { maxConcurrent: 2, maxFailures: 1 }, ownPaths);
  await made.plan();
  const isOfA = ({ path }: RenderingRow) => path === "clusters/a";
  await made.renderAll({ message: "tried 5 times", retryAt: "2026-11-21T12:00:00.000Z" }, isOfA);
  await made.renderAll();
  await made.plan();
  await allSay(made, "Ready");
  expect(made.stageRun("all")).toMatchObject({ phase: "Passed", unrendered: [0] });
  for (const { key } of made.stageRun("all").pages) made.blobs.lose(key);
  await made.plan();
  await made.renderRested();
  await made.rollOut();
  expect((await made.sync("a"))?.observed?.phase).toBe("Ready");
  expect(made.stageRuns().map(({ rollout, snapshot }) => [rollout, snapshot])).toEqual([[1, 1]]);
});

test("the loss of a list of joined and removed clusters keeps no cluster from being assigned or forgotten, whenever it is lost", async () => {
  for (let at = 1; at <= 16; at++) {
    const made = await settled("a", "b");
    await made.addCluster("c", "all");
    await made.removeCluster("b");
    const lists = () => made.rolloutState().jobs.flatMap((job) => ("clusters" in job ? [job.clusters] : []));
    const act = async () => {
      for (const key of lists()) made.blobs.lose(key);
    };
    await made.plan(new DisturbedPorts(made, { midst: [{ at, act }] }).table);
    await made.rollOut();
    const found = [await made.sync("a"), await made.sync("b"), await made.sync("c")];
    expect(found.map((sync) => sync?.desired.action)).toEqual(["apply", "orphan", "apply"]);
    expect(found[0]?.desired.attempt).toBe(1);
  }
});

describe("a planner that dies, and whose list is lost before the next call", { timeout: 60_000 }, () => {
  /** The planner dies with the first write after which the condition holds. */
  async function dieWith(made: PlannerWorld, isLeft: () => boolean): Promise<void> {
    const { table } = new DisturbedPorts(made, { mostCalls: 600 });
    const dying: Table = {
      ...table,
      async write(writes) {
        await table.write(writes);
        if (isLeft()) throw new Crash();
      },
    };
    await expect(made.plan(dying)).rejects.toThrow(Crash);
  }

  /** The test fails when the planner asks for the lost list again and again. */
  async function goOn(made: PlannerWorld): Promise<void> {
    let reads = 0;
    const get: BlobStore["get"] = (key, limits) => {
      if (++reads > 300) throw new Error("the planner goes on for ever");
      return MemoryBlobStore.prototype.get.call(made.blobs, key, limits);
    };
    Object.assign(made.blobs, { get });
    await made.plan(new DisturbedPorts(made, { mostCalls: 600 }).table);
    Object.assign(made.blobs, { get: MemoryBlobStore.prototype.get });
  }

  const all = { maxConcurrent: "100%" } as const;

  test.each([
    ["none", (at: number) => at === 0],
    ["some", (at: number) => at > 0],
  ])(
    "the next call forgets every cluster that left, and no other, where %s of them were forgotten before",
    async (_many, isThere) => {
      const leavers = names(45);
      const made = await worldOf(["a", "b", ...leavers], all);
      await made.rollOut();
      for (const name of leavers) await made.removeCluster(name);
      const job = () => made.rolloutState().jobs.find((one): one is Job & { do: "leave" } => one.do === "leave");
      await dieWith(made, () => isThere(job()?.at ?? -1));
      made.blobs.lose(job()?.clusters ?? "");
      await goOn(made);
      await made.rollOut();
      for (const name of leavers) expect((await made.sync(name))?.desired.action).toBe("orphan");
      for (const name of ["a", "b"])
        expect((await made.sync(name))?.desired).toMatchObject({ action: "apply", attempt: 1 });
    },
  );

  test("the next call forgets every cluster of a group whose objects stay", async () => {
    const fleet = names(150);
    const made = await worldOf(fleet, all);
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } });
    await dieWith(made, () => (made.rolloutState().sweep?.at ?? 0) > 0);
    made.blobs.lose(made.rolloutState().sweep?.clusters ?? "");
    await goOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
    for (const name of fleet) expect((await made.sync(name))?.desired.action).toBe("orphan");
  });
});
