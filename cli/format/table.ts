import { plainLine } from "#shared/base/plain-text.ts";
import { shorten } from "#shared/words/shorten.ts";

export interface TextTable {
  /** The last header may be empty, for remarks. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface TableStyle {
  readonly headers: "show" | "hide";
  readonly indent?: string;
  /**
   * Width of the terminal. Columns that do not fit go into a second line, at the same column in every row. The last cell is
   * cut, to at least `leastCut` characters. Absent: each row is one line, and nothing is cut.
   */
  readonly columns?: number | undefined;
  /** `whole`: the last cell is not cut, because the caller folds the lines. */
  readonly last?: "cut" | "whole";
  /** Colours a cell after it was padded. */
  readonly paint?: (cell: string, column: string) => string;
}

/** A cut cell keeps at least this many characters. */
const leastCut = 20;
const gap = "  ";
/** The indent of a second line. */
const onward = "    ";

/**
 * Formats a table: each column is as wide as its widest cell, with two spaces between columns, and every line ends with `\\n`.
 * Line breaks and control characters of a cell are escaped, because a cluster, a repository or a stolen role may have written them.
 */
export function formatTable(table: TextTable, style: TableStyle): string {
  const given = style.headers === "show" ? [table.columns, ...table.rows] : table.rows;
  const lines = given.map((line) => line.map(plainLine));
  const widths = table.columns.map((_name, column) => Math.max(...lines.map((line) => width(line[column] ?? "")), 0));
  const parts = partsOf(widths, style);
  let text = "";
  for (const [index, line] of lines.entries()) {
    const isHeader = style.headers === "show" && index === 0;
    for (const [place, part] of parts.entries()) {
      const filled = part.filter((column) => (line[column] ?? "") !== "");
      const lastFilled = filled.at(-1) ?? -1;
      if (place > 0 && lastFilled === -1) continue;
      const indent = indentOf(style, place);
      const shown = part.filter((column) => column <= lastFilled);
      const before = shown
        .slice(0, -1)
        .reduce((sum, column) => sum + (widths[column] ?? 0) + gap.length, indent.length);
      const cells = shown.map((column) => {
        const cell = line[column] ?? "";
        const isLast = column === lastFilled;
        const isCut =
          isLast && style.last !== "whole" && style.columns !== undefined && column === table.columns.length - 1;
        const padded = isLast ? cell : cell + " ".repeat((widths[column] ?? 0) - width(cell));
        const fitting = isCut ? shorten(cell, Math.max(leastCut, (style.columns ?? 0) - before)) : padded;
        return isHeader || style.paint === undefined ? fitting : style.paint(fitting, table.columns[column] ?? "");
      });
      text += `${indent}${cells.join(gap)}\n`;
    }
  }
  return text;
}

/** The columns of each line: as many as fit. The last column counts with its cut width. */
function partsOf(widths: readonly number[], style: TableStyle): readonly (readonly number[])[] {
  const parts: number[][] = [[]];
  let end = indentOf(style, 0).length;
  for (const [column, full] of widths.entries()) {
    const mayBeCut = column === widths.length - 1 && style.last !== "whole";
    const needed = mayBeCut ? Math.min(full, leastCut) : full;
    const isFirst = parts.at(-1)?.length === 0;
    if (style.columns !== undefined && !isFirst && full > 0 && end + gap.length + needed > style.columns) {
      parts.push([]);
      end = indentOf(style, 1).length - gap.length;
    }
    end += full + (isFirst ? 0 : gap.length);
    parts.at(-1)?.push(column);
  }
  return parts;
}

function indentOf({ indent = "" }: TableStyle, place: number): string {
  return place === 0 ? indent : indent + onward;
}

/** Counts each character as one column: cells hold names, numbers and words. */
function width(text: string): number {
  return [...text].length;
}
