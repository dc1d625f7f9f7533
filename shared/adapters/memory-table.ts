import { keyText, type Row, type RowKey } from "#shared/domain/rows/row.ts";
import { ConflictError } from "#shared/errors.ts";
import type { Condition, IndexEntry, IndexQuery, Page, RowQuery, Table, Write } from "#shared/ports.ts";

/** The table in memory, held to the same contract suite as DynamoDB. Rows are copied on the way in and out. */
export class MemoryTable implements Table {
  readonly #rows = new Map<string, Row>();

  async get<R extends Row>(key: RowKey): Promise<R | undefined> {
    const row = this.#rows.get(keyText(key));
    return row === undefined ? undefined : (structuredClone(row) as R);
  }

  async getMany(keys: readonly RowKey[]): Promise<readonly Row[]> {
    const found: Row[] = [];
    for (const key of new Set(keys.map(keyText))) {
      const row = this.#rows.get(key);
      if (row !== undefined) found.push(structuredClone(row));
    }
    return found;
  }

  async query(query: RowQuery): Promise<Page<Row>> {
    const [from, to] = query.between ?? [];
    const rows = this.#sorted((row) => row.sk, query.newestFirst === true).filter(
      (row) =>
        row.pk === query.pk &&
        row.sk.startsWith(query.prefix ?? "") &&
        (from === undefined || row.sk >= from) &&
        (to === undefined || row.sk <= to),
    );
    return page(rows, (row) => row.sk, query);
  }

  async queryIndex(query: IndexQuery): Promise<Page<IndexEntry>> {
    const [pk, sk] = query.index === "due" ? (["dueShard", "dueKey"] as const) : (["statePk", "stateSk"] as const);
    const entries: IndexEntry[] = [];
    for (const row of this.#rows.values()) {
      const sort = row[sk];
      if (row[pk] !== query.pk || sort === undefined || !sort.startsWith(query.prefix ?? "")) continue;
      if (query.upTo === undefined || sort <= query.upTo) entries.push({ key: { pk: row.pk, sk: row.sk }, sort });
    }
    const place = (entry: IndexEntry) => `${entry.sort}|${keyText(entry.key)}`;
    entries.sort((a, b) => (place(a) < place(b) ? -1 : 1));
    return page(entries, place, query);
  }

  async write(writes: readonly Write[]): Promise<void> {
    const failed = writes.flatMap((write, index) => (this.#holds(write) ? [] : [index]));
    if (failed.length > 0) throw new ConflictError("row changed since it was read", { failed });
    for (const write of writes) this.#apply(write);
  }

  async update(write: Extract<Write, { update: RowKey }>): Promise<Row> {
    await this.write([write]);
    const row = await this.get(write.update);
    if (row === undefined) throw new Error("an updated row is missing");
    return row;
  }

  /** Every row, by key: for comparing two runs. */
  all(): readonly Row[] {
    return this.#sorted(keyText, false).map((row) => structuredClone(row));
  }

  #sorted(by: (row: Row) => string, descending: boolean): Row[] {
    const rows = [...this.#rows.values()].sort((a, b) => (by(a) < by(b) ? -1 : 1));
    return descending ? rows.reverse() : rows;
  }

  #holds(write: Write): boolean {
    if ("put" in write) return holdsVersion(this.#rows.get(keyText(write.put)), write.when);
    if ("delete" in write) return holdsVersion(this.#rows.get(keyText(write.delete)), write.when);
    if ("check" in write) {
      const row = this.#rows.get(keyText(write.check));
      if (!Array.isArray(write.when)) return holdsVersion(row, write.when as "absent" | { version: number });
      return (write.when as readonly Condition[]).every((condition) => holds(row, condition));
    }
    const row = this.#rows.get(keyText(write.update));
    const when = write.when ?? [];
    if (when.length === 0) return true;
    return write.any === true ? when.some((c) => holds(row, c)) : when.every((c) => holds(row, c));
  }

  #apply(write: Write): void {
    if ("check" in write) return;
    if ("put" in write) {
      this.#rows.set(keyText(write.put), structuredClone(write.put));
      return;
    }
    if ("delete" in write) {
      this.#rows.delete(keyText(write.delete));
      return;
    }
    const row: Record<string, unknown> = { ...this.#rows.get(keyText(write.update)), ...write.update };
    for (const [name, value] of Object.entries(write.set ?? {})) row[name] = structuredClone(value);
    for (const [name, value] of Object.entries(write.add ?? {})) row[name] = Number(row[name] ?? 0) + value;
    for (const name of write.remove ?? []) delete row[name];
    this.#rows.set(keyText(write.update), row as unknown as Row);
  }
}

function holdsVersion(row: Row | undefined, when: "absent" | { readonly version: number } | undefined): boolean {
  if (when === undefined) return true;
  return when === "absent" ? row === undefined : row?.version === when.version;
}

function holds(row: Row | undefined, condition: Condition): boolean {
  const value = (row as unknown as Record<string, unknown> | undefined)?.[condition.attribute];
  if ("absent" in condition) return value === undefined;
  if ("equals" in condition) return value === condition.equals;
  return value !== undefined && (value as string | number) < (condition.lessThan as string | number);
}

function page<T>(
  all: readonly T[],
  place: (item: T) => string,
  query: { readonly limit?: number; readonly after?: string; readonly newestFirst?: boolean },
): Page<T> {
  const after = query.after;
  const rest =
    after === undefined
      ? all
      : all.filter((item) => (query.newestFirst === true ? place(item) < after : place(item) > after));
  const items = rest.slice(0, query.limit ?? rest.length);
  const last = items.at(-1);
  const next = items.length < rest.length && last !== undefined ? { next: place(last) } : {};
  return { items: items.map((item) => structuredClone(item)), ...next };
}
