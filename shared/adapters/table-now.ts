import type { Clock } from "#shared/base/clock.ts";
import { rowAt } from "#shared/fleet/rows/suspension.ts";
import type { Table } from "#shared/ports.ts";

/** The table, with the rows of objects as they are now. */
export function tableNow(table: Table, clock: Clock): Table {
  return {
    async get(key) {
      const row = await table.get(key);
      return row && rowAt(row, clock.now());
    },
    async getMany(keys, reading) {
      const rows = await table.getMany(keys, reading);
      const now = clock.now();
      return rows.map((row) => rowAt(row, now));
    },
    async query(query) {
      const page = await table.query(query);
      const now = clock.now();
      return { ...page, items: page.items.map((row) => rowAt(row, now)) };
    },
    queryIndex: (query) => table.queryIndex(query),
    write: (writes) => table.write(writes),
    update: (write) => table.update(write),
  };
}
