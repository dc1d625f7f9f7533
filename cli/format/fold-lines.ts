/** Folds the lines of a page to the width of the terminal. */
import { stripVTControlCharacters } from "node:util";

const label = /^[A-Z][\w ]*: +/;

/**
 * Breaks longer lines between words, and indents the rest to where the text of the line begins. A command stays in one line,
 * so that it can be copied whole. @param columns - width of the terminal. Absent: nothing is broken.
 */
export function foldLines(text: string, columns: number | undefined): string {
  if (columns === undefined) return text;
  return text
    .split("\n")
    .map((line) => (width(line) <= columns ? line : foldLine(line, columns)))
    .join("\n");
}

function foldLine(line: string, columns: number): string {
  const lead = label.exec(line)?.[0] ?? /^\s*/.exec(line)?.[0] ?? "";
  const indent = " ".repeat(lead.trim() === "" ? lead.length + 4 : Math.min(lead.length, Math.floor(columns / 2)));
  const lines: string[] = [];
  let current = lead;
  let isBegun = false;
  for (const { space, word } of wordsOf(line.slice(lead.length))) {
    if (isBegun && width(current + space + word) > columns) {
      lines.push(current);
      current = indent + word;
    } else {
      current += (isBegun ? space : "") + word;
    }
    isBegun = true;
  }
  return [...lines, current].join("\n");
}

/** A command, up to the remark behind it, is one word. */
function wordsOf(text: string): readonly { readonly space: string; readonly word: string }[] {
  return [...text.matchAll(/(\s*)(starling (?:(?! {2}).)+|\S+)/g)].map(([, space = "", word = ""]) => ({
    space,
    word,
  }));
}

/** The visible width: colour codes do not count. */
function width(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}
