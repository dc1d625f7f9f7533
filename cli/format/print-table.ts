import { formatTable, type TableStyle, type TextTable } from "#cli/format/table.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import type { Session } from "#cli/session/session.ts";

/** Prints a table with its colours. */
export function printTable(session: Session, table: TextTable, style: TableStyle = tableStyle(session)): void {
  // Its cells are plain, so that every sequence is the style's.
  session.io.outWithSequences(formatTable(table, style));
}
