/** People approve the plan of a stage while an earlier stage has not passed the rollout. */
import { describe, expect, test } from "vitest";
import { begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture, httpEvent } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const sre = (session: string) => `arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_sre_0a1b/${session}`;
const by = ["arn:aws:iam::*:role/AWSReservedSSO_sre_*"];
const gated = (count = 1) => ({
  maxConcurrent: 5,
  stages: [
    { name: "canary", ...canary },
    { name: "rest", ...rest, before: [{ approval: { by, count, expires: "24h" } }] },
  ],
});

/** A group whose second rollout is on its way: the canary changes. */
async function underWay(count?: number): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, gated(count));
  await playOn(made);
  await approve(made, made.stageRun("rest").planHash ?? "", "zoe");
  await approve(made, made.stageRun("rest").planHash ?? "", "yan");
  await playOn(made);
  await revise(made, "bbb");
  await made.plan();
  return made;
}

const aheadOf = (made: PlannerWorld) => made.rolloutState().stages[1]?.gated;

async function call(made: PlannerWorld, method: string, route: string, body?: object, session = "ana") {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const event = httpEvent(method, `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/${route}`, body);
  event.requestContext.authorizer.iam.userArn = sre(session);
  return api.raw(event);
}

const approve = (made: PlannerWorld, plan: string, session?: string) =>
  call(made, "POST", "approve", { stage: "rest", plan, reason: "looks well" }, session);

const approvalWaits = async (made: PlannerWorld) => {
  const { body } = await call(made, "GET", "rollout");
  return body.status.waits.filter((wait: { reason: string }) => wait.reason === "approval");
};

describe("an approval before the rollout reaches the stage", () => {
  test("the status shows the hash that the stage will ask about, and the command that approves it", async () => {
    const made = await underWay();
    const plan = aheadOf(made)?.planHash;
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    expect((await call(made, "GET", "rollout")).body.status.stages[1].ahead).toEqual({ rollout: 2, plan, clusters: 2 });
    expect(await approvalWaits(made)).toMatchObject([
      {
        stage: "rest",
        rollout: 2,
        message: expect.stringContaining(`rollout 2 will wait before stage rest: 0 of 1 approvals of plan ${plan}`),
        clear: [{ verb: "approve", stage: "rest", plan }],
      },
    ]);
  });

  test("it counts when the stage starts with an equal plan, so that the stage asks nobody", async () => {
    const made = await underWay();
    const plan = aheadOf(made)?.planHash ?? "";
    expect(await approve(made, plan)).toMatchObject({ status: 200, body: { outcome: "configured" } });
    expect(await approve(made, plan)).toMatchObject({ status: 200, body: { outcome: "unchanged" } });
    expect(await approvalWaits(made)).toEqual([]);
    expect(made.stages().rest).toBe("1");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect(made.stageRun("rest")).toMatchObject({ planHash: plan, approvedBy: [sre("ana")] });
    expect(aheadOf(made)).toBeUndefined();
  });

  test.each([
    ["joins", (made: PlannerWorld) => made.addCluster("r3", "rest"), "(2 before, 3 now)"],
    ["leaves", (made: PlannerWorld) => made.removeCluster("r2"), "(2 before, 1 now)"],
  ])("it does not count when a cluster %s, and the stage says why it asks again", async (_what, change, text) => {
    const made = await underWay();
    const plan = aheadOf(made)?.planHash ?? "";
    await approve(made, plan);
    await change(made);
    await made.plan();
    const next = aheadOf(made)?.planHash;
    expect(next).not.toBe(plan);
    const why = `1 approval of plan ${plan} does not count, because the plan now has other clusters ${text}`;
    expect((await approvalWaits(made))[0].message).toContain(why);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    expect(made.stageRun("rest")).toMatchObject({
      phase: "Gated",
      planHash: next,
      message: expect.stringContaining(why),
    });
    expect((await approvalWaits(made))[0].message).toContain(why);
    expect((await approve(made, plan)).status).toBe(409);
  });

  test("it does not count for a newer rollout with other files, and the stage says so", async () => {
    const made = await underWay();
    const plan = aheadOf(made)?.planHash ?? "";
    await approve(made, plan);
    await begin(made);
    await made.finish("c1", "Failed");
    await revise(made, "ccc");
    const why = `1 approval of plan ${plan} does not count, because the plan now has other files or options`;
    expect((await approvalWaits(made))[0].message).toContain(why);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (3)" });
    expect(made.stageRun("rest").message).toContain(why);
  });

  test("one of two approvals ahead leaves the stage waiting for the other", async () => {
    const made = await underWay(2);
    await approve(made, aheadOf(made)?.planHash ?? "");
    await playOn(made);
    expect(made.stageRun("rest")).toMatchObject({
      phase: "Gated",
      message: expect.stringMatching(/^1 of 2 approvals/),
    });
  });

  test("a principal that the stage does not name, or another hash, approves nothing, and the refusal names the plan", async () => {
    const made = await underWay();
    const plan = aheadOf(made)?.planHash ?? "";
    const refused = await approve(made, "0".repeat(32));
    expect(refused).toMatchObject({ status: 409, body: { code: "StageRunChanged" } });
    expect(refused.body.message).toContain(`rollout 2 with plan ${plan} is on its way to stage rest`);
    const api = apiFixture(made.table);
    const event = httpEvent("POST", `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve`, {
      stage: "rest",
      plan,
      reason: "me too",
    });
    event.requestContext.authorizer.iam.userArn = "arn:aws:sts::111122223333:assumed-role/developer/eve";
    expect(await api.raw(event)).toMatchObject({ status: 403, body: { code: "Forbidden" } });
  });

  test("the record of the plan is not made again while nothing changes", async () => {
    const made = await underWay();
    const { version } = made.rolloutState();
    await made.plan();
    expect(made.rolloutState().version).toBe(version);
  });
});
