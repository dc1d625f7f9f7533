/** The alarms beside a bake: what is read of them, and what ends a bake. Pure. */

import { canonicalJson } from "#shared/base/json.ts";
import { parseAlarmArn } from "#shared/fleet/alarm-arn.ts";
import type { AlarmTerms } from "#shared/fleet/kinds/sync-group.ts";
import type { GateState } from "#shared/fleet/rollout/gate-state.ts";
import { isStalled } from "#shared/fleet/rollout/stage-runs.ts";
import { later } from "#shared/fleet/rows/due.ts";
import {
  type AlarmState,
  type AlarmsRow,
  isEndedPhase,
  type ReadAlarm,
  type SeenAlarms,
  type StageRunRow,
} from "#shared/fleet/rows/rollout-rows.ts";

/** Seconds before the end of the last reading that are read again: CloudWatch may be late with a change. */
const overlapSeconds = 300;

export function alarmsOf({ gates }: Pick<StageRunRow, "gates">): readonly AlarmTerms[] {
  return gates?.after?.flatMap(({ alarm }) => alarm ?? []) ?? [];
}

/** Whether the alarms of the stage run are read, each minute. */
export function isWatched(stageRun: StageRunRow): boolean {
  const { bake, phase } = stageRun;
  // After the bake, a check may go on.
  if (bake === undefined || bake.alarms?.readTo !== undefined) return false;
  return alarmsOf(stageRun).length > 0 && !isStalled(stageRun) && !isEndedPhase(phase);
}

/** When the alarm changed its state, and both states. */
export interface AlarmChange {
  readonly at: string;
  readonly before: AlarmState;
  readonly after: AlarmState;
}

/** The states of an alarm in a time. */
export interface AlarmReading {
  /** When the reading began. */
  readonly at: string;
  readonly state: AlarmState;
  /** Those since the time that was asked for, in any order. */
  readonly changes: readonly AlarmChange[];
}

/** From when on an alarm has to be read. @param before - the last reading. */
export function alarmSince(from: string, before: ReadAlarm | undefined): string {
  const again = before === undefined ? from : later(before.readTo, -overlapSeconds);
  return again > from ? again : from;
}

/**
 * Adds a reading to the facts about an alarm. An alarm that left a state after the bake began was in it during the
 * bake.
 */
export function afterReading(
  from: string,
  before: ReadAlarm | undefined,
  { at, state, changes }: AlarmReading,
): ReadAlarm {
  const states = changes
    .filter((change) => change.at > from)
    .flatMap((change) => [
      { state: change.before, at: change.at },
      { state: change.after, at: change.at },
    ]);
  const seen: Partial<Record<AlarmState, string>> = { ...before?.seen };
  for (const one of [...states.toSorted((a, b) => (a.at < b.at ? -1 : 1)), { state, at }])
    if (one.state !== "OK") seen[one.state] ??= one.at;
  return { readTo: at, seen };
}

/**
 * Finds the fact that decides about the bake; undefined while there is none. @param row - undefined when nothing was
 * read yet.
 */
function seenAlarms(stageRun: StageRunRow, row: AlarmsRow | undefined): SeenAlarms | undefined {
  const { bake } = stageRun;
  if (bake === undefined || row === undefined || row.from !== bake.from) return undefined;
  const read = alarmsOf(stageRun).map((terms) => ({ terms, alarm: row.alarms[terms.arn] }));
  for (const { terms, alarm } of read) {
    const states: readonly AlarmState[] = terms.missing === "pass" ? ["ALARM"] : ["ALARM", "INSUFFICIENT_DATA"];
    for (const state of states) {
      const at = alarm?.seen[state];
      if (at !== undefined) return { failed: { arn: terms.arn, state, at } };
    }
  }
  if (row.unread !== undefined) return { unread: row.unread };
  const [readTo = ""] = read.map(({ alarm }) => alarm?.readTo ?? "").toSorted();
  return bake.check !== undefined && readTo >= bake.check.since ? { readTo } : undefined;
}

/** The stage run with what was read of its alarms; the same one when that tells nothing new. */
export function withAlarms(stageRun: StageRunRow, row: AlarmsRow | undefined): StageRunRow {
  const { bake } = stageRun;
  if (bake === undefined || !isWatched(stageRun)) return stageRun;
  const seen = seenAlarms(stageRun, row);
  if (canonicalJson(seen ?? {}) === canonicalJson(bake.alarms ?? {})) return stageRun;
  const { alarms: _before, ...kept } = bake;
  return { ...stageRun, bake: seen === undefined ? kept : { ...kept, alarms: seen } };
}

/** The failure of the gate by an alarm. */
export function alarmFailure(stageRun: StageRunRow): Extract<GateState, { state: "failed" }> | undefined {
  const { failed } = stageRun.bake?.alarms ?? {};
  if (failed === undefined) return undefined;
  const how = failed.state === "ALARM" ? "was in ALARM" : "had INSUFFICIENT_DATA";
  return {
    state: "failed",
    message: `alarm ${alarmName(failed.arn)} ${how} at ${failed.at}, during the bake of stage ${stageRun.stage}`,
  };
}

/** The end of the sentence about a bake that is over and waits for its alarms; undefined when they let it pass. */
export function alarmsAwaited(stageRun: StageRunRow): string | undefined {
  if (alarmsOf(stageRun).length === 0 || stageRun.bake?.alarms?.readTo !== undefined) return undefined;
  return unreadText(stageRun) ?? "its alarms are read once more";
}

/** An alarm that cannot be read, and the reason; undefined when each can be. */
export function unreadText({ bake }: Pick<StageRunRow, "bake">): string | undefined {
  const { unread } = bake?.alarms ?? {};
  return unread && `alarm ${alarmName(unread.arn)} cannot be read since ${unread.since}: ${unread.message}`;
}

function alarmName(arn: string): string {
  return parseAlarmArn(arn).name;
}

/** A stage run whose bake an alarm has ended gets another one when somebody asks for another turn. */
export function isEndedByAlarm({ phase, bake }: Pick<StageRunRow, "phase" | "bake">): boolean {
  return phase === "GateFailed" && bake?.alarms?.failed !== undefined;
}
