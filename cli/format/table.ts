import { plainText } from "#shared/base/plain-text.ts";
import { shorten } from "#shared/words/shorten.ts";

export interface Table {
  /** The last one may be empty: remarks that have no header. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface TableStyle {
  readonly headers: "show" | "hide";
  readonly indent?: string;
  /** Of the terminal: the last cell of a line that is longer is cut, down to `leastCut` characters. Absent: nothing is. */
  readonly columns?: number;
  /** Colours a cell after it was padded. */
  readonly paint?: (cell: string, column: string) => string;
}

/** Of a cut cell there is at least so much. */
const leastCut = 20;

/** Columns as wide as their widest cell, two spaces between, nothing after the last. One line each, with line ends. */
export function formatTable(table: Table, style: TableStyle): string {
  const rows = table.rows.map((row) => row.map(plainText));
  const lines = style.headers === "show" ? [table.columns, ...rows] : rows;
  const widths = table.columns.map((_name, column) => Math.max(...lines.map((line) => width(line[column] ?? "")), 0));
  let text = "";
  for (const [index, line] of lines.entries()) {
    const isHeader = style.headers === "show" && index === 0;
    const lastFilled = line.findLastIndex((cell) => cell !== "");
    const before = widths.slice(0, lastFilled).reduce((sum, one) => sum + one + 2, style.indent?.length ?? 0);
    const room = style.columns === undefined ? undefined : Math.max(leastCut, style.columns - before);
    const cells = line.slice(0, lastFilled + 1).map((cell, column) => {
      const isCut = column === lastFilled && room !== undefined && column === table.columns.length - 1;
      const padded = isCut
        ? shorten(cell, room)
        : column === lastFilled
          ? cell
          : cell + " ".repeat((widths[column] ?? 0) - width(cell));
      return isHeader || style.paint === undefined ? padded : style.paint(padded, table.columns[column] ?? "");
    });
    text += `${style.indent ?? ""}${cells.join("  ")}\n`;
  }
  return text;
}

/** Cells hold names, numbers and words; a character is a column. */
function width(text: string): number {
  return [...text].length;
}
