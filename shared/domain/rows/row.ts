/** What every row of the table has. docs/architecture.md has the whole table. */

/** Rows are written with this; a row with a newer one is refused, not guessed. */
export const ROW_SCHEMA = 1;

export interface RowKey {
  readonly pk: string;
  readonly sk: string;
}

export interface Row extends RowKey {
  readonly type: string;
  readonly schema: number;
  /** Grows by one with every put; conditions of read-modify-write are on it. */
  readonly version: number;
  /** Present when the row waits for a time: see `due.ts`. */
  readonly dueShard?: string;
  readonly dueKey?: string;
  /** How often a message was sent for this row since it last made progress. */
  readonly dispatches?: number;
  readonly statePk?: string;
  readonly stateSk?: string;
  /** Seconds since 1970 after which the row may be deleted. */
  readonly expiresAt?: number;
}

/** What is known of a row that a newer version of Starling wrote: that it is there. It is nobody's to change. */
export interface NewerRow extends Row {
  readonly type: "Newer";
}

export function isNewer(row: Row): row is NewerRow {
  return row.type === "Newer";
}

/** What people are told of rows that cannot be read. */
export function newerRowText(keys: readonly RowKey[]): string {
  const [first] = keys;
  const more = keys.length > 1 ? ` and ${keys.length - 1} more` : "";
  const row = first === undefined ? "a row" : `the row ${keyText(first)}${more}`;
  return `${row} was written by a newer version of Starling, and is left alone: update the stack to that version`;
}

export function keyText(key: RowKey): string {
  return `${key.pk}|${key.sk}`;
}
