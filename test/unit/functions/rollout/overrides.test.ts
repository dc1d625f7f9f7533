/** Templates that are another thing on some clusters, or nothing at all. */
import { expect, test } from "vitest";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { PlannerWorld } from "#test/support/planner-world.ts";

const gold = { selector: { matchLabels: { tier: "gold" } } };
const base = { name: "base", source: "app", path: "base" };
const app = { name: "app", source: "app", path: "app" };

async function world(overrides: readonly unknown[]): Promise<PlannerWorld> {
  const made = new PlannerWorld();
  await made.setSource("aaa");
  await made.addCluster("c1", "all", { labels: { tier: "gold" } });
  await made.addCluster("c2", "all");
  await made.setGroup({}, [base, { ...app, overrides }]);
  await made.rollOut();
  return made;
}

async function actions(made: PlannerWorld, cluster: string): Promise<Readonly<Record<string, string | undefined>>> {
  const names = ["web.base", "web.app"];
  const rows = await Promise.all(names.map((name) => made.sync(cluster, name)));
  return Object.fromEntries(rows.map((row, index) => [names[index], row?.desired.action]));
}

function rendered(made: PlannerWorld): readonly string[] {
  return made
    .rows<RenderingRow>("Rendering")
    .map(({ path }) => path)
    .sort();
}

test("an override's path and apply are what its clusters get, and nobody else", async () => {
  const made = await world([{ clusters: gold, path: "gold", apply: { drift: "off" } }]);
  expect(rendered(made)).toEqual(["app", "base", "gold"]);
  expect((await made.sync("c1", "web.app"))?.desired.apply).toMatchObject({ drift: "off", prune: true });
  expect((await made.sync("c2", "web.app"))?.desired.apply).toMatchObject({ drift: "correct" });

  // What only that override says changes for its cluster alone.
  const before = (await made.sync("c2", "web.app"))?.desired.attempt;
  await made.setGroup({}, [
    base,
    { ...app, overrides: [{ clusters: gold, path: "gold", apply: { drift: "report" } }] },
  ]);
  await made.rollOut();
  expect((await made.sync("c1", "web.app"))?.desired.apply).toMatchObject({ drift: "report" });
  expect((await made.sync("c2", "web.app"))?.desired.attempt).toBe(before);
  expect(rendered(made)).toEqual(["app", "base", "gold"]);
});

test("a cluster for which a template is disabled is never given it, and nothing is rendered for it", async () => {
  const made = await world([{ clusters: { all: true }, disabled: true }]);
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": undefined });
  expect(rendered(made)).toEqual(["base"]);
  expect(made.states()).toEqual({ c1: "Succeeded", c2: "Succeeded" });
});

test("one that had it keeps the objects, without a slot, and gets it again when it may", async () => {
  const made = await world([]);
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "apply" });
  await made.setGroup({}, [base, { ...app, overrides: [{ clusters: gold, disabled: true }] }]);
  await made.plan();
  expect(made.slots()).toEqual([]);
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "orphan" });
  expect(await actions(made, "c2")).toEqual({ "web.base": "apply", "web.app": "apply" });
  expect(made.states()).toEqual({ c1: "Unchanged", c2: "Unchanged" });
  const number = (await made.sync("c1", "web.app"))?.desired.attempt ?? 0;

  await made.setGroup({}, [base, app]);
  await made.rollOut();
  expect((await made.sync("c1", "web.app"))?.desired).toMatchObject({ action: "apply", attempt: number + 1 });
});

test("it goes together with what else changes there, in that stage's turn", async () => {
  const made = await world([]);
  const stages = [{ name: "canary", clusters: { names: ["c2"] } }, { name: "rest" }];
  await made.setSource("bbb");
  await made.setGroup({ stages }, [base, { ...app, overrides: [{ clusters: gold, disabled: true }] }]);
  await made.plan();
  await made.renderAll();
  await made.plan();
  expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c2"]);
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "apply" });
  await made.finish("c2");
  await made.plan();
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "orphan" });
  expect(made.slots().map(({ attempts }) => Object.keys(attempts))).toEqual([["web.base"]]);
  await made.rollOut();
});

test("a freeze keeps what a cluster has, also from being let go of", async () => {
  const made = await world([]);
  const freeze = {
    name: "night",
    by: "ana",
    at: made.now.toISOString(),
    reason: "night",
    clusters: { text: "tier=gold", ...gold },
  };
  await made.setFreezes({ freezes: [freeze] });
  await made.setGroup({}, [base, { ...app, overrides: [{ clusters: { all: true }, disabled: true }] }]);
  await made.plan();
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "apply" });
  expect(await actions(made, "c2")).toEqual({ "web.base": "apply", "web.app": "orphan" });
  await made.setFreezes({ lifted: [{ ...freeze, lifted: { by: "ana", at: made.now.toISOString() } }] });
  await made.plan();
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "orphan" });
});

test("a label that changes takes it away, and gives it", async () => {
  const made = await world([{ clusters: gold, disabled: true }]);
  expect(await actions(made, "c1")).toMatchObject({ "web.app": undefined });
  await made.addCluster("c1", "all", { labels: { tier: "std" } });
  await made.addCluster("c2", "all", { labels: { tier: "gold" } });
  await made.rollOut();
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "apply" });
  expect(await actions(made, "c2")).toEqual({ "web.base": "apply", "web.app": "orphan" });
});
