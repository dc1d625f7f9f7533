/**
 * Rows of the planner's own, about one cluster, that a newer version wrote: other clusters go on, and the status names
 * the cluster.
 */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText, newestRowSchema, type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import { allSay, ana, begin, lease, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";

const setSchema = (made: PlannerWorld, key: RowKey, schema: number) =>
  made.table.write([{ update: key, set: { schema } }]);

/** @returns a check that the row is still as it was. */
async function makeNewer(made: PlannerWorld, key: RowKey): Promise<() => void> {
  await setSchema(made, key, newestRowSchema + 1);
  const stored = (): Row | undefined => made.table.all().find((row) => keyText(row) === keyText(key));
  const before = stored();
  return () => expect(stored()).toEqual(before);
}

async function makeReadable(made: PlannerWorld, key: RowKey): Promise<void> {
  await setSchema(made, key, rowSchema);
  made.advanceClock(700);
  await playOn(made);
  expect((await made.group()).status.state).toBe("Complete");
  expect(made.rolloutState().unreadable ?? []).toEqual([]);
}

const revision = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster))?.desired.revision;
const named = (cluster: string) =>
  new RegExp(`rows of cluster ${cluster} were written by a newer version .* the stack$`);
const message = async (made: PlannerWorld) => (await made.group()).status.conditions[0]?.message;
const all = { maxConcurrent: "100%", maxUnreachable: "50%" } as const;

describe("a slot that only a newer version can read", () => {
  const key = keys.slot(owner, "b");

  async function updatingTo(): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b", "c", "d"], { ...all, maxConcurrent: 2 });
    await made.rollOut();
    await revise(made, "bbb");
    return made;
  }

  test("an unreadable slot counts as in use, and the other clusters get their slots", async () => {
    const made = await updatingTo();
    const isLeftAlone = await makeNewer(made, key);
    await playOn(made);
    expect(made.states()).toMatchObject({ a: "Succeeded", c: "Succeeded", d: "Succeeded" });
    expect(made.stageRun("all")).toMatchObject({ phase: "Updating", counts: { Assigned: 1, Succeeded: 3 } });
    expect(made.rolloutState().stages[0]?.changing).toBe(1);
    expect(await message(made)).toMatch(named("b"));
    isLeftAlone();
    await makeReadable(made, key);
  });

  test("an unreadable slot still counts as in use after its stage was removed and added again", async () => {
    const made = await updatingTo();
    const isLeftAlone = await makeNewer(made, key);
    const two = { stages: [{ name: "one", clusters: { names: ["a"] } }, { name: "two" }] };
    await made.setGroup({ ...all, maxConcurrent: 2, ...two });
    await made.plan();
    await made.setGroup({ ...all, maxConcurrent: 2 });
    await playOn(made);
    // The stage of the slot is unknown: no other cluster gets its place meanwhile.
    expect(made.rolloutState().catchUps.changing).toBe(1);
    isLeftAlone();
    // The rollout that the removed stages had not passed goes no further.
    await made.setSource("ccc");
    await makeReadable(made, key);
    expect(made.slots()).toEqual([]);
    expect(made.rolloutState()).toMatchObject({ catchUps: { changing: 0 }, stages: [{ changing: 0, catchingUp: 0 }] });
  });

  test("a stage run with a new snapshot does not wait for an unreadable slot, and assigns its cluster nothing", async () => {
    const made = await updatingTo();
    const isLeftAlone = await makeNewer(made, key);
    const before = await made.sync("b");
    await made.operate({ refresh: ana(made.now) });
    await made.plan();
    for (const cluster of ["a", "c", "d"]) {
      await made.finish(cluster);
      await made.plan();
    }
    expect(made.stageRun("all").phase).toBe("Passed");
    expect(made.targets().filter((row) => row.stageRun.snapshot === 3 && row.cluster === "b")).toMatchObject([
      { state: "Unreachable", reason: expect.stringMatching(/^NewerRow: .* update the stack/) },
    ]);
    expect(await made.sync("b")).toEqual(before);
    isLeftAlone();
    await makeReadable(made, key);
  });

  test("a resume leaves an unreadable slot alone, and wakes the workers of the other slots", async () => {
    const made = await updatingTo();
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    made.sender.take();
    const isLeftAlone = await makeNewer(made, key);
    await made.operate({ resumed: ana(made.now) });
    await made.plan();
    const woken = made.sender.take().filter((one) => one.to === "apply");
    expect(woken).toMatchObject([{ cluster: "a" }]);
    isLeftAlone();
  });

  test("an unreadable slot keeps its row when its group is orphaned", async () => {
    const made = await updatingTo();
    const isLeftAlone = await makeNewer(made, key);
    await made.operate({ deletion: { ...ana(made.now), cascade: "orphan" } });
    await made.plan();
    expect(made.rows("SyncGroup")).toEqual([]);
    expect((await made.sync("b"))?.desired.action).toBe("orphan");
    isLeftAlone();
  });

  test("a deletion waits for the cluster of an unreadable slot, by name, when all others are done", async () => {
    const made = await updatingTo();
    const isLeftAlone = await makeNewer(made, key);
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    for (let round = 0; round < 6; round++) {
      await begin(made);
      for (const { cluster } of made.slots()) if (cluster !== "b") await made.finish(cluster);
    }
    expect(made.states()).toEqual({ a: "Succeeded", b: "Unreachable", c: "Succeeded", d: "Succeeded" });
    expect(await message(made)).toMatch(/^3 of 4 clusters done; b does not answer, and the deletion waits; /);
    isLeftAlone();
  });
});

describe("a target that only a newer version can read", () => {
  const failed = (made: PlannerWorld): TargetRow => {
    const row = made.targets().find(({ cluster }) => cluster === "b");
    if (row === undefined) throw new Error("b is no target");
    return row;
  };

  async function halted(): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b", "c", "d"], { ...all, maxConcurrent: 2, maxFailures: 1 });
    await made.rollOut();
    await revise(made, "bbb");
    await allSay(made, "Failed");
    expect(made.stageRun("all").phase).toBe("Halted");
    return made;
  }

  test("an unreadable target of a halted stage run keeps no cluster from a newer rollout", async () => {
    const made = await halted();
    const isLeftAlone = await makeNewer(made, failed(made));
    await made.setSource("ccc");
    await playOn(made);
    expect(await Promise.all(["a", "b", "c", "d"].map((name) => revision(made, name)))).toEqual(
      Array.from({ length: 4 }, () => "main@sha1:ccc"),
    );
    expect((await made.group()).status.state).toBe("Complete");
    isLeftAlone();
  });

  test("a reconcile gives an unreadable failed target no other turn, and retries the other failed targets", async () => {
    const made = await halted();
    const key = failed(made);
    const isLeftAlone = await makeNewer(made, key);
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toContain("a");
    expect(made.slots().map(({ cluster }) => cluster)).not.toContain("b");
    expect(made.rolloutState().unreadable).toEqual(["b"]);
    isLeftAlone();
    await setSchema(made, key, rowSchema);
    await made.operate({ reconcile: ana(made.now) });
    await playOn(made);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("an unreadable target does not stop a deletion of its group", async () => {
    const made = await worldOf(["a", "b", "c"], all);
    await made.rollOut();
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await begin(made);
    await made.finish("b", "Unreachable");
    await made.plan();
    expect(failed(made).state).toBe("Unreachable");
    const isLeftAlone = await makeNewer(made, failed(made));
    for (const name of ["a", "c"]) await made.finish(name);
    await made.plan();
    await made.plan();
    expect(made.states()).toEqual({ a: "Succeeded", b: "Unreachable", c: "Succeeded" });
    isLeftAlone();
    await setSchema(made, failed(made), rowSchema);
    await made.observe("b", "Reachable");
    await playOn(made, 4);
    expect(made.rows("SyncGroup")).toEqual([]);
  });
});

describe("a catch-up that only a newer version can read", () => {
  const joined = ["n1", "n2", "n3"];

  async function catchingUp(): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b"], { ...all, maxConcurrent: 1, maxFailures: 1 }, web);
    await made.rollOut();
    for (const name of joined) await made.addCluster(name, "all");
    await made.plan();
    expect(made.rolloutState().catchUps).toEqual({ waiting: 2, changing: 1, failed: 0 });
    return made;
  }

  test("an unreadable catch-up keeps no other cluster waiting", async () => {
    const made = await catchingUp();
    const key = keys.catchUp(owner, "waiting", "n2");
    const isLeftAlone = await makeNewer(made, key);
    await playOn(made);
    expect(await Promise.all(joined.map((name) => revision(made, name)))).toEqual([
      "main@sha1:aaa",
      undefined,
      "main@sha1:aaa",
    ]);
    expect(await message(made)).toMatch(named("n2"));
    isLeftAlone();
    await makeReadable(made, key);
  });

  test.each([
    ["entry in the fleet", { ...keys.fleet("n2"), type: "Fleet" }],
    ["slot", { ...keys.slot(owner, "n2"), type: "Slot" }],
  ])("a catch-up of a cluster whose %s is unreadable waits, and the others go on", async (_, key) => {
    const made = await catchingUp();
    await made.table.write([{ put: { ...key, type: key.type, schema: rowSchema, version: 9 } as Row }]);
    const isLeftAlone = await makeNewer(made, key);
    for (const name of ["n1", "n3"]) {
      await made.plan();
      await made.finish(name);
    }
    await made.plan();
    expect(made.rolloutState().catchUps).toEqual({ waiting: 1, changing: 0, failed: 0 });
    expect(made.rows("CatchUp")).toMatchObject([{ cluster: "n2" }]);
    expect(await message(made)).toMatch(named("n2"));
    isLeftAlone();
  });

  test("an unreadable failed catch-up is named in the status, and a reconcile retries the others", async () => {
    const made = await catchingUp();
    for (let round = 0; round < 3; round++) await allSay(made, "Failed");
    expect(made.rolloutState().catchUps.failed).toBe(2);
    const [first] = made.rows<{ cluster: string }>("CatchUp").filter((row) => "stage" in row);
    const cluster = first?.cluster ?? "";
    const key = keys.catchUp(owner, "failed", cluster);
    const isLeftAlone = await makeNewer(made, key);
    await made.operate({ reconcile: ana(made.now) });
    await playOn(made);
    for (const name of joined) if (name !== cluster) expect((await made.sync(name))?.observed?.phase).toBe("Ready");
    expect(await message(made)).toMatch(named(cluster));
    await made.setSource("bbb");
    await playOn(made);
    expect(await revision(made, "a")).toBe("main@sha1:bbb");
    isLeftAlone();
  });

  test("an unreadable catch-up does not keep its group from being deleted", async () => {
    const made = await catchingUp();
    const isLeftAlone = await makeNewer(made, keys.catchUp(owner, "waiting", "n2"));
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
    isLeftAlone();
  });
});

describe("a lease that only a newer version can read", () => {
  const key = keys.lease("a");

  async function worked(): Promise<PlannerWorld> {
    const made = await worldOf(["a", "b", "c"], { ...all, maxConcurrent: 2, maxFailures: 1 });
    await made.rollOut();
    await revise(made, "bbb");
    await lease(made, "a", { fence: 3, seconds: 120 });
    return made;
  }

  async function othersFinish(made: PlannerWorld): Promise<void> {
    for (const name of ["b", "c"]) {
      await made.finish(name);
      await made.plan();
    }
  }

  test("a failed cluster with an unreadable lease keeps its slot, and the others get theirs", async () => {
    const made = await worked();
    const isLeftAlone = await makeNewer(made, key);
    await made.observe("a", "Failed");
    await othersFinish(made);
    expect(made.states()).toEqual({ a: "Failed", b: "Succeeded", c: "Succeeded" });
    made.advanceClock(700);
    await made.plan();
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a"]);
    isLeftAlone();
    await setSchema(made, key, rowSchema);
    await made.plan();
    expect(made.slots()).toEqual([]);
  });

  test("a cluster that leaves with an unreadable lease keeps its slot until no worker holds the lease, and the others get theirs", async () => {
    const made = await worked();
    const isLeftAlone = await makeNewer(made, key);
    await made.removeCluster("a");
    await made.plan();
    await othersFinish(made);
    expect(made.states()).toEqual({ a: "Skipped", b: "Succeeded", c: "Succeeded" });
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["a"]);
    isLeftAlone();
    // The lease is readable again: the slot is kept until it ends.
    await setSchema(made, key, rowSchema);
    await made.plan();
    expect(made.slots()).toHaveLength(1);
    made.advanceClock(120);
    await made.plan();
    expect(made.slots()).toEqual([]);
  });
});
