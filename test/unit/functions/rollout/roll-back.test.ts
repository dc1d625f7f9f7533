/** Rollbacks: every stage that has something newer gets the older rollout, at once, and nothing else does. */
import { describe, expect, test } from "vitest";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { syncStateOf } from "#shared/fleet/rows/sync-state-of.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, verb: string, body: object) {
  const api = apiFixture(made.table, made.table, made.blobs);
  api.setNow(made.now.toISOString());
  return api.call("POST", `${path}/${verb}`, body);
}

const rollBack = async (made: PlannerWorld, more: object = {}) => {
  expect(await ask(made, "rollback", { reason: "INC-1", ...more })).toMatchObject({ status: 200 });
};

const revisions = async (made: PlannerWorld, ...clusters: readonly string[]) =>
  Promise.all(clusters.map(async (cluster) => (await made.sync(cluster))?.desired.revision.slice(-3)));

const appAndMore = [
  { name: "app", source: "app" },
  { name: "more", source: "app" },
];

/** Both stages have `aaa`, and then `bbb`, which is rollout 2. */
async function group(pace: object = {}): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3, ...pace });
  await made.rollOut();
  await revise(made, "bbb");
  await playOn(made);
  return made;
}

/** Both stages have rollout 1, and then rollout 2, which adds the template `more`. */
async function groupWithMore(): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
  await made.rollOut();
  await made.setGroup({ ...rings, maxConcurrent: 3 }, appAndMore);
  await playOn(made);
  return made;
}

/** Stores a rendering for each requested one: a ConfigMap with the end of its revision as the name. */
async function storeRenderings(made: PlannerWorld): Promise<void> {
  for (const row of made.rows<RenderingRow>("Rendering")) {
    const revision = row.sources?.[0]?.revision?.slice(-3) ?? "";
    const metadata = { name: revision, namespace: "shop" };
    const { digest, bytes } = encodeRendering([{ apiVersion: "v1", kind: "ConfigMap", metadata }]);
    await made.blobs.overwrite(blobKeys.rendering(digest), bytes);
    await made.table.write([
      { put: { ...row, digest, version: row.version + 1 } as RenderingRow, when: { version: row.version } },
    ]);
  }
}

describe("a rollback", () => {
  test("all stages go back at once, the bad rollout is rejected, and the group is held", async () => {
    const made = await group();
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    await rollBack(made);
    await made.plan(undefined, []);
    expect(made.stages()).toEqual({ canary: "3 (3)", rest: "3 (3)" });
    expect(made.slots().map(({ cluster, rollout }) => [cluster, rollout])).toEqual([
      ["c1", 3],
      ["c2", 3],
      ["r1", 3],
    ]);
    expect(made.rolloutState()).toMatchObject({ rejected: [{ rollout: 2, reason: "INC-1" }], last: 3 });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["aaa", "aaa", "aaa"]);
    expect((await made.group()).status.state).toBe("Complete");
    expect((await made.group()).operations.hold).toMatchObject({ reason: "INC-1" });
  });

  test("neither a push nor a tick undoes it, and after the release only the fix goes through the stages", async () => {
    const made = await group();
    await rollBack(made);
    await playOn(made);
    await made.setSource("ccc", "bbb");
    await playOn(made);
    await revise(made, "ddd");
    await playOn(made);
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
    await made.setSource("eee", "bbb");
    await playOn(made);
    expect(await ask(made, "release", {})).toMatchObject({ status: 200 });
    await playOn(made);
    expect(made.rolloutState().rejected?.map(({ rollout, like }) => [rollout, like])).toContainEqual([2, undefined]);
    await revise(made, "fff");
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["fff", "fff", "fff"]);
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("after its rejection is taken back and the group is released, the bad rollout goes through the stages again", async () => {
    const made = await group();
    await rollBack(made);
    await playOn(made);
    expect(await ask(made, "unreject", { rollout: 2, reason: "the database was the cause" })).toMatchObject({
      status: 200,
    });
    await playOn(made);
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
    await ask(made, "release", {});
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["bbb", "bbb", "bbb"]);
  });

  test("a commit that a hold kept back before the rollback goes through the stages after the release", async () => {
    const made = await group();
    expect(await ask(made, "hold", { reason: "INC-1" })).toMatchObject({ status: 200 });
    await revise(made, "ccc");
    await playOn(made);
    await rollBack(made, { to: 1 });
    await playOn(made);
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
    expect(await ask(made, "release", {})).toMatchObject({ status: 200 });
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["ccc", "ccc", "ccc"]);
  });

  test("a stage that had nothing newer keeps what it has, also after the release", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    const before = (await made.sync("r1"))?.desired;
    await revise(made, "bbb");
    await made.finish("c1", "Failed");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Halted");
    await rollBack(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
    await ask(made, "release", {});
    await playOn(made);
    expect((await made.sync("r1"))?.desired).toEqual(before);
    expect(made.targets(3).map(({ cluster }) => cluster)).toEqual(["c1"]);
    expect(await revisions(made, "c1")).toEqual(["aaa"]);
  });

  test("an attempt in its slot is replaced at once, without jitter, while its worker applies", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await made.setGroup({ ...rings, maxConcurrent: 3, jitter: "5m" });
    await revise(made, "bbb");
    await made.observe("c1", "Applying");
    await rollBack(made);
    await made.plan(undefined, []);
    expect((await made.sync("c1"))?.desired).toMatchObject({ rollout: 3, revision: "main@sha1:aaa" });
    expect((await made.sync("c1"))?.desired).not.toHaveProperty("startAt");
  });

  test("clusters get the inputs that they had, and not those of today", async () => {
    const templates = [{ name: "app", source: "app", path: "clusters/{{ cluster.labels.zone }}" }];
    const made = await worldOf([], {}, templates);
    await made.addCluster("c1", "all", { labels: { zone: "good" } });
    await made.rollOut();
    const before = (await made.sync("c1"))?.desired.renderDigest;
    await made.addCluster("c1", "all", { labels: { zone: "bad" } });
    await playOn(made);
    expect(made.rolloutState().last).toBe(2);
    expect((await made.sync("c1"))?.desired.renderDigest).not.toBe(before);
    await rollBack(made);
    await playOn(made);
    expect((await made.sync("c1"))?.desired).toMatchObject({ rollout: 3, renderDigest: before });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("it never stands still, ends naming its failures, and a silent cluster gets it when it answers", async () => {
    const made = await group();
    await rollBack(made);
    await made.plan(undefined, []);
    await made.finish("c1", "Failed");
    await made.finish("c2", "Unreachable");
    await made.finish("r1");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(made.stageRun("canary").message).toMatch(/^stage canary passed: .*; c1: .*; c2: Unreachable$/);
    await made.observe("c2", "Reachable");
    await playOn(made);
    expect(await revisions(made, "c2")).toEqual(["aaa"]);
    expect((await made.sync("c2"))?.observed?.phase).toBe("Ready");
  });

  test("a suspended group goes back at its resume, and a frozen one after the thaw", async () => {
    const made = await group();
    await ask(made, "suspend", {});
    await rollBack(made);
    await playOn(made);
    expect(await revisions(made, "c1")).toEqual(["bbb"]);
    await made.setFreezes({ freezes: [{ name: "inc", by: "ana", at: made.now.toISOString(), reason: "INC-1" }] });
    await ask(made, "resume", {});
    await playOn(made);
    expect(await revisions(made, "c1")).toEqual(["bbb"]);
    await made.setFreezes({});
    await playOn(made);
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
  });

  test("until its thaw, a cluster whose worker had not begun the bad rollout is Rejected, and not failed", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    expect(made.slots()).toMatchObject([{ cluster: "c1", rollout: 2 }]);
    await made.setFreezes({ freezes: [{ name: "inc", by: "ana", at: made.now.toISOString(), reason: "INC-1" }] });
    await rollBack(made, { to: 1 });
    await playOn(made);
    const frozen = await made.sync("c1");
    expect(frozen && syncStateOf(frozen)).toBe("Rejected");
    expect((await made.group()).status).toMatchObject({ clusters: { failed: 0, waiting: 1 } });
    await made.setFreezes({});
    await playOn(made);
    expect(await revisions(made, "c1")).toEqual(["aaa"]);
    expect(await made.sync("c1")).not.toHaveProperty("paused");
  });

  test("a template that the bad rollout added stays, and the answer names it", async () => {
    const made = await groupWithMore();
    const dry = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(dry.body).toMatchObject({ rollback: { to: 1, stay: ["more"], createdAgain: [] } });
    await rollBack(made);
    await playOn(made);
    expect((await made.sync("c1", "web.more"))?.desired.action).toBe("apply");
  });

  test("a template that the bad rollout added is deleted when the request says so, also from a cluster that answers later", async () => {
    const made = await groupWithMore();
    const dry = await ask(made, "rollback-deleting", { reason: "INC-1", dryRun: true });
    expect(dry.body).toMatchObject({ rollback: { to: 1, stay: [], deletes: ["more"] } });
    expect(await ask(made, "rollback-deleting", { reason: "INC-1" })).toMatchObject({ status: 200 });
    await begin(made);
    expect((await made.sync("c1", "web.more"))?.desired).toMatchObject({ action: "delete", asked: true });
    await made.finish("c1");
    await made.observe("r1", "Unreachable", { name: "web.more" });
    await made.plan();
    expect(await made.sync("c1", "web.more")).toBeUndefined();
    expect(made.states()).toMatchObject({ r1: "Unreachable" });
    await made.observe("r1", "Reachable", { name: "web.more" });
    await playOn(made);
    expect(await made.sync("r1", "web.more")).toBeUndefined();
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
  });

  test("after the release, the fix brings the deleted template back", async () => {
    const made = await groupWithMore();
    expect(await ask(made, "rollback-deleting", { reason: "INC-1" })).toMatchObject({ status: 200 });
    await playOn(made);
    await revise(made, "ccc");
    await ask(made, "release", {});
    await playOn(made);
    for (const cluster of ["c1", "r1"])
      expect(await made.sync(cluster, "web.more")).toMatchObject({
        desired: { action: "apply" },
        observed: { phase: "Ready" },
      });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("a template that the bad rollout dropped comes back, and the answer names it", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.setGroup({ ...rings, maxConcurrent: 3 }, appAndMore);
    await made.rollOut();
    await made.setGroup({ ...rings, maxConcurrent: 3 }, appAndMore.slice(0, 1));
    await playOn(made);
    expect(await made.sync("c1", "web.more")).toBeUndefined();
    const dry = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(dry.body).toMatchObject({ rollback: { stay: [], createdAgain: ["more"] } });
    await rollBack(made);
    await playOn(made);
    expect((await made.sync("c1", "web.more"))?.desired.action).toBe("apply");
  });

  test("a template that the group has not any more is none that stays", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await made.setGroup({ ...rings, maxConcurrent: 3 }, appAndMore);
    await playOn(made);
    await made.setGroup({ ...rings, maxConcurrent: 3 }, appAndMore.slice(0, 1));
    const dry = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(dry.body).toMatchObject({ rollback: { to: 1, rejects: [2], stay: [] } });
  });

  test("a second one needs a number, and a rejected rollout or a rollback is none to go back to", async () => {
    const made = await group();
    await revise(made, "ccc");
    await playOn(made);
    await rollBack(made);
    await playOn(made);
    expect(await revisions(made, "c1")).toEqual(["bbb"]);
    for (const [body, message] of [
      [{}, /rollout 4 is a rollback to 2; name an older one: --to N$/],
      [{ to: 3 }, /rollout 3 is rejected/],
      [{ to: 4 }, /rollout 4 is a rollback; go back to the rollout that it went to: --to 2$/],
      [{ to: 9 }, /rollout 9 is not kept; these are: 4, 3, 2, 1$/],
    ] as const) {
      const answer = await ask(made, "rollback", { reason: "INC-1", ...body });
      expect(answer).toMatchObject({ status: 409, body: { code: "NothingToRollBack" } });
      expect(answer.body.message).toMatch(message);
    }
    await rollBack(made, { to: 1 });
    await playOn(made);
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
  });

  test("a dry run says what it would do, and changes nothing", async () => {
    const made = await group();
    const rows = made.table.all();
    const answer = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(answer.body).toMatchObject({
      outcome: "unchanged",
      rollback: {
        to: 1,
        stages: [
          { name: "canary", members: 2 },
          { name: "rest", members: 1 },
        ],
        rejects: [2],
      },
    });
    expect(made.table.all()).toEqual(rows);
  });

  test("a dry run names what happens to objects, from the stored renderings of both rollouts", async () => {
    const made = await group();
    await storeRenderings(made);
    await made.addCluster("c9", "canary");
    await playOn(made);
    const { body } = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(body.rollback.objects).toEqual({
      effects: [
        { how: "deleted", object: "ConfigMap shop/bbb", sync: "web.app", clusters: 3 },
        { how: "createdAgain", object: "ConfigMap shop/aaa", sync: "web.app", clusters: 3 },
      ],
      more: 0,
      notCompared: [],
    });
  });

  test("a rendering that is not stored any more is said to be that, and the rollback goes on", async () => {
    const made = await group();
    const { status, body } = await ask(made, "rollback", { reason: "INC-1" });
    expect(status).toBe(200);
    expect(body.rollback.objects).toEqual({
      effects: [],
      more: 0,
      notCompared: [{ clusters: 3, why: "a rendering is not stored any more" }],
    });
  });

  test("the answer says nothing of clusters that joined since the older rollout, or that a stage run has not reached", async () => {
    const made = await worldOf({ c1: "canary", c2: "canary" }, { ...rings, maxConcurrent: 1 });
    await made.rollOut();
    await made.addCluster("c3", "canary");
    await playOn(made);
    await revise(made, "bbb");
    await storeRenderings(made);
    expect(made.stageRun("canary")).toMatchObject({ size: 3, counts: { Assigned: 1 } });
    const { body } = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(body.rollback.objects).toMatchObject({ effects: [{ clusters: 1 }, { clusters: 1 }], notCompared: [] });
    await playOn(made);
    const { body: later } = await ask(made, "rollback", { reason: "INC-1", dryRun: true });
    expect(later.rollback.objects).toMatchObject({
      effects: [{ clusters: 2 }, { clusters: 2 }],
      notCompared: [{ clusters: 1, why: "they did not have rollout 1, and get it with their values of today" }],
    });
  });

  test("a cluster that joins gets what its stage went back to", async () => {
    const made = await group();
    await rollBack(made);
    await begin(made);
    await made.addCluster("c4", "canary");
    await playOn(made);
    expect(await revisions(made, "c4")).toEqual(["aaa"]);
  });

  test("a cluster that moved with the bad rollout to a stage that never had it goes back as well", async () => {
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    await revise(made, "bbb");
    await made.finish("c1");
    await made.finish("c2", "Failed");
    await made.plan();
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    await made.addCluster("c1", "rest");
    await playOn(made);
    await rollBack(made);
    await playOn(made);
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["aaa", "aaa", "aaa"]);
    expect(made.stages()).toEqual({ canary: "3", rest: "1" });
  });

  test("a cluster that moved after its stage had passed the bad rollout goes back as well", async () => {
    const [canary, rest] = rings.stages;
    const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest", e1: "early" }, { maxConcurrent: 4 });
    const early = { name: "early", clusters: { selector: { matchLabels: { ring: "early" } } } };
    await made.setGroup({ maxConcurrent: 4, stages: [canary, early, rest] as never });
    await made.rollOut();
    await revise(made, "bbb");
    await ask(made, "hold", { reason: "INC-1" });
    await made.finish("c1");
    await made.finish("c2");
    await begin(made);
    expect(made.stages()).toEqual({ canary: "2", early: "1", rest: "1" });
    await made.addCluster("c1", "rest");
    await made.plan();
    await rollBack(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", early: "1", rest: "1" });
    expect(await revisions(made, "c1", "c2", "e1", "r1")).toEqual(["aaa", "aaa", "aaa", "aaa"]);
  });

  test("nothing reaches a stage that never had the older rollout; its clusters with something newer go back", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest", r2: "rest" }, { ...rings, maxConcurrent: 3 });
    await made.rollOut();
    // The rest takes the third rollout before it had the second.
    await revise(made, "bbb");
    await made.setFreezes({
      freezes: [
        {
          name: "inc",
          by: "ana",
          at: made.now.toISOString(),
          reason: "r",
          clusters: { text: "ring=rest", selector: { matchLabels: { ring: "rest" } } },
        },
      ],
    });
    await made.finish("c1");
    await begin(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "1 (2)" });
    await revise(made, "ccc");
    await made.finish("c1");
    await begin(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "1 (3)" });
    await made.setFreezes({});
    await made.setGroup({ ...rings, maxConcurrent: 1 });
    await begin(made);
    expect(await revisions(made, "r1", "r2")).toEqual(["ccc", "aaa"]);
    await rollBack(made, { to: 2 });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "4", rest: "1" });
    expect(await revisions(made, "c1", "r1", "r2")).toEqual(["bbb", "bbb", "aaa"]);
  });

  test("it goes through closed windows, and needs neither approval nor bake", async () => {
    const after = [{ bake: "1h" }];
    const approval = { by: ["arn:aws:iam::*:role/sre"], count: 1, expires: "24h" };
    const made = await group();
    const stages = rings.stages.map((stage) => ({ ...stage, before: [{ approval }], after }));
    await made.setGroup({ stages: stages as never, maxConcurrent: 3 });
    const deny = [{ start: "2026-11-20T00:00:00Z", end: "2026-12-20T00:00:00Z" }];
    const spec = { clusters: { all: true }, deny };
    const documents = [{ apiVersion: "starling.dev/v1alpha1", kind: "Window", metadata: { name: "closed" }, spec }];
    const api = apiFixture(made.table);
    expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({ status: 200 });
    await rollBack(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "3", rest: "3" });
    expect(await revisions(made, "c1", "c2", "r1")).toEqual(["aaa", "aaa", "aaa"]);
    expect((await made.sync("c1"))?.desired.beginBefore).toBeUndefined();
    // A cluster that joins meanwhile gets what its stage went back to.
    await made.addCluster("c4", "canary");
    await playOn(made);
    expect(await revisions(made, "c4")).toEqual(["aaa"]);
  });

  test("without a number, a rollback stands for the rollout that it went to", async () => {
    const made = await group();
    await rollBack(made);
    await playOn(made);
    await ask(made, "release", {});
    await revise(made, "ccc");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "4", rest: "4" });
    await rollBack(made);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "5", rest: "5" });
    expect(await revisions(made, "c1", "r1")).toEqual(["aaa", "aaa"]);
  });

  test("the rollout to go back to is named by its revision or its commit as well", async () => {
    for (const to of ["main@sha1:1111111aa", "1111111", "1111111aa"]) {
      const made = await worldOf({ c1: "canary", r1: "rest" }, { ...rings, maxConcurrent: 3 });
      await made.rollOut();
      for (const commit of ["1111111aa", "2222222bb"]) {
        await revise(made, commit);
        await playOn(made);
      }
      await rollBack(made, { to });
      await playOn(made);
      expect((await made.sync("c1"))?.desired.revision).toBe("main@sha1:1111111aa");
      expect(await ask(made, "rollback", { reason: "INC-1", to: "2222222bb" })).toMatchObject({
        status: 409,
        body: { message: expect.stringContaining("no kept rollout has revision 2222222bb") },
      });
      expect(await ask(made, "rollback", { reason: "INC-1", to: "111111" })).toMatchObject({ status: 409 });
    }
  });
});
