import type { Message } from "#shared/messages.ts";
import type { MessageSender } from "#shared/ports.ts";

/** How long messages wait for company. */
const GATHER_MS = 25;

interface Gathering {
  readonly messages: Message[];
  readonly sent: Promise<void>;
}

/**
 * Sends what several pieces of work of one invocation have to say in one go: SQS takes ten messages for the price of
 * one. Each `send` resolves when its messages are sent, and rejects when they are not.
 */
export class CoalescingSender implements MessageSender {
  readonly #sender: MessageSender;
  #gathering: Gathering | undefined;

  constructor(sender: MessageSender) {
    this.#sender = sender;
  }

  send(messages: readonly Message[]): Promise<void> {
    if (messages.length === 0) return Promise.resolve();
    this.#gathering ??= this.#gather();
    this.#gathering.messages.push(...messages);
    return this.#gathering.sent;
  }

  #gather(): Gathering {
    const messages: Message[] = [];
    const sent = new Promise<void>((resolve) => setTimeout(resolve, GATHER_MS)).then(() => {
      this.#gathering = undefined;
      return this.#sender.send(messages);
    });
    return { messages, sent };
  }
}
