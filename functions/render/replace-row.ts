import { isConflict } from "#shared/base/errors.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/**
 * @param before - the row that was read; undefined when no row existed.
 * @returns false when another writer has changed the row since.
 */
export async function replaceRow(table: Table, before: Row | undefined, next: Row): Promise<boolean> {
  try {
    await table.write([{ put: next, when: before === undefined ? "absent" : { version: before.version } }]);
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}
