import { describe, expect, test } from "vitest";
import type { Advance } from "#shared/fleet/rollout/advance.ts";
import { activityOf, earliestOf, timersOf, watchdogOf } from "#shared/fleet/rollout/timers.ts";
import type { StageRecord, StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf } from "#test/support/rollout-state-rows.ts";

const now = new Date("2026-01-01T00:00:00.000Z");
const inSeconds = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();
const ref = { rollout: 2, stage: "canary", snapshot: 1 };
const idleStage: StageRecord = { name: "canary", members: 3, changing: 0, failedCatchUps: 0 };
const updating: StageRecord = { ...idleStage, updatingTo: ref };
const phased = (phase: StageRunPhase) => new Map([["2#canary#1", { phase }]]);
const none = { waiting: 0, changing: 0, failed: 0 };

describe("what goes on", () => {
  test.each([
    ["a stage run that updates", updating, none, "Updating", "moving"],
    ["a cluster that changes while its stage run stands still", { ...updating, changing: 1 }, none, "Halted", "moving"],
    ["a catch-up with a slot", idleStage, { ...none, changing: 1 }, "Updating", "moving"],
    ["a stage run that waits for a stage before it", { ...updating, ahead: true }, none, "Updating", "waiting"],
    ["a stage run that stands still", updating, none, "Halted", "waiting"],
    ["a stage run that bakes", updating, none, "Baking", "waiting"],
    ["a catch-up that waits", idleStage, { ...none, waiting: 1 }, "Updating", "waiting"],
    ["a catch-up that failed", idleStage, { ...none, failed: 1 }, "Updating", "idle"],
  ] as const)("%s", (_title, stage, catchUps, phase, activity) => {
    expect(activityOf({ rolloutState: { stages: [stage], catchUps }, stageRuns: phased(phase) })).toBe(activity);
  });

  test("catch-ups that are not tried any more are nothing that goes on", () => {
    const rolloutState = { stages: [idleStage], catchUps: { ...none, waiting: 2 } };
    expect(activityOf({ rolloutState, stageRuns: new Map(), stopped: 2 })).toBe("idle");
    expect(activityOf({ rolloutState, stageRuns: new Map(), stopped: 1 })).toBe("waiting");
  });
});

describe("when the planner has to look again", () => {
  const rolloutState = rolloutStateOf([idleStage], { deadline: inSeconds(700) });
  const freeze = { name: "audit", at: inSeconds(-60), by: "anna", reason: "an audit" };
  const freezes = [
    { ...freeze, until: inSeconds(900) },
    { ...freeze, until: inSeconds(-1) },
  ];
  const hold = { number: 1, by: "anna", at: inSeconds(-60), until: inSeconds(800) };
  const row = { operations: { hold } };
  const baking: Pick<Advance, "timers"> = { timers: [{ at: inSeconds(86_400), why: "the bake ends" }] };

  const facts = { windows: [], cordons: [], stageRuns: new Map() };

  test("timers of stage runs, deadlines of attempts and ends of freezes are one list with reasons", () => {
    expect(timersOf({ ...facts, rolloutState, row, freezeState: { freezes, lifted: [] } }, [baking], now)).toEqual([
      { at: inSeconds(86_400), why: "the bake ends" },
      { at: inSeconds(700), why: "the deadline of an attempt" },
      { at: inSeconds(900), why: "the end of a freeze" },
      { at: inSeconds(800), why: "the end of a hold" },
    ]);
  });

  test("a stage run that bakes is looked at at its timers, and otherwise as rarely as an owner with nothing to do", () => {
    const activity = activityOf({ rolloutState: { stages: [updating], catchUps: none }, stageRuns: phased("Baking") });
    const watchdog = watchdogOf({ activity, isSettled: true, pk: "ROLL#a" }, now);
    expect(watchdog.at > inSeconds(560)).toBe(true);
    expect(earliestOf([watchdog, { at: inSeconds(300), why: "the bake ends" }])).toBe(inSeconds(300));
  });

  test("a report is awaited soon while something moves", () => {
    const watchdog = watchdogOf({ activity: "moving", isSettled: true, pk: "ROLL#a" }, now);
    expect(watchdog).toEqual({ at: inSeconds(30), why: "a message may be lost" });
  });

  test("the index is read again after its lag", () => {
    const { at } = watchdogOf({ activity: "idle", isSettled: false, pk: "ROLL#a" }, now);
    expect(at > inSeconds(56) && at < inSeconds(64)).toBe(true);
  });
});
