import type { Table } from "#shared/ports.ts";

/** The limit of keys in one request to DynamoDB. */
const batchGetKeys = 100;

export interface Counts {
  requests: number;
  /** Counts requested keys and items of pages. */
  rowsRead: number;
  /** The largest number of requests between two writes. */
  longestStep: number;
}

/** Wraps a table and counts its requests. */
export function countedTable(table: Table): { readonly table: Table; readonly counts: Counts } {
  const counts: Counts = { requests: 0, rowsRead: 0, longestStep: 0 };
  let written = 0;
  const count = (requests: number, rowsRead: number) => {
    counts.requests += requests;
    counts.rowsRead += rowsRead;
    counts.longestStep = Math.max(counts.longestStep, counts.requests - written);
  };
  const counted: Table = {
    get(key) {
      count(1, 1);
      return table.get(key);
    },
    getMany(keys, reading) {
      count(Math.ceil(keys.length / batchGetKeys), keys.length);
      return table.getMany(keys, reading);
    },
    async query(query) {
      const page = await table.query(query);
      count(1, page.items.length);
      return page;
    },
    async queryIndex(query) {
      const page = await table.queryIndex(query);
      count(1, page.items.length);
      return page;
    },
    write(writes) {
      count(1, 0);
      written = counts.requests;
      return table.write(writes);
    },
    update(write) {
      count(1, 0);
      return table.update(write);
    },
  };
  return { table: counted, counts };
}
