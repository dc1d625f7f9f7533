import type { Clock } from "#shared/base/clock.ts";

interface Failure {
  readonly error: unknown;
  readonly until: number;
}

/** Long enough for all the work there is on one cluster at a time, short enough for somebody who waits for a remedy. */
const rememberedSeconds = 30;

/**
 * Asks about a thing once at a time, whoever wants to know, and again only some time after that failed; until then,
 * whoever asks is told what it was.
 */
export class SharedQuestions<Answer> {
  readonly #clock: Clock;
  readonly #asked = new Map<string, Promise<Answer>>();
  readonly #failures = new Map<string, Failure>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param ask - what it keeps of the answer is kept before anybody else asks.
   * @throws what `ask` threw, now or a moment ago.
   */
  ask(id: string, ask: () => Promise<Answer>): Promise<Answer> {
    const asked = this.#asked.get(id);
    if (asked !== undefined) return asked;
    const asking = this.#unlessFailed(id, ask).finally(() => this.#asked.delete(id));
    this.#asked.set(id, asking);
    return asking;
  }

  async #unlessFailed(id: string, ask: () => Promise<Answer>): Promise<Answer> {
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
