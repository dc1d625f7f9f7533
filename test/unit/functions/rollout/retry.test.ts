/** `rollout retry`: failed clusters get another turn, all of them or those that the act names. */
import { describe, expect, test } from "vitest";
import { allSay, begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;
const pace = { ...rings, maxConcurrent: 5, maxFailures: 0 };

async function ask(made: PlannerWorld, verb: string, body: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  return api.call("POST", `${path}/${verb}`, body);
}

const retry = (made: PlannerWorld, body: object = {}) => ask(made, "retry", { reason: "INC-1", ...body });
const changing = (made: PlannerWorld) => made.slots().map(({ cluster }) => cluster);

/** A group whose rollout 2 is halted in `canary`, because both clusters failed there. */
async function halted(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "canary", c3: "rest" }, pace);
  await made.rollOut();
  await revise(made, "bbb");
  await allSay(made, "Failed");
  expect(made.stageRun("canary")).toMatchObject({ phase: "Halted", counts: { Failed: 2 } });
  return made;
}

describe("a retry", () => {
  test("a halted stage run goes on when all of its failed targets get another turn", async () => {
    const made = await halted();
    expect(await retry(made)).toMatchObject({ status: 200, body: { outcome: "configured" } });
    await begin(made);
    expect(changing(made)).toEqual(["c1", "c2"]);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test.each([
    ["a name", { cluster: "c2" }],
    ["a selector", { clusters: "ring=canary,!first" }],
  ])("only the clusters that %s names get another turn", async (_what, body) => {
    const made = await halted();
    await made.addCluster("c1", "canary", { labels: { first: "yes" } });
    await made.plan();
    await retry(made, body);
    await begin(made);
    // The other failure still spends the budget.
    expect(made.stageRun("canary")).toMatchObject({ phase: "Halted", counts: { Failed: 1, Waiting: 1 } });
    expect(made.stageRun("canary").failures.map(({ cluster }) => cluster)).toEqual(["c1"]);
  });

  test("a retry that follows another one before the planner sees either does not replace it", async () => {
    const made = await halted();
    await retry(made, { cluster: "c1" });
    await retry(made, { cluster: "c2" });
    await begin(made);
    expect(changing(made)).toEqual(["c1", "c2"]);
    const { handledAct } = made.rolloutState();
    expect(handledAct).toBe(2);
  });

  test("a retry is carried out once, and forgotten with the next act", async () => {
    const made = await halted();
    await retry(made);
    await begin(made);
    await allSay(made, "Failed");
    await begin(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Halted", counts: { Failed: 2 } });
    await ask(made, "hold", { reason: "INC-2" });
    expect((await made.group()).operations.gates).toBeUndefined();
  });

  test("a suspended group tries nothing again before the resume", async () => {
    const made = await halted();
    await ask(made, "suspend", {});
    await retry(made);
    await begin(made);
    expect(made.stageRun("canary").counts.Failed).toBe(2);
    await ask(made, "resume", {});
    await begin(made);
    expect(changing(made)).toEqual(["c1", "c2"]);
  });

  test("a failed catch-up gets another turn", async () => {
    const made = await worldOf({ c1: "canary", c3: "rest" }, pace);
    await made.rollOut();
    await made.addCluster("c4", "rest");
    await begin(made);
    await allSay(made, "Failed");
    expect(made.rolloutState().catchUps.failed).toBe(1);
    await retry(made, { cluster: "c4" });
    await begin(made);
    expect(changing(made)).toEqual(["c4"]);
  });

  test.each([
    ["a cluster that is not registered", { cluster: "c9" }, 400, "cluster: no cluster c9 is registered"],
    [
      "a cluster that has not failed",
      { cluster: "c3" },
      409,
      "cluster c3 has not failed in SyncGroup shop/web; nothing is tried again",
    ],
    ["a selector that is none", { clusters: "=" }, 400, "clusters"],
    ["a name and a selector", { cluster: "c1", clusters: "a=b" }, 400, "clusters"],
    ["no reason", { reason: undefined }, 400, "reason"],
  ])("the API refuses %s", async (_what, body, status, message) => {
    const made = await halted();
    const answer = await retry(made, body);
    expect(answer.status).toBe(status);
    expect(answer.body.message).toContain(message);
    expect((await made.group()).operations.gates).toBeUndefined();
  });
});
