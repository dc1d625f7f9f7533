/** Bakes: a stage run passes its stage only after its clusters have stayed well for a while. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { ana, begin, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { type OperationsInput, owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const bakes = (bake: string) => ({
  maxConcurrent: 5,
  stages: [
    { name: "canary", ...canary, after: [{ bake }] },
    { name: "rest", ...rest },
  ],
});
const baked = bakes("30m");
const minutes = 60;
/** A second template, which no canary gets. */
const onlyForRest = [
  ...web,
  { name: "more", source: "app", overrides: [{ clusters: canary?.clusters, disabled: true }] },
];

/** A group with two canaries, whose first rollout bakes there. */
async function bakingGroup(pace: object = {}): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "canary", r1: "rest" }, { ...baked, ...pace });
  await playOn(made);
  return made;
}

/** Plays the workers that answer the check at the end of a bake. */
async function answer(made: PlannerWorld, phases: Readonly<Record<string, "Ready" | "Failed">>): Promise<void> {
  for (const [cluster, phase] of Object.entries(phases)) await made.observe(cluster, phase);
  await made.plan();
}

async function isAsked(made: PlannerWorld, cluster: string): Promise<boolean> {
  const { reconcile, observed } = (await made.sync(cluster)) ?? {};
  return reconcile !== undefined && observed?.handledReconcile !== reconcile;
}

async function act(made: PlannerWorld, operations: object): Promise<void> {
  await made.operate({ ...(await made.group()).operations, ...operations } as OperationsInput);
  await made.plan();
}

describe("a bake", () => {
  test("the next stage begins after the bake, and after a check of every cluster", async () => {
    const made = await bakingGroup();
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Baking",
      message: "stage canary bakes for 30m, until 2026-11-21T08:30:00.000Z",
    });
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    made.advanceClock(29 * minutes);
    await playOn(made);
    expect(made.stageRun("canary").phase).toBe("Baking");
    expect(await isAsked(made, "c1")).toBe(false);
    made.advanceClock(minutes);
    await playOn(made);
    expect(made.stageRun("canary").phase).toBe("Baking");
    expect(await Promise.all(["c1", "c2", "r1"].map((cluster) => isAsked(made, cluster)))).toEqual([true, true, false]);
    await answer(made, { c1: "Ready" });
    expect(made.stageRun("canary").phase).toBe("Baking");
    await answer(made, { c2: "Ready" });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("the planner is due at the end of the bake, and of the check after it", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, bakes("5m"));
    await playOn(made);
    const dueAt = async (seconds: number) => {
      made.advanceClock(seconds);
      await made.table.write([{ update: keys.rolloutState(owner), remove: ["dueKey"] }]);
      await made.plan();
      return made.rolloutState().dueKey?.slice(0, 24);
    };
    expect(await dueAt(2 * minutes)).toBe("2026-11-21T08:05:00.000Z");
    await dueAt(3 * minutes);
    expect(await dueAt(minutes)).toBe("2026-11-21T08:15:00.000Z");
  });

  test("a newer rollout neither ends the bake nor joins it", async () => {
    const made = await bakingGroup();
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    made.advanceClock(30 * minutes);
    await playOn(made);
    await answer(made, { c1: "Ready", c2: "Ready" });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
    expect(made.stageRun("canary")).toMatchObject({
      rollout: 2,
      phase: "Baking",
      bake: { from: "2026-11-21T08:30:00.000Z" },
    });
  });

  test("a cluster that fails meanwhile ends the bake at once, and a newer rollout goes on", async () => {
    const made = await bakingGroup();
    made.advanceClock(10 * minutes);
    await made.observe("c1", "Failed", { reason: "Crashed" });
    await made.plan(made.table, ["c1"]);
    expect(made.stageRun("canary")).toMatchObject({ phase: "GateFailed", counts: { Succeeded: 1, Failed: 1 } });
    expect(made.stageRun("canary").message).toMatch(
      /^during the bake, 1 of 2 clusters failed in stage canary \(allowed: 0\): c1: Crashed/,
    );
    expect((await made.group()).status.state).toBe("Stalled");
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "- (2)", rest: "-" });
    expect(made.stageRun("canary").phase).toBe("Baking");
  });

  test("a failure within the budget does not end it", async () => {
    const made = await bakingGroup({ maxFailures: 1 });
    await made.observe("c1", "Failed");
    await made.plan(made.table, ["c1"]);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", counts: { Failed: 1 } });
    await made.observe("c2", "Failed");
    await made.plan(made.table, ["c2"]);
    expect(made.stageRun("canary").phase).toBe("GateFailed");
  });

  test("a cluster that fails when it is checked at the end counts, although no message told of it", async () => {
    const made = await bakingGroup();
    made.advanceClock(30 * minutes);
    await made.plan();
    await answer(made, { c1: "Ready", c2: "Failed" });
    expect(made.stageRun("canary").phase).toBe("GateFailed");
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
  });

  test.each([
    [0, "TooManyUnreachable", "- (1)"],
    [1, "Passed", "1"],
  ])(
    "a cluster that stays silent counts as unreachable after the deadline: of %i allowed, %s",
    async (maxUnreachable, phase, stage) => {
      const made = await bakingGroup({ maxUnreachable });
      made.advanceClock(30 * minutes);
      await made.plan();
      await answer(made, { c1: "Ready" });
      made.advanceClock(599);
      await made.plan();
      expect(made.stageRun("canary").phase).toBe("Baking");
      made.advanceClock(1);
      await made.plan();
      expect(made.stageRun("canary")).toMatchObject({ phase, counts: { Succeeded: 1, Unreachable: 1 }, away: ["c2"] });
      expect(made.stages().canary).toBe(stage);
    },
  );

  test("a cluster that is assigned after the check has begun needs no other check", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, baked);
    await playOn(made);
    made.advanceClock(30 * minutes);
    await made.plan();
    made.advanceClock(10 * minutes);
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({ phase: "NothingVerified", away: ["c1"] });
    await made.addCluster("c2", "canary");
    await made.setGroup({ ...baked, maxUnreachable: 1 });
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Passed", counts: { Succeeded: 1, Unreachable: 1 } });
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test("the time of a suspension does not count", async () => {
    const made = await bakingGroup();
    made.advanceClock(10 * minutes);
    const api = apiFixture(made.table);
    const ask = async (verb: string) => {
      api.setNow(made.now.toISOString());
      const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/${verb}`;
      expect(await api.call("POST", path, { reason: "INC-1" })).toMatchObject({ status: 200 });
      await made.plan();
    };
    for (const pause of [40, 60]) {
      await ask("suspend");
      expect(made.stageRun("canary").message).toBe("stage canary bakes for 30m");
      made.advanceClock(pause * minutes);
      await made.plan();
      expect(made.stageRun("canary").phase).toBe("Baking");
      await ask("resume");
    }
    expect(made.stageRun("canary").message).toBe("stage canary bakes for 30m, until 2026-11-21T10:10:00.000Z");
  });

  test.each([
    ["at its end", 20],
    ["ten minutes after its end", 30],
  ])("the time of a suspension that ends by itself does not count, when the planner comes %s", async (_when, pause) => {
    const made = await bakingGroup();
    made.advanceClock(10 * minutes);
    const until = new Date(made.now.getTime() + 20 * minutes * 1000).toISOString();
    await act(made, { suspended: { ...ana(made.now), until } });
    made.advanceClock(19 * minutes);
    await made.plan();
    expect(made.stageRun("canary").message).toBe("stage canary bakes for 30m");
    expect((await made.group()).operations.suspended?.until).toBe(until);
    made.advanceClock((pause - 19) * minutes);
    await made.plan();
    expect((await made.group()).operations).toMatchObject({ resumed: { at: until, stood: 1200 } });
    expect(made.stageRun("canary").message).toBe("stage canary bakes for 30m, until 2026-11-21T08:50:00.000Z");
  });

  test.each([
    ["fast", 60],
    ["slow", -60],
  ])(
    "workers with %s clocks do not end a bake early, and do not answer its check before they were asked",
    async (_what, off) => {
      const made = await bakingGroup();
      const reported = async () => {
        for (const cluster of ["c1", "c2"]) {
          const row = await made.sync(cluster);
          if (row?.observed === undefined) throw new Error("nothing was reported");
          const at = new Date(made.now.getTime() + off * minutes * 1000).toISOString();
          const put = { ...row, observed: { ...row.observed, at, since: at, startedAt: at }, version: row.version + 1 };
          await made.table.write([{ put }]);
        }
        await made.plan(made.table, ["c1", "c2"]);
      };
      await reported();
      made.advanceClock(29 * minutes);
      await reported();
      expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", bake: { from: "2026-11-21T08:00:00.000Z" } });
      expect(await isAsked(made, "c1")).toBe(false);
      made.advanceClock(minutes);
      await made.plan();
      await reported();
      await made.plan();
      expect(await isAsked(made, "c1")).toBe(true);
      expect(made.stages().canary).toBe("- (1)");
      await answer(made, { c1: "Ready", c2: "Ready" });
      await playOn(made);
      expect(made.stages().canary).toBe("1");
    },
  );

  describe("a freeze", () => {
    const ask = async (made: PlannerWorld, method: string, path: string, body: object = {}) => {
      const api = apiFixture(made.table);
      api.setNow(made.now.toISOString());
      expect(await api.call(method, path, body)).toMatchObject({ status: 200 });
      await made.plan();
    };
    const freeze = (made: PlannerWorld, name: string, clusters?: string, more: object = {}) =>
      ask(made, "POST", `/v1/freezes/${name}`, {
        reason: "INC-1",
        ...(clusters === undefined ? {} : { clusters }),
        ...more,
      });
    const thaw = (made: PlannerWorld, name: string) => ask(made, "DELETE", `/v1/freezes/${name}`);
    const later = (made: PlannerWorld, by: number) => new Date(made.now.getTime() + by * minutes * 1000).toISOString();
    const message = (made: PlannerWorld) => made.stageRun("canary").message;

    test.each([
      ["of every cluster", undefined],
      ["of the clusters with the label of the stage", "ring=canary"],
    ])("a freeze %s stops the clock, and the wait names it", async (_what, clusters) => {
      const made = await bakingGroup();
      made.advanceClock(10 * minutes);
      await freeze(made, "inc", clusters);
      expect(message(made)).toBe("stage canary bakes for 30m");
      made.advanceClock(40 * minutes);
      await playOn(made);
      expect(made.stageRun("canary").phase).toBe("Baking");
      expect(await isAsked(made, "c1")).toBe(false);
      const api = apiFixture(made.table);
      const { body } = await api.call("GET", `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/rollout`);
      const said = body.status.waits.filter(({ reason }: { reason: string }) => reason === "bake");
      expect(said).toMatchObject([{ message: expect.stringContaining("; freeze inc stops its clock") }]);
      expect(said[0].until).toBeUndefined();
      await thaw(made, "inc");
      expect(message(made)).toBe("stage canary bakes for 30m, until 2026-11-21T09:10:00.000Z");
    });

    test("a freeze that leaves out one of its clusters does not stop the clock", async () => {
      const made = await bakingGroup();
      await made.addCluster("c2", "other");
      await freeze(made, "inc", "ring=canary");
      expect(message(made)).toBe("stage canary bakes for 30m, until 2026-11-21T08:30:00.000Z");
    });

    test("a freeze that ends by itself counts until its end, also when the planner comes late", async () => {
      const made = await bakingGroup();
      await freeze(made, "inc", undefined, { until: later(made, 20) });
      made.advanceClock(45 * minutes);
      await made.plan();
      expect(message(made)).toBe("stage canary bakes for 30m, until 2026-11-21T08:50:00.000Z");
    });

    test("freezes that overlap count once, and one that the planner never saw in force counts", async () => {
      const made = await bakingGroup();
      made.advanceClock(5 * minutes);
      const at = (minute: number) => `2026-11-21T08:${String(minute).padStart(2, "0")}:00.000Z`;
      const gone = (name: string, from: number, to: number) => {
        return { name, by: "ana", reason: "INC-1", at: at(from), lifted: { by: "ana", at: at(to) } };
      };
      await made.setFreezes({ lifted: [gone("two", 2, 4), gone("one", 1, 3)] });
      await made.plan();
      expect(message(made)).toBe("stage canary bakes for 30m, until 2026-11-21T08:33:00.000Z");
      await made.setFreezes({});
      await made.plan();
      expect(message(made)).toBe("stage canary bakes for 30m, until 2026-11-21T08:33:00.000Z");
    });

    test("the time of a freeze before the bake does not count, and one that was forgotten has ended", async () => {
      const made = await worldOf({ c1: "canary", r1: "rest" }, baked);
      await begin(made);
      await freeze(made, "inc");
      made.advanceClock(5 * minutes);
      await made.finish("c1");
      await made.plan();
      expect(made.stageRun("canary").bake?.from).toBe("2026-11-21T08:05:00.000Z");
      made.advanceClock(10 * minutes);
      await made.setFreezes({});
      await made.plan();
      expect(message(made)).toBe("stage canary bakes for 30m, until 2026-11-21T08:45:00.000Z");
    });
  });

  test("a bake that begins during a suspension does not count the rest of it", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, baked);
    await begin(made);
    await act(made, { suspended: ana(made.now) });
    made.advanceClock(5 * minutes);
    await made.finish("c1");
    await made.plan();
    expect(made.stageRun("canary").bake).toEqual({ from: "2026-11-21T08:05:00.000Z", stood: 300 });
    made.advanceClock(5 * minutes);
    await made.operate({ resumed: { ...ana(made.now), stood: 600 } });
    await made.plan();
    expect(made.stageRun("canary").message).toMatch(/until 2026-11-21T08:40:00.000Z$/);
  });

  test("a refresh keeps the clock of a bake, and does not get past one that has failed", async () => {
    const made = await bakingGroup();
    made.advanceClock(10 * minutes);
    await act(made, { refresh: ana(made.now) });
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", bake: { from: "2026-11-21T08:00:00.000Z" } });
    await made.observe("c1", "Failed");
    await made.plan(made.table, ["c1"]);
    expect(made.stageRun("canary").phase).toBe("GateFailed");
    await made.observe("c1", "Ready");
    await act(made, { refresh: ana(made.now) });
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", bake: { from: "2026-11-21T08:10:00.000Z" } });
  });

  test("a reconcile after a failed bake begins a new one, also when nothing changes any more", async () => {
    const made = await worldOf({ c1: "canary", r1: "rest" }, baked);
    await playOn(made);
    await made.observe("c1", "Failed");
    await made.plan(made.table, ["c1"]);
    expect(made.stageRun("canary").phase).toBe("GateFailed");
    made.advanceClock(10 * minutes);
    await made.observe("c1", "Ready");
    await act(made, { reconcile: ana(made.now) });
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", bake: { from: "2026-11-21T08:10:00.000Z" } });
  });

  test("a newer rollout that gives the clusters nothing new bakes whole", async () => {
    const made = await bakingGroup();
    await made.observe("c1", "Failed");
    await made.plan(made.table, ["c1"]);
    await made.observe("c1", "Ready");
    await made.setGroup(baked, onlyForRest);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "- (2)", rest: "-" });
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", counts: { Unchanged: 2 } });
  });

  test("a rollout that changes no cluster of the stage does not bake", async () => {
    const made = await bakingGroup();
    made.advanceClock(30 * minutes);
    await made.plan();
    await answer(made, { c1: "Ready", c2: "Ready" });
    await playOn(made);
    await made.setGroup(baked, onlyForRest);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("a group that is deleted waits for no bake", async () => {
    const made = await bakingGroup();
    await act(made, { deletion: { ...ana(made.now), cascade: "delete" } });
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
  });

  test("functions of the version before leave a stage run with gates alone", async () => {
    const made = await bakingGroup();
    expect(made.stageRun("canary").schema).toBe(newestRowSchema);
    made.advanceClock(30 * minutes);
    await made.plan();
    await answer(made, { c1: "Ready", c2: "Ready" });
    expect(made.stageRun("rest").schema).toBe(rowSchema);
  });
});
