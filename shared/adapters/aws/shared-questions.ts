import { LRUCache } from "lru-cache";
import { expiringAfter } from "#shared/adapters/aws/expiring-after.ts";
import type { Clock } from "#shared/base/clock.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";

/** Long enough for all the work there is on one cluster at a time, short enough for somebody who waits for a remedy. */
const rememberedMs = 30_000;
const mostRemembered = 1000;

/**
 * Asks about a thing once at a time, whoever wants to know, and again only some time after that failed; until then,
 * whoever asks is told what it was.
 */
export class SharedQuestions<Answer> {
  readonly #asked = new Map<string, Promise<Answer>>();
  readonly #failures: LRUCache<string, { readonly error: unknown }>;

  constructor(clock: Clock) {
    this.#failures = new LRUCache({ max: mostRemembered, ...expiringAfter(rememberedMs, clock) });
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
    if (known !== undefined) throw known.error;
    try {
      return await ask();
    } catch (error) {
      if (!isOwnFault(error)) this.#failures.set(id, { error });
      throw error;
    }
  }
}
