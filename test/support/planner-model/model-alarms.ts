import { StarlingError } from "#shared/base/errors.ts";
import type { AlarmReading } from "#shared/fleet/rollout/alarms.ts";
import type { AlarmState } from "#shared/fleet/rows/rollout-rows.ts";
import type { AlarmReader } from "#shared/ports.ts";

/** People give an alarm this state, or keep everybody from reading it. An alarm that cannot be read keeps its state. */
export type AlarmWord = AlarmState | "unreadable";

/** How an alarm has to be for a stage. */
export interface AlarmNeed {
  readonly arn: string;
  readonly missing: "fail" | "pass";
}

/** CloudWatch: each alarm is OK until somebody changes it. It remembers when each was read. */
export class ModelAlarms implements AlarmReader {
  readonly #changes = new Map<
    string,
    { readonly at: string; readonly before: AlarmState; readonly after: AlarmState }[]
  >();
  readonly #unreadable = new Set<string>();
  readonly #readAt = new Map<string, number[]>();

  say(arn: string, word: AlarmWord, now: Date): void {
    if (word === "unreadable") {
      this.#unreadable.add(arn);
      return;
    }
    this.#unreadable.delete(arn);
    const before = this.#stateAt(arn, now.getTime());
    if (before === word) return;
    this.#changes.set(arn, [...this.#changesOf(arn), { at: now.toISOString(), before, after: word }]);
  }

  /** Every alarm is OK, and can be read. */
  calm(now: Date): void {
    for (const arn of [...this.#changes.keys(), ...this.#unreadable]) this.say(arn, "OK", now);
  }

  async read(arn: string, since: string, now: Date): Promise<AlarmReading> {
    if (this.#unreadable.has(arn))
      throw new StarlingError("not authorized", { code: "AlarmDenied", retry: "transient" });
    this.#readAt.set(arn, [...(this.#readAt.get(arn) ?? []), now.getTime()]);
    const changes = this.#changesOf(arn).filter(({ at }) => at >= since);
    return { at: now.toISOString(), state: this.#stateAt(arn, now.getTime()), changes };
  }

  /**
   * Whether somebody has read the alarm at a time when it had been as a stage needs it for these seconds, all of them
   * after `from`.
   */
  hasLetPass(
    { arn, missing }: AlarmNeed,
    { from, seconds }: { readonly from: number; readonly seconds: number },
  ): boolean {
    const isBad = (state: AlarmState) => state === "ALARM" || (state === "INSUFFICIENT_DATA" && missing === "fail");
    return (this.#readAt.get(arn) ?? []).some((at) => {
      const begin = at - seconds * 1000;
      const meanwhile = this.#changesOf(arn).filter((one) => Date.parse(one.at) > begin && Date.parse(one.at) <= at);
      return begin >= from && !isBad(this.#stateAt(arn, begin)) && !meanwhile.some(({ after }) => isBad(after));
    });
  }

  #changesOf(arn: string) {
    return this.#changes.get(arn) ?? [];
  }

  #stateAt(arn: string, at: number): AlarmState {
    return this.#changesOf(arn).findLast((one) => Date.parse(one.at) <= at)?.after ?? "OK";
  }
}
