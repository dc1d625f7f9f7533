/** `onFailure: rollback`: a rollout that fails in a stage is taken back there without a person, once. */
import { describe, expect, test } from "vitest";
import { claimDue } from "#functions/tick/claim-due.ts";
import { watchAlarms } from "#functions/tick/watch-alarms.ts";
import { catchUpRollout } from "#shared/fleet/rollout/order.ts";
import type { AlarmReader } from "#shared/ports.ts";
import { begin, playDeaths, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";
import { apiFixture, httpEvent } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, verb: string, body: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const answer = await api.call("POST", `${path}/${verb}`, body);
  expect(answer).toMatchObject({ status: 200 });
}

const pace = { ...rings, maxConcurrent: 4, onFailure: "rollback" } as const;

const clusters = { c1: "canary", c2: "canary", r1: "rest", r2: "rest" };

const revisions = async (made: PlannerWorld, ...names: readonly string[]) =>
  Promise.all(names.map(async (name) => (await made.sync(name))?.desired.revision.slice(-3)));

async function group(more: object = {}): Promise<PlannerWorld> {
  const made = await worldOf(clusters, { ...pace, ...more } as never);
  await made.rollOut();
  return made;
}

/** Rollout 2 has failed on c1, and its stage goes back. */
async function failed(more: object = {}): Promise<PlannerWorld> {
  const made = await group(more);
  await revise(made, "bbb");
  await made.finish("c1", "Failed");
  await made.finish("c2");
  await made.plan();
  return made;
}

const rejected = (made: PlannerWorld) => made.rolloutState().rejected?.map(({ rollout, by }) => [rollout, by]);

describe("onFailure: rollback", () => {
  test("the clusters of the stage get its current rollout again, the failed one is rejected, and nothing is held", async () => {
    const made = await failed();
    expect(made.stages()).toEqual({ canary: "3 (3)", rest: "1" });
    expect(made.stageRun("canary")).toMatchObject({
      rollback: true,
      takesBack: { rollout: 2, to: 1, reason: expect.stringContaining("1 of 2 clusters failed in stage canary") },
    });
    expect(rejected(made)).toEqual([[2, "Starling"]]);
    const before = (await made.sync("r1"))?.desired;
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
    expect(await revisions(made, "c1", "c2", "r1", "r2")).toEqual(["aaa", "aaa", "aaa", "aaa"]);
    expect((await made.sync("r1"))?.desired).toEqual(before);
    const { operations, status } = await made.group();
    expect(operations).toEqual({});
    expect(status.state).toBe("Held");
    expect(status.conditions[0]?.message).toMatch(/^rollout 2 rejected by Starling: 1 of 2 clusters failed/);
  });

  test("the failed commit does not come again, and the next one goes through all stages", async () => {
    const made = await failed();
    await playOn(made);
    await made.setSource("ccc", "bbb");
    await playOn(made);
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
    await revise(made, "ddd");
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1", "r2")).toEqual(["ddd", "ddd", "ddd", "ddd"]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("in a group with one stage, the state tells that the newest rollout went back", async () => {
    const made = await worldOf(["c1", "c2"], { maxConcurrent: 2, onFailure: "rollback" } as never);
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1", "Failed");
    await playOn(made);
    expect(made.stages()).toEqual({ all: "3" });
    expect(await revisions(made, "c1", "c2")).toEqual(["aaa", "aaa"]);
    expect((await made.group()).status.state).toBe("Held");
  });

  test("a stage that had passed stays, and only the stage where it failed goes back", async () => {
    const made = await group();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.finish("c2");
    await begin(made);
    await made.finish("r1", "Failed");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "3" });
    expect(await revisions(made, "c1", "c2", "r1", "r2")).toEqual(["bbb", "bbb", "aaa", "aaa"]);
    // Neither a new list of members nor a cluster that answers again changes that.
    await made.addCluster("c3", "canary");
    await made.addCluster("r3", "rest");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "3" });
    expect(await revisions(made, "c1", "c3", "r1", "r3")).toEqual(["bbb", "aaa", "aaa", "aaa"]);
    await revise(made, "ddd");
    await playOn(made);
    expect(await revisions(made, "c1", "c3", "r1", "r3")).toEqual(["ddd", "ddd", "ddd", "ddd"]);
  });

  test("a newer rollout that was on its way before the failure still reaches the stage", async () => {
    const made = await group();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.finish("c2");
    await begin(made);
    await revise(made, "ccc");
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "1 (2)" });
    await made.finish("r1", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "2 (3)", rest: "4 (4)" });
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1", "r2")).toEqual(["ccc", "ccc", "ccc", "ccc"]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a rollback that fails as well stands still with both reasons, and starts no other", async () => {
    const made = await failed();
    await made.finish("c1", "Failed");
    await made.finish("c2");
    await made.plan();
    const message =
      /^rollout 2: 1 of 2 clusters failed in stage canary .*; the way back to rollout 1 failed as well: 1 of 2 clusters failed in stage canary [^;]*$/;
    expect(made.stageRun("canary")).toMatchObject({ phase: "Halted", message: expect.stringMatching(message) });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3 (3)", rest: "1" });
    expect(made.rolloutState().last).toBe(3);
    expect((await made.group()).status).toMatchObject({ state: "Halted" });
    await ask(made, "retry", { reason: "again" });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
    expect(await revisions(made, "c1", "c2")).toEqual(["aaa", "aaa"]);
  });

  test("a cluster that the rollout and its rollback broke counts in the next rollout", async () => {
    const made = await failed();
    await made.finish("c1", "Failed");
    await made.finish("c2");
    await made.plan();
    await revise(made, "ccc");
    await made.finish("c1", "Failed");
    await made.finish("c2");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ takesBack: { rollout: 4 } });
    expect(made.rolloutState().last).toBe(5);
  });

  test("a cluster that was broken before is no reason, and does not stop the way back", async () => {
    const made = await group();
    await made.observe("c2", "Failed");
    await revise(made, "bbb");
    await made.finish("c1");
    await made.finish("c2", "Failed");
    await begin(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await playOn(made);
    await made.observe("c2", "Failed");
    await revise(made, "ccc");
    await made.finish("c1", "Failed");
    await made.finish("c2", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "4 (4)", rest: "2" });
    await made.finish("c1");
    await made.finish("c2", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "4", rest: "2" });
    expect(made.stageRun("canary").message).toMatch(/^stage canary passed: 1 succeeded, 1 failed; c2: /);
  });

  test("clusters that do not answer never start it", async () => {
    const made = await group({ maxUnreachable: 0 });
    await revise(made, "bbb");
    await made.finish("c1");
    await made.finish("c2", "Unreachable");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("TooManyUnreachable");
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
  });

  test("without an earlier rollout, it stands still and says so", async () => {
    const made = await worldOf(clusters, pace as never);
    await begin(made);
    await made.finish("c1", "Failed");
    await made.finish("c2");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Halted",
      message: expect.stringMatching(/failed in stage canary .*; stage canary has no earlier rollout to go back to$/),
    });
  });

  test("a suspended group goes back at its resume, and a held one at once", async () => {
    const made = await group();
    await revise(made, "bbb");
    await made.finish("c1", "Failed");
    await made.finish("c2");
    await ask(made, "suspend", {});
    await made.plan();
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    await ask(made, "hold", { reason: "INC-1" });
    await ask(made, "resume", {});
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
    expect(await revisions(made, "c1", "c2")).toEqual(["aaa", "aaa"]);
  });

  test("its clusters get the inputs that they had", async () => {
    const templates = [{ name: "app", source: "app", path: "clusters/{{ cluster.labels.zone }}" }];
    const made = await worldOf([], { onFailure: "rollback" } as never, templates);
    await made.addCluster("c1", "all", { labels: { zone: "good" } });
    await made.rollOut();
    const before = (await made.sync("c1"))?.desired.renderDigest;
    await made.addCluster("c1", "all", { labels: { zone: "bad" } });
    await begin(made);
    await made.finish("c1", "Failed");
    await playOn(made);
    expect((await made.sync("c1"))?.desired).toMatchObject({ rollout: 3, renderDigest: before });
    expect(made.stages()).toEqual({ all: "3" });
    await playOn(made);
    expect(made.rolloutState().last).toBe(3);
  });

  test("a rollout that failed with halt goes back as soon as the spec says so, and its end lets the next one in", async () => {
    const made = await failed({ onFailure: "halt" });
    expect(made.stageRun("canary").phase).toBe("Halted");
    await made.setGroup(pace as never);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
  });

  test("after its rejection is taken back, the rollout goes through the stages again", async () => {
    const made = await failed();
    await playOn(made);
    await ask(made, "unreject", { rollout: 2, reason: "the database was the cause" });
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1", "r2")).toEqual(["bbb", "bbb", "bbb", "bbb"]);
    expect((await made.group()).status.state).toBe("Complete");
  });
});

const robot = "arn:aws:iam::111122223333:role/robot";
const arn = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors";

/** Rollout 2 is in the gates after the canary stage. */
async function inGates(...after: readonly object[]): Promise<PlannerWorld> {
  const made = await group();
  const [canary, rest] = rings.stages;
  await made.setGroup({ ...pace, stages: [{ ...canary, after }, rest] } as never);
  await revise(made, "bbb");
  await playOn(made);
  expect(made.stageRun("canary")).toMatchObject({ rollout: 2, phase: "Baking" });
  return made;
}

describe("a gate that fails after the clusters of a stage", () => {
  async function expectTakenBack(made: PlannerWorld, reason: RegExp): Promise<void> {
    expect(made.stageRun("canary")).toMatchObject({ takesBack: { rollout: 2, reason: expect.stringMatching(reason) } });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["aaa", "aaa", "aaa"]);
  }

  test("too many clusters fail during the bake", async () => {
    const made = await inGates({ bake: "30m" });
    await made.observe("c1", "Failed");
    await made.plan(made.table, ["c1"]);
    await expectTakenBack(made, /^during the bake, 1 of 2 clusters failed/);
  });

  test("an alarm rings during the bake", async () => {
    const made = await inGates({ bake: "30m" }, { alarm: { arn, missing: "fail" } });
    const { table, sender, clock } = made;
    const ports = { table, sender, clock, log: silentLog, metrics: silentMetrics };
    const alarms: AlarmReader = {
      read: async (_arn, _since, now) => ({ at: now.toISOString(), state: "ALARM", changes: [] }),
    };
    const { stageRuns } = await claimDue(ports);
    await watchAlarms(stageRuns, { ...ports, alarms });
    await made.plan(table, []);
    await expectTakenBack(made, /^alarm errors was in ALARM at .*, during the bake of stage canary$/);
  });

  test.each([
    ["rejects", true],
    ["stays silent", false],
  ])("the principal of a check %s", async (_does, isRejected) => {
    const made = await inGates({ check: { principal: robot, expires: "1h" } });
    if (!isRejected) {
      made.advanceClock(3600);
      await made.plan();
      expect(made.stageRun("canary")).toMatchObject({
        phase: "GateFailed",
        message: expect.stringMatching(/^CheckExpired: .*; onFailure does not take it back, because nobody answered/),
      });
      await playOn(made);
      expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
      return;
    }
    const api = apiFixture(made.table);
    api.setNow(made.now.toISOString());
    const { planHash } = made.stageRun("canary");
    const body = { stage: "canary", plan: planHash, answer: "rejected", reason: "errors 4 %" };
    const event = httpEvent("POST", `${path}/approve`, body);
    event.requestContext.authorizer.iam.userArn = "arn:aws:sts::111122223333:assumed-role/robot/run-1";
    expect(await api.raw(event)).toMatchObject({ status: 200 });
    await made.plan();
    await expectTakenBack(made, /robot\/run-1 rejected plan .*: errors 4 %$/);
  });
});

test("manifests that cannot be rendered never start it", async () => {
  const made = await group();
  await made.setSource("bbb");
  await made.plan();
  await made.renderAll("the chart is broken");
  await made.plan();
  expect(made.stageRun("canary")).toMatchObject({
    phase: "Halted",
    message: expect.stringMatching(/; onFailure does not take it back, because manifests could not be rendered$/),
  });
  await playOn(made);
  expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
});

test("a rollback that nobody asked for takes nothing back from a stage before its own", () => {
  const stage = { members: 1, changing: 0, failedCatchUps: 0 };
  const [canary, rest, last] = [
    { ...stage, name: "canary", current: 2, previous: 1 },
    { ...stage, name: "rest", current: 3 },
    { ...stage, name: "last", current: 1 },
  ];
  const [at, revision] = ["2026-11-21T08:00:00.000Z", "main"];
  const rolloutState = {
    stages: [canary, rest, last],
    rejected: [{ rollout: 2, by: "Starling", at }],
    ledger: [
      { number: 3, identity: "c", revision, at, rollback: 1, takesBack: { rollout: 2, stage: "rest" } },
      { number: 2, identity: "b", revision, at, passed: true as const },
      { number: 1, identity: "a", revision, at, passed: true as const },
    ],
  };
  const given = [canary, rest, last].map((one) => catchUpRollout(rolloutState, one, 2));
  expect(given).toEqual([undefined, 3, 3]);
});

/** There is one rollback, every cluster has the older rollout, and the failed one is rejected. */
async function expectBack(made: PlannerWorld, where: string): Promise<void> {
  expect(await revisions(made, "c1", "c2", "r1", "r2"), where).toEqual(["aaa", "aaa", "aaa", "aaa"]);
  expect(made.stages(), where).toEqual({ canary: "3", rest: "1" });
  const { last } = made.rolloutState();
  expect({ last, rejected: rejected(made) }, where).toEqual({ last: 3, rejected: [[2, "Starling"]] });
  expect((await made.group()).status.state, where).toBe("Held");
}

describe("the planner dies", () => {
  test.each(["before", "after"] as const)("%s any call while a failed rollout goes back", async (when) => {
    const begun = async () => {
      const made = await group();
      await revise(made, "bbb");
      await made.finish("c1", "Failed");
      await made.finish("c2");
      return made;
    };
    expect(await playDeaths(when, begun, expectBack)).toBeGreaterThan(10);
  });

  test.each(["before", "after"] as const)("%s any call while the rollback ends", async (when) => {
    const begun = async () => {
      const made = await failed();
      for (const { cluster } of made.slots()) await made.finish(cluster);
      return made;
    };
    expect(await playDeaths(when, begun, expectBack)).toBeGreaterThan(10);
  });
});

test("messages that come twice or not at all make one rollback", async () => {
  const made = await failed();
  await made.plan();
  await made.plan();
  for (const { cluster } of made.slots()) {
    await made.finish(cluster);
    await made.finish(cluster);
  }
  // No message tells the planner of what its next tick finds.
  await made.plan(undefined, []);
  await playOn(made);
  await expectBack(made, "messages come twice");
});
