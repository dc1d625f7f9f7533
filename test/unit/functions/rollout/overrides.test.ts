/** Templates with overrides: they differ on some clusters, or are disabled there. */
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

test("an override's path and apply settings hold for its clusters, and for no others", async () => {
  const made = await world([{ clusters: gold, path: "gold", apply: { drift: "off" } }]);
  expect(rendered(made)).toEqual(["app", "base", "gold"]);
  expect((await made.sync("c1", "web.app"))?.desired.apply).toMatchObject({ drift: "off", prune: true });
  expect((await made.sync("c2", "web.app"))?.desired.apply).toMatchObject({ drift: "correct" });

  // A change of the override alone changes only its cluster.
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

test("a cluster for which a template is disabled is never assigned it, and nothing is rendered for it", async () => {
  const made = await world([{ clusters: { all: true }, disabled: true }]);
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": undefined });
  expect(rendered(made)).toEqual(["base"]);
  expect(made.states()).toEqual({ c1: "Succeeded", c2: "Succeeded" });
});

test("a cluster for which a template becomes disabled keeps the objects, needs no slot, and is assigned it again later", async () => {
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

test("a disabled template is orphaned in the turn of its cluster's stage, together with the other changes", async () => {
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

test("a frozen cluster keeps a template that becomes disabled for it until the freeze is lifted", async () => {
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

test("a change of labels takes a disabled template away from one cluster, and assigns it to another", async () => {
  const made = await world([{ clusters: gold, disabled: true }]);
  expect(await actions(made, "c1")).toMatchObject({ "web.app": undefined });
  await made.addCluster("c1", "all", { labels: { tier: "std" } });
  await made.addCluster("c2", "all", { labels: { tier: "gold" } });
  await made.rollOut();
  expect(await actions(made, "c1")).toEqual({ "web.base": "apply", "web.app": "apply" });
  expect(await actions(made, "c2")).toEqual({ "web.base": "apply", "web.app": "orphan" });
});
