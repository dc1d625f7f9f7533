/** A stage that asks for approvals gets nothing that nobody approved there, whatever people do around it. */
import { describe, expect, test } from "vitest";
import { playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture, httpEvent } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const before = [{ approval: { by: ["arn:aws:iam::*:role/sre"], count: 1, expires: "24h" } }];
const gated = (name = "rest") => ({
  maxConcurrent: 5,
  stages: [
    { name: "canary", ...canary },
    { ...rest, name, before },
  ],
});

async function ask(made: PlannerWorld, verb: string, body: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/${verb}`;
  const event = httpEvent("POST", path, { reason: "INC-1", ...body });
  event.requestContext.authorizer.iam.userArn = "arn:aws:sts::111122223333:assumed-role/sre/ana";
  return api.raw(event);
}

async function approve(made: PlannerWorld): Promise<void> {
  const { planHash: plan } = made.stageRun("rest");
  expect(await ask(made, "approve", { stage: "rest", plan })).toMatchObject({ status: 200 });
  await playOn(made);
}

const has = async (made: PlannerWorld, cluster: string) =>
  (await made.sync(cluster))?.desired.revision.replace("main@sha1:", "");

/** The rest has had the third rollout, and the second one only if it is approved. @param first - also the first one. */
async function withoutSecond({ first = true } = {}): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest" }, gated());
  await playOn(made);
  if (first) await approve(made);
  for (const commit of ["bbb", "ccc"]) {
    await revise(made, commit);
    await playOn(made);
  }
  await approve(made);
  expect(made.stages()).toEqual({ canary: "3", rest: "3" });
  return made;
}

describe("a rollback", () => {
  test("to a rollout that never passed the stage is refused, and the refusal names one that did", async () => {
    const made = await withoutSecond();
    const answer = await ask(made, "rollback", { to: 2 });
    expect(answer).toMatchObject({ status: 409, body: { code: "NothingToRollBack" } });
    expect(answer.body.message).toMatch(
      /stage rest asks for approvals, and rollout 2 never passed it; name one that it had: --to 1$/,
    );
    await playOn(made);
    expect([await has(made, "c1"), await has(made, "r1")]).toEqual(["ccc", "ccc"]);
    expect(await ask(made, "rollback", { to: 1 })).toMatchObject({ status: 200 });
    await playOn(made);
    expect([await has(made, "c1"), await has(made, "r1")]).toEqual(["aaa", "aaa"]);
  });

  test("takes back the stages before one that had no other rollout, which keeps what it has", async () => {
    const made = await withoutSecond({ first: false });
    const answer = await ask(made, "rollback", {});
    expect(answer.body.rollback).toMatchObject({ to: 2, stages: [{ name: "canary" }] });
    await playOn(made);
    expect([await has(made, "c1"), await has(made, "r1")]).toEqual(["bbb", "ccc"]);
  });

  test("goes to a rollout that passed the stage long ago, also under another name of the stage", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, gated());
    await playOn(made);
    await approve(made);
    for (const commit of ["bbb", "ccc"]) {
      await revise(made, commit);
      await playOn(made);
      await approve(made);
    }
    await made.setGroup(gated("prod"));
    await playOn(made);
    expect(await ask(made, "rollback", { to: 1 })).toMatchObject({ status: 200 });
    await playOn(made);
    expect([await has(made, "c1"), await has(made, "r1")]).toEqual(["aaa", "aaa"]);
  });
});

describe("a stage that passed without clusters", () => {
  const ring = (name: string) => ({ name, clusters: { selector: { matchLabels: { ring: name } } } });
  test.each([
    [
      "a stage before it",
      [
        { ...ring("mid"), before },
        { name: "rest", before },
      ],
    ],
    [
      "a stage after it",
      [
        { ...ring("rest"), before },
        { name: "last", before },
      ],
    ],
    [
      "two stages in its place",
      [
        { ...ring("rest"), name: "prod", before },
        { name: "last", before },
      ],
    ],
  ])("gives nothing to the clusters of %s", async (_which, stages) => {
    const made = await worldOf({ c1: "canary" }, gated());
    await playOn(made);
    await made.setGroup({ maxConcurrent: 5, stages: [{ name: "canary", ...canary }, ...stages] } as never);
    await playOn(made);
    await made.addCluster("r1", "rest");
    await made.addCluster("m1", "mid");
    await playOn(made);
    expect([await has(made, "r1"), await has(made, "m1")]).toEqual([undefined, undefined]);
  });
});
