import type { Table, Write } from "#shared/ports.ts";

/** The limit of keys in one request to DynamoDB. */
const batchGetKeys = 100;
const readUnitBytes = 4096;
const writeUnitBytes = 1024;

export interface Counts {
  requests: number;
  /** Counts requested keys and items of pages. */
  rowsRead: number;
  /** Counts rows that were written, updated, deleted or checked. */
  rowsWritten: number;
  /** Approximate capacity units of reads, which are consistent, and of writes. */
  readUnits: number;
  writeUnits: number;
  /** The largest number of requests between two writes. */
  longestStep: number;
}

/** Wraps a table and counts its requests. */
export function countedTable(table: Table): { readonly table: Table; readonly counts: Counts } {
  const counts: Counts = { requests: 0, rowsRead: 0, rowsWritten: 0, readUnits: 0, writeUnits: 0, longestStep: 0 };
  let written = 0;
  const countRead = (value: unknown) => {
    counts.readUnits += unitsOf(value, readUnitBytes);
  };
  const countWrite = (write: Write) => {
    counts.rowsWritten++;
    counts.writeUnits += unitsOf(write, writeUnitBytes);
  };
  const count = (requests: number, rowsRead: number) => {
    counts.requests += requests;
    counts.rowsRead += rowsRead;
    counts.longestStep = Math.max(counts.longestStep, counts.requests - written);
  };
  const counted: Table = {
    async get(key) {
      count(1, 1);
      const row = await table.get(key);
      countRead(row);
      return row;
    },
    async getMany(keys, reading) {
      count(Math.ceil(keys.length / batchGetKeys), keys.length);
      const rows = await table.getMany(keys, reading);
      for (const row of rows) countRead(row);
      // A row that does not exist costs as much as a small one.
      counts.readUnits += keys.length - rows.length;
      return rows;
    },
    async query(query) {
      const page = await table.query(query);
      count(1, page.items.length);
      countRead(page);
      return page;
    },
    async queryIndex(query) {
      const page = await table.queryIndex(query);
      count(1, page.items.length);
      countRead(page);
      return page;
    },
    write(writes) {
      count(1, 0);
      written = counts.requests;
      for (const write of writes) countWrite(write);
      return table.write(writes);
    },
    update(write) {
      count(1, 0);
      countWrite(write);
      return table.update(write);
    },
  };
  return { table: counted, counts };
}

/** DynamoDB counts whole units for a row or a page: at least one, even for nothing. */
function unitsOf(value: unknown, bytes: number): number {
  return Math.ceil(JSON.stringify(value ?? null).length / bytes);
}
