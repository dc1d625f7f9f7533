import { plainText } from "#shared/domain/plain-text.ts";

/** What a message shows of something that somebody else wrote. */
const MOST = 80;

/** The beginning of a text, in one line, with nothing that a terminal obeys. */
export function excerpt(text: string, most = MOST): string {
  const shown = text.length > most ? `${text.slice(0, most - 3)}...` : text;
  return plainText(shown).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** The beginning of a value as JSON. Its end is not visited: it may be megabytes, and nested as deep. */
export function excerptOf(value: unknown): string {
  return excerpt(beginningOf(value, ""));
}

function beginningOf(value: unknown, before: string): string {
  if (before.length > MOST) return before;
  if (value === undefined) return `${before}missing`;
  if (typeof value === "string") return before + JSON.stringify(value.slice(0, MOST + 1));
  if (typeof value === "bigint") return before + digitsOf(value);
  if (typeof value !== "object" || value === null) return before + String(value);
  const isList = Array.isArray(value);
  let text = before + (isList ? "[" : "{");
  let first = true;
  for (const key in value) {
    if (!first) text += ",";
    first = false;
    if (!isList) text += `${JSON.stringify(key.slice(0, MOST + 1))}:`;
    text = beginningOf((value as Record<string, unknown>)[key], text);
    if (text.length > MOST) return text;
  }
  return text + (isList ? "]" : "}");
}

/** Writing a number takes more than linear time. */
function digitsOf(value: bigint): string {
  const bound = 10n ** BigInt(MOST);
  return value < bound && value > -bound ? value.toString() : `a number of more than ${MOST} digits`;
}
