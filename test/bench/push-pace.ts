import { setTimeout as sleep } from "node:timers/promises";
import { pollsApartSeconds } from "#functions/webhook/spaced-sender.ts";

/** Pushes that are so far apart that the webhook delays none of their polls. */
export class PushPace {
  #freeAt = 0;

  /** Resolves when the next push may be made. */
  async next(): Promise<void> {
    await sleep(Math.max(0, this.#freeAt - performance.now()));
  }

  /** Is called after a push. */
  pushed(): void {
    // The webhook counts whole seconds.
    this.#freeAt = performance.now() + (pollsApartSeconds + 1) * 1000;
  }
}
