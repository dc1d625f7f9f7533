/** What a page says in sentences, in lines that a terminal has room for. */
import { stripVTControlCharacters } from "node:util";

const label = /^[A-Z][\w ]*: +/;

/**
 * Longer lines are broken between words, and go on below where their text began. A command to type stays in one line however long it
 * is: a terminal gives it back whole when it is copied. @param columns - of the terminal; absent: nothing is broken.
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

/** A command, up to what is remarked of it, is one word. */
function wordsOf(text: string): readonly { readonly space: string; readonly word: string }[] {
  return [...text.matchAll(/(\s*)(starling (?:(?! {2}).)+|\S+)/g)].map(([, space = "", word = ""]) => ({
    space,
    word,
  }));
}

/** Colours take no room. */
function width(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}
