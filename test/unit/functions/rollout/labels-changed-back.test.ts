/** Clusters whose labels change, and change back, before the planner lists the members. */
import { describe, expect, test } from "vitest";
import type { Table } from "#shared/ports.ts";
import { begin, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

const clusters = {
  selector: { matchExpressions: [{ key: "ring", operator: "In", values: ["canary", "rest"] }] },
};
const pace = { ...rings, maxConcurrent: 5 };
const elsewhere = ["rest", "none"] as const;

/** The table of a call during which `act` runs, just before the call reads rows whose keys contain all these words. */
function midst(made: PlannerWorld, words: readonly string[], act: () => Promise<void>) {
  let isDone = false;
  const { table } = made;
  const getMany = async (...[keys, reading]: Parameters<Table["getMany"]>) => {
    const isIt = (word: string) => keys.some(({ pk, sk }) => `${pk}#${sk}`.split("#").includes(word));
    if (!isDone && words.every(isIt)) {
      isDone = true;
      await act();
    }
    return table.getMany(keys, reading);
  };
  return { table: { ...bound(table), getMany } as Table, isDone: () => isDone };
}

function bound(table: Table): Omit<Table, "getMany"> {
  return {
    get: table.get.bind(table),
    query: table.query.bind(table),
    queryIndex: table.queryIndex.bind(table),
    write: table.write.bind(table),
    update: table.update.bind(table),
  };
}

describe.each(elsewhere)("a cluster that is in the ring %s for a moment", (ring) => {
  test("a cluster that is elsewhere for a moment remains a target of its stage run", async () => {
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, pace, web, clusters);
    await made.rollOut();
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll();
    const { table, isDone } = midst(made, ["c2", "SLOT"], () => made.addCluster("c2", ring));
    await made.plan(table);
    expect(isDone()).toBe(true);
    await made.addCluster("c2", "canary");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect((await made.sync("c2"))?.desired.revision).toBe("main@sha1:bbb");
  });

  test("a cluster that joins, and is elsewhere for a moment, gets the current rollout of its stage", async () => {
    for (const kind of ["waiting", "SLOT"]) {
      const made = await worldOf({ c1: "canary", r1: "rest" }, pace, web, clusters);
      await made.rollOut();
      await made.addCluster("c2", "canary");
      const { table, isDone } = midst(made, ["c2", kind], () => made.addCluster("c2", ring));
      await made.plan(table);
      expect(isDone(), kind).toBe(true);
      await made.addCluster("c2", "canary");
      await playOn(made);
      expect((await made.sync("c2"))?.observed?.phase, kind).toBe("Ready");
      expect(made.rolloutState().catchUps, kind).toEqual({ waiting: 0, changing: 0, failed: 0 });
    }
  });

  test("a cluster that stays elsewhere is assigned accordingly with the next list of members", async () => {
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, pace, web, clusters);
    await made.rollOut();
    await made.setSource("bbb");
    await made.plan();
    await made.renderAll();
    await made.plan(midst(made, ["c2", "SLOT"], () => made.addCluster("c2", ring)).table);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    const after = (await made.sync("c2"))?.desired;
    expect(after).toMatchObject(ring === "none" ? { action: "orphan" } : { revision: "main@sha1:bbb" });
  });
});

test("a cluster that changes stage with an unpassed rollout goes back to the rollout of its new stage", async () => {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, pace);
  await begin(made);
  for (const name of ["c1", "c2"]) await made.finish(name);
  await begin(made);
  await revise(made, "bbb");
  await made.finish("c1", "Failed");
  await made.finish("c2", "Failed");
  await made.plan();
  expect(made.stages()).toEqual({ canary: "1 (2)", rest: "- (1)" });
  await made.addCluster("c2", "rest");
  await begin(made);
  expect(made.stageRun("rest")).toMatchObject({ rollout: 1, size: 2 });
  expect((await made.sync("c2"))?.desired).toMatchObject({ rollout: 1, attempt: 3, revision: "main@sha1:aaa" });
});

test("a cluster that changes stage before its turn is skipped in its old stage", async () => {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, { ...pace, maxConcurrent: 1 });
  await made.rollOut();
  await revise(made, "bbb");
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c1"]);
  await made.addCluster("c2", "rest");
  await made.finish("c1");
  await begin(made);
  expect(made.targets().filter(({ stageRun }) => stageRun.stage === "canary")).toMatchObject([
    { cluster: "c1", state: "Succeeded" },
    { cluster: "c2", state: "Skipped", reason: "moved to stage rest" },
  ]);
});

test("a cluster that joins while its stage is renamed catches up in the renamed stage", async () => {
  const made = await worldOf({ c1: "canary", r1: "rest" }, pace, web, clusters);
  await made.rollOut();
  await made.addCluster("c2", "canary");
  const stages = [{ ...rings.stages[0], name: "first" }, { name: "others" }];
  const rename = () => made.setGroup({ ...pace, stages }, web, clusters);
  const { table, isDone } = midst(made, ["c2", "waiting"], rename);
  await made.plan(table);
  expect(isDone()).toBe(true);
  await playOn(made);
  expect((await made.sync("c2"))?.observed?.phase).toBe("Ready");
});

describe("a cluster whose labels change while it is assigned", () => {
  const flavours = [{ name: "app", source: "app", path: "{{ cluster.labels.flavour }}" }] as const;
  const of = (flavour: string) => ({ labels: { flavour } });

  test("a cluster gets the rollout of its own stage, although it was in another stage for a moment", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, pace, web, clusters);
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await begin(made);
    await made.finish("r1", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await made.addCluster("c2", "canary");
    const { table, isDone } = midst(made, ["c2", "SLOT"], () => made.addCluster("c2", "rest"));
    await made.plan(table);
    expect(isDone()).toBe(true);
    await made.addCluster("c2", "canary");
    await playOn(made);
    expect((await made.sync("c2"))?.desired.revision).toBe("main@sha1:bbb");
  });

  test("a cluster that joins gets the rendering of its own labels, although they differed for a moment", async () => {
    const made = await worldOf({}, pace, flavours, clusters);
    await made.addCluster("c1", "canary", of("a"));
    await made.addCluster("r1", "rest", of("b"));
    await made.rollOut();
    await made.addCluster("c2", "canary", of("a"));
    const { table, isDone } = midst(made, ["c2", "SLOT"], () => made.addCluster("c2", "canary", of("b")));
    await made.plan(table);
    expect(isDone()).toBe(true);
    await made.addCluster("c2", "canary", of("a"));
    await playOn(made);
    const digests = await Promise.all(["c1", "c2"].map(async (name) => (await made.sync(name))?.desired.renderDigest));
    expect(digests[1]).toBe(digests[0]);
  });
});
