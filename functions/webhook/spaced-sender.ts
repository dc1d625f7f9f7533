import { LRUCache } from "lru-cache";
import type { Clock } from "#shared/base/clock.ts";
import type { Message } from "#shared/messages.ts";
import type { MessageSender } from "#shared/ports.ts";

/** The polls of one upstream are at least so far apart, however many deliveries ask for them. */
export const pollsApartSeconds = 5;
/** The clocks of SQS and of this process differ: a message that is due so soon may be read already. */
const slackMs = 1000;
/** Upstreams that this process remembers. */
const mostKept = 20_000;

/**
 * Sends the first of equal messages at once, and the second one later. Further ones are left out while the second one
 * waits, because the poll that it requests begins after all of them. So a sender that delivers without end, and a replay,
 * leave the queue and the git host to others.
 */
export class SpacedSender implements MessageSender {
  readonly #sender: MessageSender;
  readonly #clock: Clock;
  /** When the newest of equal messages can be received, in milliseconds. */
  readonly #dueTimes = new LRUCache<string, number>({ max: mostKept });

  constructor(sender: MessageSender, clock: Clock) {
    this.#sender = sender;
    this.#clock = clock;
  }

  async send(messages: readonly Message[]): Promise<void> {
    const now = this.#clock.now().getTime();
    const sent = messages.flatMap((message) => {
      const text = JSON.stringify(message);
      const delaySeconds = this.#delayOf(text, now);
      return delaySeconds === undefined ? [] : [{ text, delaySeconds, message }];
    });
    await this.#sender.send(
      sent.map(({ message, delaySeconds }) => (delaySeconds === 0 ? message : { ...message, delaySeconds })),
    );
    // A message that was not sent makes no other one needless.
    for (const { text, delaySeconds } of sent) this.#dueTimes.set(text, now + delaySeconds * 1000);
  }

  /** @returns undefined when one that waits is enough. */
  #delayOf(text: string, now: number): number | undefined {
    const visibleAt = this.#dueTimes.get(text) ?? Number.NEGATIVE_INFINITY;
    if (visibleAt > now + slackMs) return undefined;
    return Math.max(0, Math.ceil(visibleAt / 1000 + pollsApartSeconds - now / 1000));
  }
}
