import type { Message } from "#shared/messages.ts";

/** Names of the Sources that these messages request polls of, in order. */
export function polledNames(messages: readonly Message[]): readonly string[] {
  return messages
    .flatMap((message) => (message.to === "resolve" ? [message.source, ...(message.besides ?? [])] : []))
    .map(({ name }) => name)
    .toSorted();
}
