/** A template that is dropped and added again, where a cluster that lost it cannot get it back at once. */
import { describe, expect, test } from "vitest";
import { digestOf } from "#shared/base/digest.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { CatchUpRow, RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { ana, lease, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

type Strategy = Parameters<PlannerWorld["setGroup"]>[0];

const both = [...web, { name: "data", source: "app" }];
const pace = { maxConcurrent: 2, maxFailures: 3, maxUnreachable: 3 };
const strategy = { ...rings, ...pace };
const data = async (made: PlannerWorld, cluster: string) => (await made.sync(cluster, "web.data"))?.desired;
const catchUps = (made: PlannerWorld) => made.rows<CatchUpRow>("CatchUp").map(({ sk, rollout }) => [sk, rollout]);
const freeze = (made: PlannerWorld) => ({ name: "f", by: "ana", at: made.now.toISOString(), reason: "x" });

/** Every slot's cluster finishes its attempt as Ready; the named cluster ends in the given phase. */
async function settle(made: PlannerWorld, cluster = "", phase: "Failed" | "Unreachable" = "Failed"): Promise<void> {
  for (let round = 0; round < 6; round++) {
    for (const slot of made.slots())
      if (slot.releasing === undefined) await made.finish(slot.cluster, slot.cluster === cluster ? phase : "Ready");
    await made.plan();
  }
}

/** `rest` is updating to a rollout without `data`; `r` has lost it, and `s` is about to lose it. */
async function dropped(commit = "aaa"): Promise<PlannerWorld> {
  const made = await worldOf({ c: "canary", r: "rest", s: "rest", t: "rest" }, strategy, both);
  await made.rollOut();
  await made.setGroup(strategy, web);
  await revise(made, commit);
  for (const name of ["c", "r"]) {
    await made.finish(name);
    await made.plan();
  }
  expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
  expect(await made.sync("r", "web.data")).toBeUndefined();
  expect(await data(made, "s")).toMatchObject({ action: "delete" });
  return made;
}

/** The same with another revision; the stage run stays in progress because `t` is frozen. */
async function held(): Promise<PlannerWorld> {
  const made = await dropped("bbb");
  await made.addCluster("t", "rest", { labels: { tier: "x" } });
  const clusters = { text: "tier=x", selector: { matchLabels: { tier: "x" } } };
  await made.setFreezes({ freezes: [{ ...freeze(made), clusters }] });
  return made;
}

/** `data` is added again; the renderings of the next rollout are not made. */
async function putBack(made: PlannerWorld, as: Strategy = strategy): Promise<void> {
  await made.setSource("next");
  await made.setGroup(as, both);
  await made.plan();
}

describe("a Sync that is restored", () => {
  test("a restored Sync that fails gets another turn by a reconcile, also after the stage run that removed it has passed", async () => {
    const made = await dropped();
    await putBack(made);
    await settle(made, "r");
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "2" });
    expect(catchUps(made)).toEqual([["CATCHUP#failed#r", 1]]);
    const { attempt = 0 } = (await data(made, "r")) ?? {};
    await made.operate({ reconcile: ana(made.now) });
    await made.plan();
    expect(await data(made, "r")).toMatchObject({ action: "apply", rollout: 1, attempt: attempt + 1 });
    await settle(made);
    expect((await made.sync("r", "web.data"))?.observed?.phase).toBe("Ready");
    expect(made.rows("CatchUp")).toEqual([]);
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "2" });
  });

  test("a restored Sync that fails gets another turn by a reconcile, and when the stage run that removed it passes", async () => {
    const made = await held();
    await putBack(made);
    const again = async (attempt: number) => {
      await settle(made, "r");
      expect(await data(made, "r")).toMatchObject({ action: "apply", rollout: 1, attempt });
    };
    await again(1);
    expect(made.stages().rest).toBe("1 (2)");
    await made.operate({ reconcile: ana(made.now) });
    await again(2);
    expect(made.stages().rest).toBe("1 (2)");
    await made.setFreezes({ freezes: [], lifted: [] });
    await again(3);
    expect(made.stages().rest).toBe("2");
    expect(catchUps(made)).toEqual([["CATCHUP#failed#r", 1]]);
  });

  test.each(["r", "s"])(
    "a restored Sync on an unreachable cluster is assigned when the cluster is reachable again (%s)",
    async (cluster) => {
      const made = await dropped();
      await putBack(made);
      await settle(made, cluster, "Unreachable");
      expect(made.stages().rest).toBe("2");
      expect(catchUps(made)).toEqual([[`CATCHUP#away#${cluster}`, 1]]);
      const { attempt = 0 } = (await data(made, cluster)) ?? {};
      await made.observe(cluster, "Reachable", { name: "web.data" });
      await settle(made);
      expect(await data(made, cluster)).toMatchObject({ action: "apply", rollout: 1, attempt: attempt + 1 });
      expect((await made.sync(cluster, "web.data"))?.observed?.phase).toBe("Ready");
      expect(made.rows("CatchUp")).toEqual([]);
      expect(made.stages().rest).toBe("2");
    },
  );

  test("a restored Sync on an unreachable cluster is assigned when the cluster returns during the stage run", async () => {
    const made = await held();
    await putBack(made);
    await settle(made, "r", "Unreachable");
    await made.observe("r", "Reachable", { name: "web.data" });
    await settle(made);
    expect((await made.sync("r", "web.data"))?.observed?.phase).toBe("Ready");
    expect(made.stages().rest).toBe("1 (2)");
  });

  test("a restored Sync that no worker began is assigned again when its row is lost", async () => {
    const made = await dropped();
    await putBack(made);
    await made.finish("s");
    await made.plan();
    expect(made.slots()).toMatchObject([{ cluster: "r", restores: 1 }]);
    await made.table.write([{ delete: keys.sync("r", "shop", "web.data") }]);
    await made.plan();
    expect(await data(made, "r")).toMatchObject({ action: "apply", rollout: 1 });
  });

  test("a Sync whose deletion was stopped, and that fails then, gets another turn by a reconcile", async () => {
    const made = await dropped();
    await putBack(made);
    await settle(made, "s");
    expect(catchUps(made)).toEqual([["CATCHUP#failed#s", 1]]);
    await made.operate({ reconcile: ana(made.now) });
    await settle(made);
    expect((await made.sync("s", "web.data"))?.observed?.phase).toBe("Ready");
    expect(made.stages().rest).toBe("2");
  });

  test("a Sync that cannot be rendered again is restored when its rendering succeeds", async () => {
    const made = await held();
    const ended = made
      .rows<RenderingRow>("Rendering")
      .filter(({ artifactDigest }) => artifactDigest === digestOf("aaa"));
    for (const row of ended) await made.table.write([{ delete: keys.rendering(row.input) }]);
    await putBack(made);
    await settle(made);
    const before = ({ artifactDigest }: RenderingRow) => artifactDigest === digestOf("aaa");
    await made.renderAll({ message: "no memory", retryAt: made.now.toISOString() }, before);
    await made.plan();
    expect(catchUps(made)).toEqual([["CATCHUP#failed#r", 1]]);
    const { version } = made.rolloutState();
    await made.plan(made.table, []);
    expect(made.rolloutState().version).toBe(version);
    await made.renderRested();
    await made.plan(made.table, []);
    expect(await data(made, "r")).toMatchObject({ action: "apply", rollout: 1 });
  });

  test("a cluster that already waits to catch up gets the restored Sync with the same catch-up", async () => {
    const made = await dropped();
    await made.setFreezes({ freezes: [freeze(made)] });
    await made.addCluster("r", "canary");
    await made.plan();
    expect(catchUps(made)).toEqual([["CATCHUP#waiting#r", undefined]]);
    await made.addCluster("r", "rest");
    await putBack(made);
    expect(catchUps(made)).toEqual([["CATCHUP#waiting#r", 1]]);
    await made.setFreezes({ freezes: [], lifted: [] });
    await settle(made);
    expect(await data(made, "r")).toMatchObject({ action: "apply", rollout: 1 });
    expect(made.rows("CatchUp")).toEqual([]);
  });
});

test.each(["Unreachable", "Failed"] as const)(
  "a cluster on which every Sync is %s gets all of them in another turn",
  async (phase) => {
    const made = await worldOf({ c: "canary", r: "rest", s: "rest", t: "rest" }, strategy, both);
    await made.rollOut();
    await made.setGroup(strategy, web);
    await revise(made, "bbb");
    await made.finish("c");
    await made.plan();
    await made.observe("r", "Gone", { name: "web.data" });
    await made.observe("r", phase);
    await made.plan();
    expect(made.states()).toMatchObject({ r: phase });
    await putBack(made);
    await settle(made, "r", phase);
    expect(made.stages().rest).toBe("2");
    expect(catchUps(made)).toEqual([[`CATCHUP#${phase === "Failed" ? "failed" : "away"}#r`, 1]]);
    if (phase === "Failed") await made.operate({ reconcile: ana(made.now) });
    else for (const name of ["web.app", "web.data"]) await made.observe("r", "Reachable", { name });
    await settle(made);
    const desired = [
      ["web.app", 2],
      ["web.data", 1],
    ] as const;
    for (const [name, rollout] of desired)
      expect(await made.sync("r", name)).toMatchObject({ desired: { rollout }, observed: { phase: "Ready" } });
    expect(made.rows("CatchUp")).toEqual([]);
  },
);

describe("the clusters that have lost a template", () => {
  test("a cluster is restored where the deletion failed and its worker may still be writing", async () => {
    const made = await dropped();
    await lease(made, "s", { fence: 3, seconds: 120 });
    await made.finish("s", "Failed");
    await made.plan();
    expect(made.slots()).toMatchObject([{ cluster: "s", releasing: { fence: 3 } }]);
    await made.setFreezes({ freezes: [freeze(made)] });
    await putBack(made);
    expect(catchUps(made)).toEqual([
      ["CATCHUP#waiting#r", 1],
      ["CATCHUP#waiting#s", 1],
    ]);
  });

  test("a cluster is restored although the stage run took a new snapshot since, and no target was checked in it", async () => {
    const made = await dropped();
    await made.operate({ refresh: ana(made.now) });
    await made.setFreezes({ freezes: [freeze(made)] });
    await made.plan();
    expect(made.targets(2).filter(({ stageRun }) => stageRun.snapshot === made.stageRun("rest").snapshot)).toEqual([]);
    await putBack(made);
    expect(catchUps(made)).toEqual([["CATCHUP#waiting#r", 1]]);
    await made.setFreezes({ freezes: [], lifted: [] });
    await settle(made);
    expect(await data(made, "r")).toMatchObject({ action: "apply", rollout: 1, attempt: 1 });
    expect((await made.sync("r"))?.desired).toMatchObject({ rollout: 1, attempt: 1 });
    expect(made.rows("CatchUp")).toEqual([]);
  });

  test("clusters are restored although a newer rollout took over from the one that removed the template", async () => {
    const one = { ...pace, maxFailures: 0 };
    const made = await worldOf(["a", "b", "c"], one, both);
    await made.rollOut();
    await made.setGroup(one, web);
    await made.plan();
    await made.finish("a");
    await made.finish("b", "Failed");
    await made.plan();
    expect(made.stageRun("all").phase).toBe("Halted");
    await made.setFreezes({ freezes: [freeze(made)] });
    await made.setSource("bbb");
    await made.plan();
    expect(made.stages()).toEqual({ all: "1 (3)" });
    await putBack(made, one);
    expect(catchUps(made)).toEqual([
      ["CATCHUP#waiting#a", 1],
      ["CATCHUP#waiting#b", 1],
    ]);
  });

  test("exactly the clusters that lost the template are restored, also where one step cannot check all clusters", async () => {
    const clusters = Array.from({ length: 70 }, (_, index) => `c${String(index).padStart(2, "0")}`);
    const all = { ...pace, maxConcurrent: "100%" as const };
    const made = await worldOf(clusters, all, both);
    await made.rollOut();
    await made.setGroup(all, web);
    await made.plan();
    const lost = clusters.filter((_, index) => index % 3 === 0);
    for (const name of lost) await made.finish(name);
    await made.plan();
    await made.operate({ suspended: ana(made.now) });
    await putBack(made, all);
    expect(catchUps(made)).toEqual(lost.map((name) => [`CATCHUP#waiting#${name}`, 1]));
  });

  test("a restore that the next stage run adopts, and a freeze pauses for long, goes on after the thaw", async () => {
    const inLine = { ...strategy, maxConcurrent: 5, supersede: "pipeline" as const };
    const made = await worldOf({ c: "canary", s: "rest" }, inLine, both);
    await made.rollOut();
    await made.setGroup(inLine, web);
    await made.plan();
    await made.finish("c");
    await made.plan();
    expect(await data(made, "s")).toMatchObject({ action: "delete" });
    const more = { name: "more", source: "app", overrides: [{ clusters: { all: true as const }, disabled: true }] };
    await made.setGroup(inLine, [...web, more]);
    await made.plan();
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (2)" });
    await made.setSource("next");
    await made.setGroup(inLine, [...both, more]);
    await made.plan();
    expect(made.slots().find(({ cluster }) => cluster === "s")).toMatchObject({ restores: 1, rollout: 3 });
    const clusters = { text: "ring=rest", selector: { matchLabels: { ring: "rest" } } };
    await made.setFreezes({ freezes: [{ ...freeze(made), clusters }] });
    for (let round = 0; round < 4; round++) {
      made.advanceClock(900);
      await made.plan();
    }
    expect(await made.sync("s", "web.data")).toMatchObject({ paused: expect.anything() });
    expect(made.stages()).toMatchObject({ rest: "3" });
    await made.setFreezes({ freezes: [], lifted: [] });
    await made.plan();
    await settle(made);
    const restored = await made.sync("s", "web.data");
    expect(restored?.paused).toBeUndefined();
    expect(restored?.observed).toMatchObject({ phase: "Ready", attempt: restored?.desired.attempt });
  });
});
