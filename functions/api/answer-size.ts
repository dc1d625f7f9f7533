import { stringifyJson } from "#shared/base/json.ts";

/** Lambda's limit for an answer is 6 MB; what is left is for what stands around the body. */
export const maxAnswerBytes = 6_000_000;
/** Of one list, whatever its items are. */
const listBytes = maxAnswerBytes - 100_000;

/** As Lambda counts: the body is a JSON string in a JSON object, in which every quote of it is two characters. */
export function answerBytes(body: string): number {
  return Buffer.byteLength(JSON.stringify(body));
}

/** How many of these, from the first one on, one answer holds; at least one, where there is one. */
export function fittingItems(items: readonly unknown[]): number {
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    bytes += answerBytes(stringifyJson(item));
    if (bytes > listBytes && index > 0) return index;
  }
  return items.length;
}
