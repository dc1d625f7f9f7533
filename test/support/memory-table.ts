import { isConditionable, readableRow, refuseLargeRow, refuseLargeRows } from "#shared/adapters/aws/row-form.ts";
import { ConflictError } from "#shared/base/errors.ts";
import { keyText, type Row, type RowKey, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Newer, RowOf, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type {
  EventLog,
  IndexEntry,
  IndexQuery,
  Page,
  Precondition,
  RowQuery,
  RowUpdate,
  Table,
  Write,
} from "#shared/ports.ts";

/** The limit of writes in one DynamoDB transaction. */
const mostWrites = 100;
/**
 * A page of DynamoDB ends at a megabyte, wherever that is. With small pages, three rows reveal code that reads only one
 * page.
 */
const fewestPageItems = 2;

/**
 * A table in memory. It passes the same contract suite as DynamoDB. Rows are copied on the way in and out. Its pages
 * are the worst that a table may return: at most two items, an empty page before each, and `next` until a page is not
 * full.
 */
export class MemoryTable implements Table, EventLog {
  readonly #pageItems: number;
  readonly #partitions = new Map<string, Map<string, Row>>();
  /** Sorted rows; they are valid until the next write. */
  readonly #orders = new Map<string, readonly unknown[]>();

  /** @param options.pageItems - larger pages for large fleets, which would take too long with two items. */
  constructor({ pageItems = fewestPageItems }: { readonly pageItems?: number } = {}) {
    this.#pageItems = pageItems;
  }

  async get<Type extends RowType>(key: RowKeyOf<Type>): Promise<RowOf<Type> | undefined> {
    const row = this.#find(key);
    return row === undefined ? undefined : readableRow<Type>(copy(row));
  }

  async getMany<Type extends RowType, Kept extends Newer = undefined>(
    keys: readonly RowKeyOf<Type>[],
    reading: { readonly newer?: Kept } = {},
  ): Promise<readonly RowRead<Type, Kept>[]> {
    const found: RowRead<Type, Kept>[] = [];
    for (const key of new Map(keys.map((key) => [keyText(key), key])).values()) {
      const row = this.#find(key);
      if (row !== undefined) found.push(readableRow<Type, Kept>(copy(row), reading));
    }
    return found;
  }

  async query<Type extends RowType, Kept extends Newer = undefined>(
    query: RowQuery<Type, Kept>,
  ): Promise<Page<RowRead<Type, Kept>>> {
    const [from, to] = query.between ?? [];
    // Like DynamoDB: keys and bounds of ranges must not be empty.
    if (from === "" || to === "") throw new Error("a bound of a range is not empty");
    const rows = this.#inOrder(query.pk).filter(
      (row) =>
        row.sk.startsWith(query.prefix ?? "") &&
        (from === undefined || row.sk >= from) &&
        (to === undefined || row.sk <= to),
    );
    const found = page(query.newestFirst === true ? rows.reverse() : rows, (row) => row.sk, this.#limited(query));
    const { states } = query;
    const kept = found.items.filter((row) => states?.includes(String((row as { state?: unknown }).state)) !== false);
    return { ...found, items: kept.map((row) => readableRow<Type, Kept>(row, query)) };
  }

  async queryIndex(query: IndexQuery): Promise<Page<IndexEntry>> {
    const entries = this.#indexed(query).filter(
      ({ sort }) => sort.startsWith(query.prefix ?? "") && (query.upTo === undefined || sort <= query.upTo),
    );
    return page(entries, placeOf, this.#limited(query));
  }

  async write(writes: readonly Write[]): Promise<void> {
    if (writes.length > mostWrites) throw new Error(`a transaction has at most ${mostWrites} writes`);
    const rows = new Set(writes.map((write) => keyText(keyOf(write))));
    if (rows.size < writes.length) throw new Error("a transaction names each row at most once");
    refuseLargeRows(writes);
    const failed = writes.flatMap((write, index) => (this.#holds(write) ? [] : [index]));
    if (failed.length > 0) throw new ConflictError("row changed since it was read", { failed });
    for (const write of writes) if ("update" in write) refuseLargeRow(this.#updated(write));
    for (const write of writes) this.#apply(write);
    if (writes.length > 0) this.#orders.clear();
  }

  async append(events: readonly Row[]): Promise<void> {
    refuseLargeRows(events.map((put) => ({ put })));
    for (const event of events) this.#store(copy(event));
    this.#orders.clear();
  }

  async update<Type extends RowType>(write: RowUpdate<Type>): Promise<RowOf<Type>> {
    await this.write([write]);
    const row = await this.get(write.update);
    if (row === undefined) throw new Error("an updated row is missing");
    return row;
  }

  /** Every row, by key, to compare two runs. */
  all(): readonly Row[] {
    return [...this.#rows()].sort((a, b) => (keyText(a) < keyText(b) ? -1 : 1)).map(copy);
  }

  #limited<Q extends RowQuery | IndexQuery>(query: Q): Q & { readonly limit: number } {
    return { ...query, limit: Math.min(query.limit ?? this.#pageItems, this.#pageItems) };
  }

  #inOrder(pk: string): readonly Row[] {
    return this.#remembered(`rows ${pk}`, () => {
      const rows = [...(this.#partitions.get(pk)?.values() ?? [])];
      return rows.sort((a, b) => (a.sk < b.sk ? -1 : 1));
    });
  }

  #indexed({ index, pk }: IndexQuery): readonly IndexEntry[] {
    const [shard, sort] = index === "due" ? (["dueShard", "dueKey"] as const) : (["statePk", "stateSk"] as const);
    return this.#remembered(`${index} ${pk}`, () => {
      const entries: IndexEntry[] = [];
      for (const row of this.#rows()) {
        const at = row[sort];
        if (row[shard] === pk && at !== undefined) entries.push({ key: { pk: row.pk, sk: row.sk }, sort: at });
      }
      return entries.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    });
  }

  /** Keeps a sort order, because otherwise every small page would sort again. */
  #remembered<T>(what: string, order: () => readonly T[]): readonly T[] {
    const known = (this.#orders.get(what) as readonly T[] | undefined) ?? order();
    this.#orders.set(what, known);
    return known;
  }

  *#rows(): Iterable<Row> {
    for (const partition of this.#partitions.values()) yield* partition.values();
  }

  #find(key: RowKey): Row | undefined {
    return this.#partitions.get(key.pk)?.get(key.sk);
  }

  #store(row: Row): void {
    const partition = this.#partitions.get(row.pk) ?? new Map<string, Row>();
    this.#partitions.set(row.pk, partition.set(row.sk, row));
  }

  #holds(write: Write): boolean {
    if ("put" in write) return holdsVersion(this.#find(write.put), write.when);
    if ("delete" in write) return holdsVersion(this.#find(write.delete), write.when);
    if ("check" in write) {
      const row = this.#find(write.check);
      if (!Array.isArray(write.when)) return holdsVersion(row, write.when as "absent" | { version: number });
      return (write.when as readonly Precondition[]).every((condition) => holds(row, condition));
    }
    const row = this.#find(write.update);
    const when = write.when ?? [];
    if (when.length === 0) return true;
    return write.any === true ? when.some((c) => holds(row, c)) : when.every((c) => holds(row, c));
  }

  #apply(write: Write): void {
    if ("check" in write) return;
    if ("put" in write) {
      this.#store(copy(write.put));
      return;
    }
    if ("delete" in write) {
      this.#partitions.get(write.delete.pk)?.delete(write.delete.sk);
      return;
    }
    this.#store(this.#updated(write));
  }

  #updated(write: RowUpdate): Row {
    const { pk, sk } = write.update;
    const row: Record<string, unknown> = { ...this.#find(write.update), pk, sk };
    for (const [name, value] of Object.entries(write.set ?? {})) row[name] = copy(value);
    for (const [name, value] of Object.entries(write.add ?? {})) row[name] = Number(row[name] ?? 0) + value;
    for (const name of write.remove ?? []) delete row[name];
    return row as unknown as Row;
  }
}

function placeOf({ sort, key }: IndexEntry): string {
  return `${sort}|${keyText(key)}`;
}

function keyOf(write: Write): RowKey {
  if ("put" in write) return write.put;
  if ("delete" in write) return write.delete;
  return "check" in write ? write.check : write.update;
}

/** Copies plain data. Undefined members are dropped, as in DynamoDB. */
function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T;
  if (typeof value !== "object" || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) if (member !== undefined) result[name] = copy(member);
  return result as T;
}

function holdsVersion(row: Row | undefined, when: "absent" | { readonly version: number } | undefined): boolean {
  if (when === undefined) return true;
  return when === "absent" ? row === undefined : row?.version === when.version;
}

function holds(row: Row | undefined, condition: Precondition): boolean {
  if (row !== undefined && !isConditionable(row.type, condition.attribute)) {
    throw new Error(`a condition on "${condition.attribute}" does not find it in a large ${row.type}`);
  }
  const value = (row as unknown as Record<string, unknown> | undefined)?.[condition.attribute];
  if ("absent" in condition) return value === undefined;
  if ("equals" in condition) return value === condition.equals;
  return value !== undefined && (value as string | number) < (condition.lessThan as string | number);
}

function page<T>(
  all: readonly T[],
  place: (item: T) => string,
  query: { readonly limit: number; readonly after?: string; readonly newestFirst?: boolean },
): Page<T> {
  const { after = "empty:" } = query;
  const [kind, at] = [after.slice(0, after.indexOf(":")), after.slice(after.indexOf(":") + 1)];
  if (kind === "empty") return { items: [], next: `full:${at}` };
  const isLater = (item: T) => (query.newestFirst === true ? place(item) < at : place(item) > at);
  const items = (at === "" ? all : all.filter(isLater)).slice(0, query.limit);
  const last = items.at(-1);
  const next = items.length < query.limit || last === undefined ? {} : { next: `empty:${place(last)}` };
  return { items: items.map(copy), ...next };
}
