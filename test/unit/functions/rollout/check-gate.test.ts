/** Checks: one principal, a program, decides after the clusters of a stage, by the hash of the plan. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { counting, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture, httpEvent } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const robot = "arn:aws:sts::111122223333:assumed-role/robot/run-1";
const check = { principal: "arn:aws:iam::111122223333:role/robot", expires: "1h" };
const checkedAfter = (...gates: readonly { readonly bake: string }[]) => ({
  maxConcurrent: 5,
  stages: [
    { name: "canary", ...canary, after: [...gates, { check }] },
    { name: "rest", ...rest },
  ],
});
const minutes = 60;

async function checkedGroup(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest" }, checkedAfter());
  await playOn(made);
  return made;
}

interface Answer {
  readonly answer?: "approved" | "rejected";
  readonly plan?: string | undefined;
}

async function answer(made: PlannerWorld, principal: string, body: Answer = {}) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve`;
  const { planHash } = made.stageRun("canary");
  const event = httpEvent("POST", path, { stage: "canary", plan: planHash, reason: "errors 4 %", ...body });
  event.requestContext.authorizer.iam.userArn = principal;
  const answered = await api.raw(event);
  await made.plan();
  return answered;
}

async function ask(made: PlannerWorld, verb: string): Promise<void> {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/${verb}`;
  expect(await api.call("POST", path, { reason: "INC-1" })).toMatchObject({ status: 200 });
  await made.plan();
}

describe("a check", () => {
  test("a rollout passes the stage when the program approves it", async () => {
    const made = await checkedGroup();
    const { planHash } = made.stageRun("canary");
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Baking",
      message: `${check.principal} has to answer about plan ${planHash} in stage canary, until 2026-11-21T09:00:00.000Z`,
    });
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    expect(await answer(made, robot)).toMatchObject({ status: 200, body: { outcome: "configured" } });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test("a rejection fails the gate with its reason, and a newer rollout enters and is asked about anew", async () => {
    const made = await checkedGroup();
    await answer(made, robot, { answer: "rejected" });
    expect(made.stageRun("canary")).toMatchObject({ phase: "GateFailed" });
    expect(made.stageRun("canary").message).toMatch(
      /robot\/run-1 rejected plan [0-9a-f]{32} in stage canary: errors 4 %$/,
    );
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ rollout: 2, phase: "Baking" });
    expect(made.stageRun("canary").check?.answer).toBeUndefined();
  });

  test("a silent program fails the gate at the deadline, of which the planner knows", async () => {
    const made = await checkedGroup();
    made.advanceClock(59 * minutes);
    await made.table.write([{ update: keys.rolloutState(owner), remove: ["dueKey"] }]);
    await made.plan();
    expect(made.rolloutState().dueKey?.slice(0, 24)).toBe("2026-11-21T09:00:00.000Z");
    expect(made.stageRun("canary").phase).toBe("Baking");
    made.advanceClock(minutes);
    expect(await answer(made, robot)).toMatchObject({ status: 409, body: { code: "NotGated" } });
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ phase: "GateFailed" });
    expect(made.stageRun("canary").message).toContain("CheckExpired: ");
  });

  test.each([
    ["another role", "arn:aws:sts::111122223333:assumed-role/operator/eve"],
    ["a role of the same name in another account", "arn:aws:sts::999922223333:assumed-role/robot/run-1"],
    ["a role whose name begins alike", "arn:aws:sts::111122223333:assumed-role/robot-2/run-1"],
  ])("%s may answer nothing", async (_who, principal) => {
    const made = await checkedGroup();
    for (const word of ["approved", "rejected"] as const) {
      const answered = await answer(made, principal, { answer: word });
      expect(answered).toMatchObject({ status: 403, body: { code: "Forbidden" } });
      expect(answered.body.message).toContain(check.principal);
    }
    expect(made.stageRun("canary").phase).toBe("Baking");
  });

  test("the program approves nothing that people have to approve, and people answer no check", async () => {
    const by = ["arn:aws:iam::111122223333:role/sre"];
    const approval = { by, count: 1, expires: "24h" };
    const stages = [
      { name: "canary", ...canary, before: [{ approval }], after: [{ check }] },
      { name: "rest", ...rest },
    ];
    const made = await worldOf({ c1: "canary", r1: "rest" }, { maxConcurrent: 5, stages });
    await playOn(made);
    expect(await answer(made, robot)).toMatchObject({ status: 403 });
    expect(await answer(made, robot, { answer: "rejected" })).toMatchObject({
      status: 409,
      body: { code: "NotGated" },
    });
    expect(made.stageRun("canary").phase).toBe("Gated");
    const sre = "arn:aws:sts::111122223333:assumed-role/sre/ana";
    await answer(made, sre);
    await playOn(made);
    expect(made.stageRun("canary").phase).toBe("Baking");
    expect(await answer(made, sre)).toMatchObject({ status: 403 });
    await answer(made, robot);
    expect(made.stages().canary).toBe("1");
  });

  test("another hash than the one in question answers nothing", async () => {
    const made = await checkedGroup();
    const answered = await answer(made, robot, { plan: "0".repeat(32) });
    expect(answered).toMatchObject({ status: 409, body: { code: "StageRunChanged" } });
    expect(made.stageRun("canary").phase).toBe("Baking");
  });

  test("the first answer counts", async () => {
    const made = await checkedGroup();
    const api = apiFixture(made.table);
    api.setNow(made.now.toISOString());
    const say = (word: string) => {
      const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve`;
      const { planHash } = made.stageRun("canary");
      const event = httpEvent("POST", path, { stage: "canary", plan: planHash, reason: "seen", answer: word });
      event.requestContext.authorizer.iam.userArn = robot;
      return api.raw(event);
    };
    expect(await say("rejected")).toMatchObject({ status: 200 });
    expect(await say("rejected")).toMatchObject({ status: 200, body: { outcome: "unchanged" } });
    expect(await say("approved")).toMatchObject({ status: 409, body: { code: "NotGated" } });
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("GateFailed");
  });

  test.each(["retry", "reconcile"])(
    "after a failed check, %s asks again, and the earlier answer does not count",
    async (verb) => {
      const made = await checkedGroup();
      await answer(made, robot, { answer: "rejected" });
      made.advanceClock(minutes);
      await ask(made, verb);
      expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", check: { since: "2026-11-21T08:01:00.000Z" } });
      await made.observe("c1", "Ready");
      await answer(made, robot);
      await playOn(made);
      expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    },
  );

  test("the question is asked after the bake, and not before", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, checkedAfter({ bake: "30m" }));
    await playOn(made);
    expect(await answer(made, robot)).toMatchObject({ status: 409, body: { code: "NotGated" } });
    made.advanceClock(30 * minutes);
    await made.plan();
    await made.observe("c1", "Ready");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", check: { since: "2026-11-21T08:30:00.000Z" } });
    expect(made.stages().canary).toBe("- (1)");
    await answer(made, robot);
    expect(made.stages().canary).toBe("1");
  });

  test("a cluster that fails meanwhile ends the check at once", async () => {
    const made = await checkedGroup();
    await made.observe("c1", "Failed", { reason: "Crashed" });
    await made.plan(made.table, ["c1"]);
    expect(made.stageRun("canary")).toMatchObject({ phase: "GateFailed" });
    expect(made.stageRun("canary").message).toMatch(/^during the check, 1 of 1 cluster/);
  });

  test("a newer rollout waits for the answer", async () => {
    const made = await checkedGroup();
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    await answer(made, robot);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
  });

  test("a rollout that changes nothing in the stage is not checked, and a deletion is not", async () => {
    const made = await checkedGroup();
    await answer(made, robot);
    await playOn(made);
    const more = { name: "more", source: "app", overrides: [{ clusters: canary?.clusters, disabled: true }] };
    await made.setGroup(checkedAfter(), [...web, more]);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    await made.operate({ deletion: { by: "ana", at: made.now.toISOString(), cascade: "delete" } });
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
  });

  test("the planner reads no row more while it waits for an answer", async () => {
    const requests = async (made: PlannerWorld) => {
      const counted = counting(made.table);
      await made.plan(counted.table, []);
      return counted.requests();
    };
    const baking = await worldOf(
      { c1: "canary", r1: "rest" },
      {
        maxConcurrent: 5,
        stages: [
          { name: "canary", ...canary, after: [{ bake: "1h" }] },
          { name: "rest", ...rest },
        ],
      },
    );
    await playOn(baking);
    expect(await requests(await checkedGroup())).toBe(await requests(baking));
  });
});
