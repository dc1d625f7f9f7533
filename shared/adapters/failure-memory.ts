import type { Clock } from "#shared/ports.ts";

interface Failure {
  readonly error: unknown;
  readonly until: number;
}

/** Long enough for all the work there is on one cluster at a time, short enough for somebody who waits for a remedy. */
const rememberedSeconds = 30;

/** Asks about a thing again only some time after that failed; until then, whoever asks is told what it was. */
export class FailureMemory {
  readonly #clock: Clock;
  readonly #failures = new Map<string, Failure>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws what `ask` threw, now or a moment ago. */
  async unlessFailed<T>(id: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#failures.get(id);
    if (known !== undefined && known.until > this.#clock.now().getTime()) throw known.error;
    this.#failures.delete(id);
    try {
      return await ask();
    } catch (error) {
      this.#failures.set(id, { error, until: this.#clock.now().getTime() + rememberedSeconds * 1000 });
      throw error;
    }
  }
}
