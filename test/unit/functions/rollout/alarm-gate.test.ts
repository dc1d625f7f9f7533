/** Alarms beside a bake: the tick reads them, and the planner passes no bake that they do not let pass. */
import { describe, expect, test } from "vitest";
import { claimDue } from "#functions/tick/claim-due.ts";
import { watchAlarms } from "#functions/tick/watch-alarms.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { AlarmReading } from "#shared/fleet/rollout/alarms.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { AlarmState } from "#shared/fleet/rows/rollout-rows.ts";
import type { AlarmReader, Table } from "#shared/ports.ts";
import { counting, playOn, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld, silentLog, silentMetrics } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const [canary, rest] = rings.stages;
const errors = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors";
const latency = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:latency";
type Gate = { readonly arn: string; readonly missing?: "fail" | "pass" };
const watched = (...alarms: readonly Gate[]) => ({
  maxConcurrent: 5,
  stages: [
    {
      name: "canary",
      ...canary,
      after: [{ bake: "30m" }, ...alarms.map((alarm) => ({ alarm: { missing: "fail" as const, ...alarm } }))],
    },
    { name: "rest", ...rest },
  ],
});
const minutes = 60;

/** CloudWatch: alarms by ARN, each with its changes. */
class Alarms implements AlarmReader {
  readonly states = new Map<string, AlarmState | StarlingError>();
  readonly changes: {
    readonly arn: string;
    readonly at: string;
    readonly before: AlarmState;
    readonly after: AlarmState;
  }[] = [];
  readonly asked: { readonly arn: string; readonly since: string }[] = [];

  async read(arn: string, since: string, now: Date): Promise<AlarmReading> {
    this.asked.push({ arn, since });
    const state = this.states.get(arn);
    if (state === undefined)
      throw new StarlingError("it does not exist", { code: "AlarmNotFound", retry: "transient" });
    if (state instanceof StarlingError) throw state;
    return { at: now.toISOString(), state, changes: this.changes.filter((one) => one.arn === arn && one.at >= since) };
  }
}

interface Story {
  readonly made: PlannerWorld;
  readonly alarms: Alarms;
  /** A tick, and what the planner does when the tick sends it something. @returns whether it sent something. */
  readonly tick: (table?: Table) => Promise<boolean>;
}

/** A group whose first rollout bakes in the canary stage. */
async function baking(...gates: readonly Gate[]): Promise<Story> {
  const made = await worldOf({ c1: "canary", r1: "rest" }, watched(...gates));
  const alarms = new Alarms();
  for (const { arn } of gates) alarms.states.set(arn, "OK");
  await playOn(made);
  const tick = async (table: Table = made.table) => {
    const ports = { table, sender: made.sender, clock: made.clock, log: silentLog, metrics: silentMetrics };
    made.sender.take();
    const { stageRuns } = await claimDue(ports);
    made.sender.take();
    await watchAlarms(stageRuns, { ...ports, alarms });
    const isSent = made.sender.take().length > 0;
    if (isSent) await made.plan(made.table, []);
    return isSent;
  };
  return { made, alarms, tick };
}

/** Lets the bake come to its end, and the canary answer the check. */
async function bakeOut({ made, tick }: Story): Promise<void> {
  made.advanceClock(30 * minutes);
  await made.plan();
  await made.observe("c1", "Ready");
  await made.plan();
  await tick();
}

async function ask(made: PlannerWorld, verb: string, body: object = {}): Promise<void> {
  const api = apiFixture(made.table);
  api.setNow(made.now.toISOString());
  const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/${verb}`;
  expect(await api.call("POST", path, { reason: "INC-1", ...body })).toMatchObject({ status: 200 });
  await made.plan();
}

describe("an alarm beside a bake", () => {
  test("a rollout passes when its alarm was OK, also after the check at the end", async () => {
    const story = await baking({ arn: errors });
    const { made, tick } = story;
    expect(await tick()).toBe(false);
    made.advanceClock(30 * minutes);
    await made.plan();
    await made.observe("c1", "Ready");
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Baking",
      message: "stage canary has baked for 30m: its alarms are read once more",
    });
    expect(await tick()).toBe(true);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test("ALARM ends the bake at once, and a newer rollout enters and bakes anew", async () => {
    const { made, alarms, tick } = await baking({ arn: errors });
    await tick();
    made.advanceClock(10 * minutes);
    alarms.states.set(errors, "ALARM");
    expect(await tick()).toBe(true);
    expect(made.stageRun("canary")).toMatchObject({
      phase: "GateFailed",
      message: "alarm errors was in ALARM at 2026-11-21T08:10:00.000Z, during the bake of stage canary",
    });
    expect(made.stages()).toEqual({ canary: "- (1)", rest: "-" });
    expect(await tick()).toBe(false);
    alarms.states.set(errors, "OK");
    await revise(made, "bbb");
    await playOn(made);
    expect(made.stageRun("canary")).toMatchObject({ rollout: 2, phase: "Baking" });
  });

  test("a short alarm that was over before the next reading ends the bake, also in the last minute", async () => {
    const story = await baking({ arn: errors });
    const { made, alarms, tick } = story;
    await tick();
    made.advanceClock(29 * minutes);
    await tick();
    alarms.changes.push(
      { arn: errors, at: "2026-11-21T08:29:20.000Z", before: "OK", after: "ALARM" },
      { arn: errors, at: "2026-11-21T08:29:40.000Z", before: "ALARM", after: "OK" },
    );
    made.advanceClock(minutes);
    await made.plan();
    await made.observe("c1", "Ready");
    await made.plan();
    expect(made.stageRun("canary").phase).toBe("Baking");
    await tick();
    expect(made.stageRun("canary")).toMatchObject({ phase: "GateFailed" });
    expect(made.stageRun("canary").message).toContain("at 2026-11-21T08:29:20.000Z");
  });

  test("an alarm that was over before the bake began says nothing about it", async () => {
    const story = await baking({ arn: errors });
    story.alarms.changes.push({ arn: errors, at: "2026-11-21T07:59:00.000Z", before: "ALARM", after: "OK" });
    await bakeOut(story);
    await playOn(story.made);
    expect(story.made.stages().canary).toBe("1");
  });

  test.each([
    ["fail", "GateFailed"],
    ["pass", "Passed"],
  ] as const)("an alarm that lacked data: missing: %s gives %s", async (missing, phase) => {
    const story = await baking({ arn: errors, missing });
    story.alarms.changes.push({
      arn: errors,
      at: "2026-11-21T08:05:00.000Z",
      before: "INSUFFICIENT_DATA",
      after: "OK",
    });
    await bakeOut(story);
    expect(story.made.stageRun("canary").phase).toBe(phase);
  });

  test("an alarm that cannot be read never passes, is named with its reason, and passes when it can be read again", async () => {
    const story = await baking({ arn: errors }, { arn: latency });
    const { made, alarms, tick } = story;
    const denied = new StarlingError("not authorized", { code: "AlarmDenied", retry: "transient" });
    alarms.states.set(latency, denied);
    expect(await tick()).toBe(true);
    expect(await tick()).toBe(false);
    await bakeOut(story);
    made.advanceClock(30 * minutes);
    await tick();
    await made.plan();
    expect(made.stageRun("canary")).toMatchObject({
      phase: "Baking",
      message:
        "stage canary has baked for 30m: alarm latency cannot be read since 2026-11-21T08:00:00.000Z: not authorized",
    });
    alarms.states.set(latency, "OK");
    made.advanceClock(minutes);
    expect(await tick()).toBe(true);
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test("a lost message to the planner is sent again with the next reading", async () => {
    const { made, alarms, tick } = await baking({ arn: errors });
    alarms.states.set(errors, "ALARM");
    const ports = { table: made.table, sender: made.sender, clock: made.clock, log: silentLog, metrics: silentMetrics };
    const { stageRuns } = await claimDue(ports);
    await watchAlarms(stageRuns, { ...ports, alarms });
    expect(made.sender.take()).toContainEqual({ to: "rollout", owner, clusters: [] });
    expect(made.stageRun("canary").phase).toBe("Baking");
    made.advanceClock(minutes);
    expect(await tick()).toBe(true);
    expect(made.stageRun("canary").phase).toBe("GateFailed");
  });

  test.each(["retry", "reconcile"])("%s begins another bake, which the earlier alarm does not end", async (verb) => {
    const { made, alarms, tick } = await baking({ arn: errors });
    alarms.states.set(errors, "ALARM");
    await tick();
    alarms.states.set(errors, "OK");
    alarms.changes.push({ arn: errors, at: made.now.toISOString(), before: "ALARM", after: "OK" });
    made.advanceClock(minutes);
    await ask(made, verb);
    expect(made.stageRun("canary")).toMatchObject({ phase: "Baking", bake: { from: "2026-11-21T08:01:00.000Z" } });
    await made.observe("c1", "Ready");
    await bakeOut({ made, alarms, tick });
    await playOn(made);
    expect(made.stages()).toEqual({ canary: "1", rest: "1" });
  });

  test.each(["ALARM", "unreadable"])("a person passes a stage whose alarm is %s", async (how) => {
    const { made, alarms, tick } = await baking({ arn: errors });
    if (how === "ALARM") alarms.states.set(errors, "ALARM");
    else alarms.states.delete(errors);
    await tick();
    const { rollout, stage, snapshot } = made.stageRun("canary");
    await ask(made, "promote", { rollout, stage, snapshot });
    expect(made.stages().canary).toBe("1");
  });

  test("the alarms are read once a minute while the stage bakes, and never after", async () => {
    const story = await baking({ arn: errors });
    const { made, alarms, tick } = story;
    for (let minute = 0; minute < 5; minute++) {
      await tick();
      made.advanceClock(minutes);
    }
    expect(alarms.asked.map(({ since }) => since.slice(11, 16))).toEqual(["08:00", "08:00", "08:00", "08:00", "08:00"]);
    made.advanceClock(20 * minutes);
    await tick();
    made.advanceClock(minutes);
    await tick();
    expect(alarms.asked.at(-1)?.since).toBe("2026-11-21T08:20:00.000Z");
    await bakeOut(story);
    await playOn(made);
    const before = alarms.asked.length;
    for (let minute = 0; minute < 5; minute++) {
      made.advanceClock(minutes);
      await tick();
    }
    expect(alarms.asked.length).toBe(before);
  });

  test("the planner reads one row more for it, and none without an alarm", async () => {
    const requests = async (made: PlannerWorld) => {
      const counted = counting(made.table);
      await made.plan(counted.table, []);
      return counted.requests();
    };
    const [one, none] = [await baking({ arn: errors }), await baking()];
    expect((await requests(one.made)) - (await requests(none.made))).toBe(1);
  });

  test("the facts about alarms are deleted with their rollout", async () => {
    const story = await baking({ arn: errors });
    const { made, tick } = story;
    await tick();
    expect(await made.table.get(keys.alarms(owner, made.stageRun("canary")))).toMatchObject({ type: "Alarms" });
    await ask(made, "suspend");
    await made.operate({ deletion: { by: "ana", at: made.now.toISOString(), cascade: "delete" } });
    await playOn(made);
    expect(made.rows("SyncGroup")).toEqual([]);
    expect(made.rows("Alarms")).toEqual([]);
  });

  test("a rollout that changes nothing in the stage needs no alarm", async () => {
    const story = await baking({ arn: errors });
    await bakeOut(story);
    await playOn(story.made);
    story.alarms.states.set(errors, "ALARM");
    const more = { name: "more", source: "app", overrides: [{ clusters: canary?.clusters, disabled: true }] };
    await story.made.setGroup(watched({ arn: errors }), [...web, more]);
    await playOn(story.made);
    expect(story.made.stages()).toEqual({ canary: "2", rest: "2" });
  });
});
