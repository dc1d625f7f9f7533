/** The command and the planner compute the same hash: what people saw in a plan is what a stage asks them about. */
import { describe, expect, test } from "vitest";
import { askedPlans, type PlanBase } from "#shared/fleet/forecast/asked-plans.ts";
import { desiredPlan } from "#shared/fleet/rollout/desired-plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture, httpEvent } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const approval = { by: ["arn:aws:iam::*:role/sre"], count: 1, expires: "24h" };
const gated = {
  maxConcurrent: 5,
  stages: [
    { name: "canary", ...canary },
    { name: "rest", ...rest, before: [{ approval }] },
  ],
};

async function asksOf(made: PlannerWorld) {
  const row = await made.group();
  const source = await made.table.get(keys.object(owner.namespace, "Source", "app"));
  if (source === undefined) throw new Error("there is no Source");
  const planned = desiredPlan(row, new Map([["app", source]]));
  if (!planned.ok) throw new Error(planned.message);
  const fleet = made.rows<FleetRow>("Fleet");
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/rollout`;
  const { status, body } = await apiFixture(made.table).raw(httpEvent("GET", path));
  const stages: { name: string; identity?: string }[] = status === 200 ? body.status.stages : [];
  const base: PlanBase = {
    templates: status === 200 ? body.status.templates : [],
    current: new Map(stages.flatMap(({ name, identity }) => (identity === undefined ? [] : [[name, identity]]))),
  };
  return askedPlans(row, { plan: planned.plan, fleet, base });
}

describe("the plan that is shown before the rollout", () => {
  test("it has the hash that the stage asks about, for the first rollout and for a later one", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, gated);
    const [first, ...others] = await asksOf(made);
    expect([first, others]).toMatchObject([{ stage: "rest", clusters: 2, count: 1, by: approval.by }, []]);
    await playOn(made);
    expect(made.stageRun("rest").planHash).toBe(first?.plan);
    const approve = httpEvent("POST", `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve`, {
      stage: "rest",
      plan: first?.plan,
      reason: "as planned",
    });
    approve.requestContext.authorizer.iam.userArn = "arn:aws:sts::111122223333:assumed-role/sre/ana";
    expect((await apiFixture(made.table).raw(approve)).status).toBe(200);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    await made.setSource("bbb");
    const [later] = await asksOf(made);
    expect(later?.plan).not.toBe(first?.plan);
    await revise(made, "bbb");
    expect(made.rolloutState().stages[1]?.gated?.planHash).toBe(later?.plan);
    await playOn(made);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Gated", planHash: later?.plan });
  });

  test("it has no hash for a stage with a cluster that is not registered yet", async () => {
    const made = await worldOf({ c1: "canary" }, gated);
    const row = await made.group();
    const fleet = [{ name: "r1", uid: "", labels: { ring: "rest" }, values: {} }];
    const plan = { templates: [], planHash: "sha256:1" };
    const [asks] = askedPlans(row, { plan, fleet, base: { templates: [], current: new Map() } });
    expect(asks).toEqual({ stage: "rest", clusters: 1, count: 1, by: approval.by });
  });
});
