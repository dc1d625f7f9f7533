/** `rollout promote`: a person passes the stage run that stands still, and no other. */
import { describe, expect, test } from "vitest";
import type { StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { allSay, begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, verb: string, body: object) {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  return api.call("POST", `${path}/${verb}`, body);
}

const promote = (
  made: PlannerWorld,
  { rollout, stage, snapshot }: Pick<StageRunRow, "rollout" | "stage" | "snapshot">,
) => ask(made, "promote", { rollout, stage, snapshot, reason: "INC-1" });

function runOf(made: PlannerWorld, stage = "canary"): StageRunRow {
  const runs = made.rows<StageRunRow>("StageRun").filter((run) => run.stage === stage);
  const newest = runs.toSorted((a, b) => a.snapshot - b.snapshot).at(-1);
  if (newest === undefined) throw new Error(`no run in ${stage}`);
  return newest;
}

/** A group whose rollout 2 stands still in `canary`, because its only cluster there says this. */
async function standing(phase: "Unreachable" | "Failed", pace: object = {}): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "canary", c2: "rest" }, { ...rings, maxConcurrent: 5, ...pace });
  await made.rollOut();
  await revise(made, "bbb");
  await allSay(made, phase);
  await made.plan();
  return made;
}

describe("a promote", () => {
  test.each([
    ["TooManyUnreachable", "Unreachable", { maxUnreachable: 0 }],
    ["NothingVerified", "Unreachable", { maxUnreachable: "100%" }],
    ["NothingVerified", "Failed", { maxFailures: "100%" }],
  ] as const)(
    "a stage run that is %s passes by name and reason, and the next stage takes its rollout",
    async (phase, said, pace) => {
      const made = await standing(said, pace);
      expect(runOf(made).phase).toBe(phase);
      expect(await promote(made, runOf(made))).toMatchObject({ status: 200, body: { outcome: "configured" } });
      await begin(made);
      const { transitions, ...run } = runOf(made);
      expect(run).toMatchObject({ phase: "Passed", message: expect.stringMatching(/^promoted by .*: INC-1; /) });
      expect(transitions.at(-1)?.message).toBe(run.message);
      expect(made.stages()).toMatchObject({ canary: "2" });
      expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c2"]);
      expect((await made.group()).schema).toBe(newestRowSchema);
    },
  );

  test.each([
    ["ends a bake", []],
    ["passes a stage run that failed during its bake", ["c1"]],
  ])("a promote %s", async (_what, failing) => {
    const [canary, rest] = rings.stages;
    const stages = [
      { name: "canary", ...canary, after: [{ bake: "24h" }] },
      { name: "rest", ...rest },
    ];
    const made = await worldOf({ c1: "canary", c2: "rest" }, { maxConcurrent: 5, stages });
    await playOn(made);
    for (const cluster of failing) await made.observe(cluster, "Failed");
    await made.plan(made.table, failing);
    expect(runOf(made).phase).toBe(failing.length === 0 ? "Baking" : "GateFailed");
    await promote(made, runOf(made));
    await begin(made);
    expect(runOf(made)).toMatchObject({ phase: "Passed", message: expect.stringMatching(/^promoted by .*: INC-1; /) });
    expect(made.slots().map(({ cluster }) => cluster)).toEqual(["c2"]);
  });

  test("a halted stage run is not promoted, and the refusal names what gives failed targets another turn", async () => {
    const made = await standing("Failed");
    const answer = await promote(made, runOf(made));
    expect(answer).toMatchObject({ status: 409, body: { code: "NotStalled" } });
    expect(answer.body.message).toMatch(
      /^rollout 2 is Halted in stage canary: .*starling rollout retry gives failed targets another turn$/,
    );
  });

  test("a promote that was accepted does not pass a stage run that halts before the planner sees it", async () => {
    const made = await standing("Unreachable", { maxUnreachable: 0 });
    await promote(made, runOf(made));
    await made.observe("c1", "Reachable");
    await begin(made);
    await allSay(made, "Failed");
    await made.plan();
    expect(runOf(made).phase).toBe("Halted");
    expect(made.stages()).toEqual({ canary: "1 (2)", rest: "1" });
  });

  test("a promote never passes a newer rollout, nor a newer snapshot", async () => {
    const made = await standing("Unreachable", { maxUnreachable: 0 });
    const shown = runOf(made);
    await ask(made, "refresh", {});
    await begin(made);
    await allSay(made, "Unreachable");
    await made.plan();
    const late = await promote(made, shown);
    expect(late).toMatchObject({ status: 409, body: { code: "StageRunChanged" } });
    expect(late.body.message).toBe(
      "stage canary of SyncGroup shop/web has taken another snapshot of rollout 2; nothing was promoted",
    );
    const again = runOf(made);
    await revise(made, "ccc");
    expect((await promote(made, again)).body.message).toBe(
      "stage canary of SyncGroup shop/web updates to rollout 3; nothing was promoted",
    );
    expect(made.stages()).toMatchObject({ rest: "1" });
  });

  test("the same promote twice changes nothing, and it is forgotten with the next act after the stage has passed", async () => {
    const made = await standing("Unreachable", { maxUnreachable: 0 });
    await promote(made, runOf(made));
    expect((await promote(made, runOf(made))).body).toMatchObject({ outcome: "unchanged" });
    await begin(made);
    await allSay(made, "Unreachable");
    await made.plan();
    await promote(made, runOf(made, "rest"));
    expect((await made.group()).operations.gates).toEqual([
      expect.objectContaining({ verb: "promote", stage: "rest", rollout: 2, reason: "INC-1" }),
    ]);
    await playOn(made);
    await ask(made, "hold", { reason: "INC-2" });
    await ask(made, "release", {});
    expect((await made.group()).operations.gates).toBeUndefined();
    expect((await made.group()).schema).toBe(rowSchema);
  });
});
