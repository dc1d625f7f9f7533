import { LRUCache } from "lru-cache";
import { expiringAfter } from "#shared/adapters/aws/expiring-after.ts";
import type { Clock } from "#shared/base/clock.ts";
import { isOwnFault } from "#shared/base/own-fault.ts";

/** Long enough for all concurrent work on one cluster, and short enough for a user who waits after a repair. */
const rememberedMs = 30_000;
const mostRemembered = 1000;

/**
 * Makes each request only once at a time, and repeats a failed one only after some time. Until then, all callers get
 * the same error.
 */
export class SharedQuestions<Answer> {
  readonly #asked = new Map<string, Promise<Answer>>();
  readonly #failures: LRUCache<string, { readonly error: unknown }>;

  constructor(clock: Clock) {
    this.#failures = new LRUCache({ max: mostRemembered, ...expiringAfter(rememberedMs, clock) });
  }

  /**
   *
   * @param ask - must store everything that it keeps of the answer before it returns.
   * @throws the error of `ask`, from now or from a moment ago.
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
