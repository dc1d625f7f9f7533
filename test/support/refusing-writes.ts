import type { Table, Write } from "#shared/ports.ts";

/** A table whose writes fail with the error that `failure` returns, if it returns one. */
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
