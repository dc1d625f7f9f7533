/** The attributes of every row. docs/architecture.md describes the whole table. */

/** The schema of rows that every supported version can read. */
export const rowSchema = 2;

/**
 * The schema of rows that use what the version before does not know, such as a hold: that version leaves these rows
 * alone. A row with a newer schema than this is refused, not guessed.
 */
export const newestRowSchema = 3;

/**
 * The first version of an object's row. It is greater than every version of a deleted object with the same name, so that
 * a function that has read the deleted one cannot overwrite this one.
 */
export function firstVersion(createdAt: Date): number {
  return createdAt.getTime();
}

export interface RowKey {
  readonly pk: string;
  readonly sk: string;
}

/** The key of a row of this type. A row is one, too. */
export interface RowKeyOf<Type extends string> extends RowKey {
  readonly type?: Type;
}

/** Rows of a partition, all of these types. */
export interface RowRange<Type extends string> {
  readonly type?: Type;
  readonly pk: string;
  /** Only rows whose sk starts with this. */
  readonly prefix?: string;
  /** Only rows whose sk is between these, both included. */
  readonly between?: readonly [string, string];
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

/** A row that this version cannot read, because a newer one wrote it. This version must not change it. */
export interface NewerRow extends Row {
  readonly type: "Newer";
}

export function isNewer(row: Row): row is NewerRow {
  return row.type === "Newer";
}

/** The message about a row that cannot be read. @param others - number of further such rows. */
export function newerRowText(row: Pick<Row, keyof RowKey | "schema">, others = 0): string {
  const more = others === 0 ? "" : ` (and ${others} more)`;
  if (row.schema <= newestRowSchema) {
    return `the row ${keyText(row)}${more} is not what its key says, and was not written by Starling; it is left alone: restore it from a backup of the table`;
  }
  return `the row ${keyText(row)}${more} has schema ${row.schema}, and this version of Starling reads up to ${newestRowSchema}; it is left alone: update the stack to the version that wrote it`;
}

export function keyText(key: RowKey): string {
  return `${key.pk}|${key.sk}`;
}
