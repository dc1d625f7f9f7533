import { plainLine } from "#shared/base/plain-text.ts";

/** What a message shows of something that somebody else wrote. */
const MOST = 80;
/** A password in a URL is found in so much of a value before it is cut. */
const LOOKED_AT = 4096;

/** The beginning of a text, in one line, with nothing that a terminal obeys. */
export function excerpt(text: string, most = MOST): string {
  const shown = text.length > most ? `${text.slice(0, most - 3)}...` : text;
  return plainLine(shown);
}

/** The beginning of a value as JSON, without a URL's password. Its end is not visited: it may be megabytes, and as deep. */
export function excerptOf(value: unknown): string {
  return excerpt(beginningOf(value, "").replaceAll(/\/\/[^/]*@/g, "//***@"));
}

function beginningOf(value: unknown, before: string): string {
  if (before.length > LOOKED_AT) return before;
  if (value === undefined) return `${before}missing`;
  if (typeof value === "string") return before + JSON.stringify(value.slice(0, LOOKED_AT));
  if (typeof value === "bigint") return before + digitsOf(value);
  if (typeof value !== "object" || value === null) return before + String(value);
  const isList = Array.isArray(value);
  let text = before + (isList ? "[" : "{");
  let first = true;
  for (const key in value) {
    if (!first) text += ",";
    first = false;
    if (!isList) text += `${JSON.stringify(key.slice(0, LOOKED_AT))}:`;
    text = beginningOf((value as Record<string, unknown>)[key], text);
    if (text.length > LOOKED_AT) return text;
  }
  return text + (isList ? "]" : "}");
}

/** Writing a number takes more than linear time. */
function digitsOf(value: bigint): string {
  const bound = 10n ** BigInt(MOST);
  return value < bound && value > -bound ? value.toString() : `a number of more than ${MOST} digits`;
}
