import { stringifyJson } from "#shared/base/json.ts";

/** Lambda's limit for an answer is 6 MB; the rest is kept for what surrounds the body. */
export const maxAnswerBytes = 6_000_000;
/** Bytes of one list, whatever its items are. */
const listBytes = maxAnswerBytes - 100_000;

/** Counts as Lambda does: the body is a JSON string in a JSON object, where each quote of it takes two characters. */
export function answerBytes(body: string): number {
  return Buffer.byteLength(JSON.stringify(body));
}

/** Number of items, from the first one on, that one answer holds; at least one, if there is one. */
export function fittingItems(items: readonly unknown[]): number {
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    bytes += answerBytes(stringifyJson(item));
    if (bytes > listBytes && index > 0) return index;
  }
  return items.length;
}
