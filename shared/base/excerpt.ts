import { plainLine } from "#shared/base/plain-text.ts";

/** The most of a foreign text that a message shows. */
const mostCharacters = 80;
/** The part of a value in which a URL's password is searched before the value is shortened. */
const readCharacters = 4096;

/** The beginning of a text in one line, without characters that control a terminal. */
export function excerpt(text: string, most = mostCharacters): string {
  const shown = text.length > most ? `${text.slice(0, most - 3)}...` : text;
  // A text that is cut may end in half of a character, which no table and no bus returns as it was.
  return plainLine(shown.toWellFormed());
}

/**
 * The beginning of a value as JSON, without a URL's password. The rest is not visited, because it can have megabytes
 * and any depth.
 */
export function excerptOf(value: unknown): string {
  return excerpt(withoutLogins(beginningOf(value, "")));
}

/** The text with `***` for everything before the host of a URL, which can be a password or a token. */
export function withoutLogins(text: string): string {
  return text.replaceAll(/\/\/[^/\s]*@/g, "//***@");
}

function beginningOf(value: unknown, before: string): string {
  if (before.length > readCharacters) return before;
  if (value === undefined) return `${before}missing`;
  if (typeof value === "string") return before + JSON.stringify(value.slice(0, readCharacters));
  if (typeof value === "bigint") return before + digitsOf(value);
  if (typeof value !== "object" || value === null) return before + String(value);
  const isList = Array.isArray(value);
  let text = before + (isList ? "[" : "{");
  let first = true;
  for (const key in value) {
    if (!first) text += ",";
    first = false;
    if (!isList) text += `${JSON.stringify(key.slice(0, readCharacters))}:`;
    text = beginningOf((value as Record<string, unknown>)[key], text);
    if (text.length > readCharacters) return text;
  }
  return text + (isList ? "]" : "}");
}

/** Writing a number takes more than linear time. */
function digitsOf(value: bigint): string {
  const bound = 10n ** BigInt(mostCharacters);
  return value < bound && value > -bound ? value.toString() : `a number of more than ${mostCharacters} digits`;
}
