/** Approvals: nothing is assigned in a stage before enough people have approved the plan of its stage run. */
import { describe, expect, test } from "vitest";
import { ana, counting, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { type OperationsInput, owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture, httpEvent } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const sre = (session: string) => `arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_sre_0a1b/${session}`;
const robot = (session: string) => `arn:aws:sts::111122223333:assumed-role/deployer/${session}`;
const approval = {
  by: ["arn:aws:iam::*:role/AWSReservedSSO_sre_*", "arn:aws:iam::*:role/deployer"],
  count: 2,
  expires: "24h",
};
const gated = (more: object = {}) => ({
  maxConcurrent: 5,
  stages: [
    { name: "canary", ...canary },
    { name: "rest", ...rest, before: [{ approval: { ...approval, ...more } }] },
  ],
});
const hours = 3600;

/** A group whose first rollout has passed the canary, and waits before the rest. */
async function gatedGroup(more: object = {}): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, gated(more));
  await playOn(made);
  return made;
}

async function approve(
  made: PlannerWorld,
  principal: string,
  plan = made.stageRun("rest").planHash,
  settings: { readonly personalRoles?: readonly string[] } = {},
) {
  const api = apiFixture(made.table, made.table, made.blobs, settings);
  api.setNow(made.now.toISOString());
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve`;
  const event = httpEvent("POST", path, { stage: "rest", plan, reason: "looks well" });
  event.requestContext.authorizer.iam.userArn = principal;
  const answer = await api.raw(event);
  await playOn(made);
  return answer;
}

const assigned = async (made: PlannerWorld) =>
  (await Promise.all(["c1", "r1", "r2"].map((cluster) => made.sync(cluster)))).map((sync) => sync?.desired.rollout);

describe("an approval", () => {
  test("nothing is assigned before as many people as the stage asks for have approved", async () => {
    const made = await gatedGroup();
    expect(made.stageRun("rest")).toMatchObject({ phase: "Gated", counts: { Waiting: 2 } });
    expect(await assigned(made)).toEqual([1, undefined, undefined]);
    expect(await approve(made, sre("ana"))).toMatchObject({ status: 200, body: { outcome: "configured" } });
    expect(made.stageRun("rest")).toMatchObject({
      phase: "Gated",
      message: expect.stringMatching(/^1 of 2 approvals/),
    });
    expect(await assigned(made)).toEqual([1, undefined, undefined]);
    await approve(made, sre("ben"));
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", approvedBy: [sre("ana"), sre("ben")] });
    expect(await assigned(made)).toEqual([1, 1, 1]);
  });

  test.each([
    ["the same person twice", sre("ana"), sre("ana")],
    ["one person through two roles of people", sre("ana"), sre("ana").replace("sre_0a1b", "sre_9z9z")],
    ["one role that is no person's, in two sessions", robot("run-1"), robot("run-2")],
  ])("%s is one approver", async (_who, first, second) => {
    const made = await gatedGroup();
    await approve(made, first);
    expect(await approve(made, second)).toMatchObject({ status: 200, body: { outcome: "unchanged" } });
    expect(made.stageRun("rest").phase).toBe("Gated");
  });

  test("two sessions of a role are two people when the setting personalRoles has the role", async () => {
    const made = await gatedGroup();
    const plan = made.stageRun("rest").planHash;
    const settings = { personalRoles: ["deploy*"] };
    await approve(made, robot("ana"), plan, settings);
    expect(await approve(made, robot("Ana"), plan, settings)).toMatchObject({ body: { outcome: "unchanged" } });
    expect(made.stageRun("rest").phase).toBe("Gated");
    await approve(made, robot("ben"), plan, settings);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", approvedBy: [robot("ana"), robot("ben")] });
  });

  test("two sessions of IAM Identity Center are one approver when the setting personalRoles does not have its roles", async () => {
    const made = await gatedGroup();
    const plan = made.stageRun("rest").planHash;
    const settings = { personalRoles: ["person-*"] };
    await approve(made, sre("ana"), plan, settings);
    expect(await approve(made, sre("ben"), plan, settings)).toMatchObject({ body: { outcome: "unchanged" } });
    expect(made.stageRun("rest").phase).toBe("Gated");
  });

  test.each([
    ["gains", [], ["deploy*"]],
    ["loses", ["deploy*"], []],
  ])("a session approves once when the setting personalRoles %s its role in between", async (_how, before, after) => {
    const made = await gatedGroup();
    const plan = made.stageRun("rest").planHash;
    await approve(made, robot("ana"), plan, { personalRoles: before });
    const again = await approve(made, robot("ana"), plan, { personalRoles: after });
    expect(again).toMatchObject({ body: { outcome: "unchanged" } });
    expect(made.stageRun("rest").phase).toBe("Gated");
  });

  test("an approval that was recorded without its approver counts for the person of its principal", async () => {
    const made = await gatedGroup();
    await approve(made, sre("ana"));
    const { approvals = [], ...others } = (await made.group()).operations;
    const earlier = approvals.map(({ approver: _none, ...one }) => one);
    await made.operate({ ...others, approvals: earlier } as OperationsInput);
    expect(await approve(made, sre("ana"))).toMatchObject({ body: { outcome: "unchanged" } });
    await approve(made, sre("ben"));
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", approvedBy: [sre("ana"), sre("ben")] });
  });

  test("a cluster that joins a first stage without clusters gets nothing before the plan with it is approved", async () => {
    const stages = [{ name: "canary", ...canary, before: [{ approval: { ...approval, count: 1 } }] }, { name: "rest" }];
    const made = await worldOf({ r1: "rest" }, { maxConcurrent: 5, stages });
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "NothingVerified", size: 0 });
    await made.addCluster("c1", "canary");
    await playOn(made);
    expect(await assigned(made)).toEqual([undefined, undefined, undefined]);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Gated", size: 1 });
  });

  test("nobody promotes a stage without clusters past its approval: its first cluster would get what nobody approved", async () => {
    const stages = [{ name: "canary", ...canary, before: [{ approval: { ...approval, count: 1 } }] }, { name: "rest" }];
    const made = await worldOf({ r1: "rest" }, { maxConcurrent: 5, stages });
    await playOn(made);
    const { phase, rollout, snapshot } = made.stageRun("canary");
    expect(phase).toBe("NothingVerified");
    const api = apiFixture(made.table);
    const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/promote`;
    const answer = await api.raw(
      httpEvent("POST", path, { stage: "canary", rollout, snapshot, reason: "no cluster yet" }),
    );
    expect(answer).toMatchObject({ status: 409, body: { code: "NotStalled" } });
    expect(answer.body.message).toContain("no cluster matches stage canary");
    await playOn(made);
    await made.addCluster("c1", "canary");
    await playOn(made);
    expect(await assigned(made)).toEqual([undefined, undefined, undefined]);
  });

  test("a cluster that joins a later stage that passed without clusters gets nothing before the plan with it is approved", async () => {
    const made = await worldOf({ c1: "canary" }, gated({ count: 1 }));
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    await made.addCluster("r1", "rest");
    await playOn(made);
    expect(await assigned(made)).toEqual([1, undefined, undefined]);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Gated", rollout: 1, size: 1 });
    await made.addCluster("r2", "rest");
    await playOn(made);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Gated", rollout: 1, size: 2 });
    expect(await assigned(made)).toEqual([1, undefined, undefined]);
    await approve(made, sre("ana"));
    expect(await assigned(made)).toEqual([1, 1, 1]);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a cluster that joins the stage after the approval is not in the approved plan, and comes when that has passed", async () => {
    const made = await gatedGroup({ count: 1 });
    await made.addCluster("r3", "rest");
    await playOn(made);
    const { planHash } = made.stageRun("rest");
    expect(made.stageRun("rest")).toMatchObject({ phase: "Gated", size: 3 });
    const api = apiFixture(made.table);
    api.setNow(made.now.toISOString());
    const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve`;
    const event = httpEvent("POST", path, { stage: "rest", plan: planHash, reason: "looks well" });
    event.requestContext.authorizer.iam.userArn = sre("ana");
    expect(await api.raw(event)).toMatchObject({ status: 200 });
    await made.plan();
    await made.addCluster("r4", "rest");
    await made.plan();
    expect(made.stageRun("rest")).toMatchObject({ phase: "Updating", size: 3, planHash });
    await playOn(made);
    expect(made.stageRun("rest")).toMatchObject({ phase: "Passed", size: 3 });
    expect((await made.sync("r4"))?.desired.rollout).toBe(1);
  });

  test("a principal that the stage does not name may not approve", async () => {
    const made = await gatedGroup({ count: 1 });
    const answer = await approve(made, "arn:aws:sts::111122223333:assumed-role/developer/eve");
    expect(answer).toMatchObject({ status: 403, body: { code: "Forbidden" } });
    expect(answer.body.message).toContain("role/deployer");
    expect(made.stageRun("rest").phase).toBe("Gated");
  });

  test("another hash than the one that waits approves nothing, and the refusal names the one that waits", async () => {
    const made = await gatedGroup({ count: 1 });
    const before = made.stageRun("rest").planHash ?? "";
    await revise(made, "bbb");
    await playOn(made);
    const { planHash = "" } = made.stageRun("rest");
    expect(planHash).not.toBe(before);
    const answer = await approve(made, sre("ana"), before);
    expect(answer).toMatchObject({ status: 409, body: { code: "StageRunChanged" } });
    expect(answer.body.message).toContain(`rollout 2 with plan ${planHash}`);
    expect(await assigned(made)).toEqual([2, undefined, undefined]);
  });

  test("a newer rollout takes the place of one that nobody has approved, and waits for one that somebody has", async () => {
    const made = await gatedGroup();
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "- (2)" });
    await approve(made, sre("ana"));
    await revise(made, "ccc");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "- (2)" });
    await approve(made, sre("ben"));
    expect(made.stages()).toEqual({ canary: "3", rest: "2 (3)" });
    expect(made.stageRun("rest").phase).toBe("Gated");
  });

  test("after its time the question ends, nobody can approve or promote, and a refresh asks again", async () => {
    const made = await gatedGroup({ count: 1 });
    made.advanceClock(24 * hours - 1);
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("Gated");
    made.advanceClock(1);
    await made.plan();
    expect(made.stageRun("rest").phase).toBe("GateFailed");
    expect(await approve(made, sre("ana"))).toMatchObject({ status: 409, body: { code: "NotGated" } });
    const { rollout, snapshot } = made.stageRun("rest");
    const promote = { gates: [{ ...ana(made.now), number: 90, verb: "promote", stage: "rest", rollout, snapshot }] };
    await made.operate(promote as unknown as OperationsInput);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "- (1)" });
    await made.operate({ refresh: ana(made.now) });
    await playOn(made);
    expect(made.stageRun("rest").phase).toBe("Gated");
    await approve(made, sre("ana"));
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test("a snapshot with an equal plan keeps the approvals, and one with other clusters asks anew", async () => {
    const made = await gatedGroup();
    await approve(made, sre("ana"));
    const refresh = async () => {
      await made.operate({ ...(await made.group()).operations, refresh: ana(made.now) } as OperationsInput);
      await playOn(made);
    };
    await refresh();
    expect(made.stageRun("rest")).toMatchObject({ snapshot: 3, message: expect.stringMatching(/^1 of 2 approvals/) });
    await made.addCluster("r3", "rest");
    await refresh();
    expect(made.stageRun("rest")).toMatchObject({ size: 3, message: expect.stringMatching(/^0 of 2 approvals/) });
  });

  test("a suspended group can be approved, and begins after the resume", async () => {
    const made = await gatedGroup({ count: 1 });
    await made.operate({ suspended: ana(made.now) });
    await made.plan();
    await approve(made, sre("ana"));
    expect(await assigned(made)).toEqual([1, undefined, undefined]);
    const { suspended: _over, ...kept } = (await made.group()).operations;
    await made.operate({ ...kept, resumed: ana(made.now) } as OperationsInput);
    await playOn(made);
    expect(await assigned(made)).toEqual([1, 1, 1]);
  });

  test("a group that is deleted asks nobody", async () => {
    const made = await gatedGroup();
    await made.operate({ deletion: { ...ana(made.now), cascade: "delete" } });
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
  });

  test("a stage run that waits for people costs the planner one request and no write at a check", async () => {
    const made = await gatedGroup();
    const free = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 5 });
    await playOn(free);
    const requests = async (world: PlannerWorld) => {
      world.advanceClock(2 * hours);
      await world.plan();
      const counted = counting(world.table);
      await world.plan(counted.table);
      return counted.requests();
    };
    expect(await requests(made)).toBeLessThanOrEqual((await requests(free)) + 2);
  });
});
