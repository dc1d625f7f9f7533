import type { Table } from "#shared/ports.ts";

/** DynamoDB takes so many in one request. */
const batchGetKeys = 100;

export interface Counts {
  requests: number;
  /** Keys that were asked for, and items of pages. */
  rowsRead: number;
  /** Requests between two writes, where there were most. */
  longestStep: number;
}

/** The table, and what is asked of it. */
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
