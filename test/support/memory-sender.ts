import type { Message } from "#shared/messages.ts";
import type { MessageSender } from "#shared/ports.ts";

/** Messages in memory, for tests that run the functions by hand. `take` empties it. */
export class MemorySender implements MessageSender {
  #messages: Message[] = [];

  async send(messages: readonly Message[]): Promise<void> {
    this.#messages.push(...messages);
  }

  take(): readonly Message[] {
    const taken = this.#messages;
    this.#messages = [];
    return taken;
  }
}
