import { firstOf } from "#shared/base/counted.ts";
import { plainText } from "#shared/base/plain-text.ts";

/**
 * A text of another system as one line that is fit for a row, a log and a terminal: what a terminal obeys is written as
 * `\u001b`, white space is one blank, and what is longer than `maxLength` ends with an ellipsis.
 */
export function foreignText(text: string, maxLength: number): string {
  // Of the rest nothing could be left: megabytes are not looked through.
  const line = plainText(text.slice(0, 4 * maxLength).replaceAll(/\s+/g, " ")).trim();
  const cut = line.length > maxLength || text.length > 4 * maxLength;
  if (line === text && !cut && text.isWellFormed()) return text;
  // A copy: a slice would keep the whole text in memory for as long as it lives.
  return Buffer.from(cut ? `${line.slice(0, maxLength - 1)}…` : line).toString();
}

/** The first few of many names, and how many more there are. */
export function foreignList(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).map((name) => foreignText(name, 120));
  return firstOf(shown, { most, count: names.length });
}
