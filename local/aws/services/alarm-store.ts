import type { AlarmState } from "#shared/fleet/rows/rollout-rows.ts";

/** A change of an alarm's state. */
export interface StoredChange {
  readonly at: Date;
  readonly before: AlarmState;
  readonly after: AlarmState;
}

interface StoredAlarm {
  readonly state: AlarmState;
  /** The newest last. */
  readonly changes: readonly StoredChange[];
}

export interface AlarmSetting {
  readonly name: string;
  readonly state: AlarmState;
}

/** Sets the states of a machine's CloudWatch alarms. */
export interface AlarmControl {
  /** Creates the alarm when there is none. */
  set(alarm: AlarmSetting): AlarmSetting & { readonly arn: string };
}

/** CloudWatch alarms of one account and region, whose states people set. */
export class AlarmStore {
  readonly #alarms = new Map<string, StoredAlarm>();

  /** Creates the alarm, or changes its state. A new alarm has no data. */
  set(name: string, state: AlarmState, at: Date): void {
    const { state: before, changes } = this.#alarms.get(name) ?? { state: "INSUFFICIENT_DATA", changes: [] };
    const change = before === state ? [] : [{ at, before, after: state }];
    this.#alarms.set(name, { state, changes: [...changes, ...change] });
  }

  /** @returns undefined when there is no such alarm. */
  named(name: string): StoredAlarm | undefined {
    return this.#alarms.get(name);
  }
}
