import { plainLine } from "#shared/base/plain-text.ts";

/** What a message shows of something that somebody else wrote. */
const mostCharacters = 80;
/** A password in a URL is found in so much of a value before it is cut. */
const examined = 4096;

/** The beginning of a text, in one line, with nothing that a terminal obeys. */
export function excerpt(text: string, most = mostCharacters): string {
  const shown = text.length > most ? `${text.slice(0, most - 3)}...` : text;
  return plainLine(shown);
}

/** The beginning of a value as JSON, without a URL's password. Its end is not visited: it may be megabytes, and as deep. */
export function excerptOf(value: unknown): string {
  return excerpt(withoutLogins(beginningOf(value, "")));
}

/** The text with `***` for what stands before the host of a URL: it may be a password, or a token. */
export function withoutLogins(text: string): string {
  return text.replaceAll(/\/\/[^/\s]*@/g, "//***@");
}

function beginningOf(value: unknown, before: string): string {
  if (before.length > examined) return before;
  if (value === undefined) return `${before}missing`;
  if (typeof value === "string") return before + JSON.stringify(value.slice(0, examined));
  if (typeof value === "bigint") return before + digitsOf(value);
  if (typeof value !== "object" || value === null) return before + String(value);
  const isList = Array.isArray(value);
  let text = before + (isList ? "[" : "{");
  let first = true;
  for (const key in value) {
    if (!first) text += ",";
    first = false;
    if (!isList) text += `${JSON.stringify(key.slice(0, examined))}:`;
    text = beginningOf((value as Record<string, unknown>)[key], text);
    if (text.length > examined) return text;
  }
  return text + (isList ? "]" : "}");
}

/** Writing a number takes more than linear time. */
function digitsOf(value: bigint): string {
  const bound = 10n ** BigInt(mostCharacters);
  return value < bound && value > -bound ? value.toString() : `a number of more than ${mostCharacters} digits`;
}
