import { firstOf } from "#shared/base/counted.ts";
import { plainText } from "#shared/base/plain-text.ts";

/**
 * A foreign text as one line that is safe in a row, a log and a terminal. Control characters are written as `\u001b`,
 * white space becomes one blank, and a text longer than `maxLength` ends with an ellipsis.
 */
export function foreignText(text: string, maxLength: number): string {
  // Nothing of the rest would be kept, so that megabytes are not processed.
  const line = plainText(text.slice(0, 4 * maxLength).replaceAll(/\s+/g, " ")).trim();
  const cut = line.length > maxLength || text.length > 4 * maxLength;
  if (line === text && !cut && text.isWellFormed()) return text;
  // A copy, because a slice would keep the whole text in memory.
  return Buffer.from(cut ? `${line.slice(0, maxLength - 1)}…` : line).toString();
}

/** The first few of many names, and the number of the others. */
export function foreignList(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).map((name) => foreignText(name, 120));
  return firstOf(shown, { most, count: names.length });
}
