/** Suspensions that end by themselves: nothing is assigned before the end, and the planner goes on at the end. */
import { describe, expect, test } from "vitest";
import { dueAtOf, later } from "#shared/fleet/rows/due.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import { begin, playOn, revise, rings, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}`;

async function ask(made: PlannerWorld, verb: string, body: object): Promise<void> {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  expect(await api.call("POST", `${path}/${verb}`, { reason: "INC-1", ...body })).toMatchObject({ status: 200 });
}

/** A group that has rollout 1, is suspended for a minute, and has a newer revision. */
async function suspendedGroup(): Promise<{ readonly made: PlannerWorld; readonly until: string }> {
  const made = await worldOf({ c1: "canary", c2: "rest" }, { ...rings, maxConcurrent: 5 });
  await made.rollOut();
  const until = later(made.now, 60);
  await ask(made, "suspend", { until });
  await revise(made, "bbb");
  return { made, until };
}

describe("a suspension with an end", () => {
  test("a suspended group goes on by itself at the end, and not before", async () => {
    const { made, until } = await suspendedGroup();
    made.advanceClock(59);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    expect((await made.group()).operations.suspended?.until).toBe(until);
    expect((await made.group()).status.state).toBe("Suspended");
    made.advanceClock(1);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    expect((await made.group()).status.state).toBe("Complete");
  });

  test("the planner sets its timer to the end", async () => {
    const { made } = await suspendedGroup();
    await ask(made, "resume", {});
    await playOn(made);
    const until = later(made.now, 20);
    await ask(made, "suspend", { until });
    await made.plan();
    expect(dueAtOf(made.rolloutState().dueKey ?? "")).toBe(until);
  });

  test("the end is noted as a resume, which wakes the workers that stood still once", async () => {
    const made = await worldOf(["a", "b"], { maxConcurrent: 1 });
    await begin(made);
    const until = later(made.now, 60);
    await ask(made, "suspend", { until });
    await made.plan();
    const woken = async () => {
      made.sender.take();
      await made.plan();
      return made.sender.take().flatMap((message) => (message.to === "apply" ? [message.cluster] : []));
    };
    expect(await woken()).toEqual([]);
    made.advanceClock(60);
    expect(await woken()).toEqual(["a"]);
    expect(await woken()).toEqual([]);
    const { suspended, resumed } = (await made.group()).operations;
    expect({ suspended, resumed }).toMatchObject({ suspended: undefined, resumed: { at: until, stood: 60 } });
  });

  test("an act after the end, before the planner came, keeps the end", async () => {
    const { made, until } = await suspendedGroup();
    made.advanceClock(70);
    await ask(made, "hold", {});
    expect((await made.group()).operations).toMatchObject({
      resumed: { at: until, number: 2, stood: 60 },
      hold: { number: 3 },
    });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
    await ask(made, "release", {});
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
  });

  test("a resume before the end ends it", async () => {
    const { made } = await suspendedGroup();
    made.advanceClock(10);
    await ask(made, "resume", {});
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "2", rest: "2" });
    made.advanceClock(120);
    await playOn(made);
    expect((await made.group()).operations.resumed?.stood).toBe(10);
  });

  test("functions of the version before leave a group with an end alone, and not the others", async () => {
    const { made } = await suspendedGroup();
    expect((await made.group()).schema).toBe(newestRowSchema);
    await ask(made, "resume", {});
    expect((await made.group()).schema).toBe(rowSchema);
  });
});
