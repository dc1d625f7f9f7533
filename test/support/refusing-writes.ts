import type { Table, Write } from "#shared/ports.ts";

/** The table, whose writes fail first as `failure` says. */
export function refusingWrites(table: Table, failure: (writes: readonly Write[]) => Error | undefined): Table {
  return {
    get: (key) => table.get(key),
    getMany: (keys, reading) => table.getMany(keys, reading),
    query: (query) => table.query(query),
    queryIndex: (query) => table.queryIndex(query),
    update: (write) => table.update(write),
    async write(writes) {
      const error = failure(writes);
      if (error !== undefined) throw error;
      await table.write(writes);
    },
  };
}
