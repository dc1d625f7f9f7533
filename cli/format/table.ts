import { plainText } from "#shared/base/plain-text.ts";

export interface Table {
  /** The last one may be empty: remarks that have no header. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface TableStyle {
  readonly headers: "show" | "hide";
  readonly indent?: string;
  /** Colours a cell after it was padded. */
  readonly paint?: (cell: string, column: string) => string;
}

/** Columns as wide as their widest cell, two spaces between, nothing after the last. One line each, with line ends. */
export function formatTable(table: Table, style: TableStyle): string {
  const rows = table.rows.map((row) => row.map(plainText));
  const lines = style.headers === "show" ? [table.columns, ...rows] : rows;
  const widths = table.columns.map((_name, column) => Math.max(...lines.map((line) => width(line[column] ?? "")), 0));
  let text = "";
  for (const [index, line] of lines.entries()) {
    const isHeader = style.headers === "show" && index === 0;
    const lastFilled = line.findLastIndex((cell) => cell !== "");
    const cells = line.slice(0, lastFilled + 1).map((cell, column) => {
      const padded = column === lastFilled ? cell : cell + " ".repeat((widths[column] ?? 0) - width(cell));
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
