import { describe, expect, test } from "vitest";
import { clusterValuesSpec } from "#shared/fleet/kinds/cluster-values.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterValuesRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { web, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

test("a lost rendering is asked for again with the values that ClusterValues set for its cluster", async () => {
  const made = await worldOf({ c1: "all" }, {}, [{ name: "app", source: "app", path: "{{ cluster.values.color }}" }]);
  const spec = clusterValuesSpec.parse({ clusters: { all: true }, values: { color: "red" } });
  const said = { uid: "uid-of-every", generation: 1, createdAt: "", labels: {}, annotations: {}, operations: {} };
  const every: ClusterValuesRow = {
    ...keys.clusterValues("every"),
    ...said,
    type: "ClusterValues",
    schema: rowSchema,
    version: 1,
    name: "every",
    spec,
    status: { conditions: [] },
  };
  await made.table.write([{ put: every }]);
  await made.rollOut();
  const rows = () => made.table.all().filter(({ type }) => type === "Rendering");
  const [rendering] = rows();
  if (rendering === undefined) throw new Error("nothing was rendered");
  await made.table.write([{ delete: { pk: rendering.pk, sk: rendering.sk } }]);
  await made.observe("c1", "Retrying", { reason: "RenderingLost" });
  await made.plan(undefined, ["c1"]);
  expect(rows()).toMatchObject([{ pk: rendering.pk, state: "Pending" }]);
});

describe("a rendering that a cluster reports as lost", () => {
  const renderings = (made: PlannerWorld) => made.rows<RenderingRow>("Rendering");
  const asked = (made: PlannerWorld) => made.sender.take().filter(({ to }) => to === "render").length;
  /** Two templates, each with a rendering of its own. */
  async function rolledOut(): Promise<PlannerWorld> {
    const made = await worldOf(["c1"], {}, [...web, { name: "more", source: "app", path: "more" }]);
    await made.rollOut();
    made.sender.take();
    return made;
  }
  async function loseAll(made: PlannerWorld): Promise<void> {
    for (const { pk, sk } of renderings(made)) await made.table.write([{ delete: { pk, sk } }]);
  }

  test("the planner asks once for the rendering that a cluster misses, and for no other rendering that was lost", async () => {
    const made = await rolledOut();
    await loseAll(made);
    await made.observe("c1", "Retrying", { reason: "RenderingLost", name: "web.more" });
    await made.plan(undefined, ["c1"]);
    expect(renderings(made)).toMatchObject([{ path: "more", state: "Pending" }]);
    expect(asked(made)).toBe(1);
    await made.plan(undefined, ["c1"]);
    expect(asked(made)).toBe(0);
  });

  test("the planner asks for the rendering of the rollout that the cluster was assigned, although later rollouts followed", async () => {
    const template = (path: string) => [
      { name: "app", source: "app", path: "{{ cluster.labels.ring }}" },
      { name: "more", source: "app", path, overrides: [{ clusters: { names: ["c1"] }, disabled: true }] },
    ];
    const made = await worldOf({ c1: "one", c2: "two" }, { maxConcurrent: 2 }, template("first"));
    await made.rollOut();
    for (const path of ["second", "third", "fourth"]) {
      await made.setGroup({ maxConcurrent: 2 }, template(path));
      await made.rollOut();
    }
    expect(made.stages()).toEqual({ all: "4" });
    expect((await made.sync("c1"))?.desired.rollout).toBe(1);
    await loseAll(made);
    await made.observe("c1", "Retrying", { reason: "RenderingLost" });
    await made.plan(undefined, ["c1"]);
    expect(renderings(made)).toMatchObject([{ path: "one", state: "Pending" }]);
  });

  test("the planner asks for no rendering that only an earlier attempt missed", async () => {
    const made = await rolledOut();
    await loseAll(made);
    await made.observe("c1", "Retrying", { reason: "RenderingLost", attempt: 7 });
    await made.plan(undefined, ["c1"]);
    expect([renderings(made), asked(made)]).toEqual([[], 0]);
  });

  test("the planner asks for no rendering whose row it cannot read", async () => {
    const made = await rolledOut();
    const rows = renderings(made).map((row) => ({ ...row, schema: newestRowSchema + 1 }));
    await made.table.write(rows.map((put) => ({ put })));
    await made.observe("c1", "Retrying", { reason: "RenderingLost" });
    await made.plan(undefined, ["c1"]);
    expect([renderings(made), asked(made)]).toEqual([rows, 0]);
  });
});
