import { setImmediate } from "node:timers/promises";
import { gitTooLarge, splitRepository } from "#shared/adapters/git/git-limits.ts";

/** The longest time that other work of the process waits, such as signals and timers. */
const turnMs = 20;

/**
 * The clock of long loops. It ends a loop when its time is over, and regularly lets other work of the process run.
 *
 * for (const each of many) {
 * if (pace.isDue()) await pace.rest();
 * }
 */
export class Pace {
  readonly #timeoutSeconds: number;
  readonly #endsAt: number;
  #turnEndsAt: number;

  constructor(timeoutSeconds: number) {
    this.#timeoutSeconds = timeoutSeconds;
    const now = performance.now();
    this.#endsAt = now + timeoutSeconds * 1000;
    this.#turnEndsAt = now + turnMs;
  }

  isDue(): boolean {
    return performance.now() >= this.#turnEndsAt;
  }

  /** @throws StarlingError `GitTooLarge` when the time is over. */
  async rest(): Promise<void> {
    await setImmediate();
    const now = performance.now();
    if (now > this.#endsAt) {
      const seconds = Math.round(this.#timeoutSeconds);
      throw gitTooLarge(`the commit cannot be fetched and read within ${seconds} s`, splitRepository);
    }
    this.#turnEndsAt = now + turnMs;
  }
}
