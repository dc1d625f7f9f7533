import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { ConflictError } from "#shared/base/errors.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import { newestRowSchema, type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import type { EventLog, Page, Table, Write } from "#shared/ports.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { observedOf, syncRowOf } from "#test/support/sync-rows.ts";

type Attributes = Readonly<Record<string, unknown>>;

function row(pk: string, sk: string, more: Attributes = {}): Row {
  return { pk, sk, type: "Test", schema: rowSchema, version: 1, ...more } as Row;
}

async function all<T>(read: (after: string | undefined) => Promise<Page<T>>): Promise<T[][]> {
  const pages: T[][] = [];
  let after: string | undefined;
  do {
    const page = await read(after);
    pages.push([...page.items]);
    after = page.next;
  } while (after !== undefined);
  return pages;
}

const from = (cursor: string | undefined) => (cursor === undefined ? {} : { after: cursor });

/**
 * The behaviour that every implementation of `Table` and `EventLog` has. Each test has a partition of its own.
 * @param reasons - `codes`: the answer to a refused transaction has only codes and no explanation.
 */
export function tableContract(made: () => Table & EventLog, reasons: "words" | "codes" = "words"): void {
  let table: Table & EventLog;
  let pk: string;
  beforeEach(() => {
    table = made();
    pk = randomUUID();
  });
  const key = (sk: string): RowKey => ({ pk, sk });
  const put = (sk: string, more: Attributes = {}) => table.write([{ put: row(pk, sk, more) }]);
  const failure = async (work: Promise<unknown>): Promise<unknown> => {
    try {
      await work;
    } catch (error) {
      return error;
    }
    throw new Error("nothing was refused");
  };

  describe("rows", () => {
    test("a row is read as it was written, without members that are undefined", async () => {
      const kept = {
        text: "",
        count: 0,
        big: 2 ** 52,
        fraction: 0.25,
        yes: true,
        none: null,
        list: [1, "a", { b: [] }],
        map: { z: 1, a: {}, "with.dot": { "and#hash": "\u00e9\u{1f980}" } },
      };
      await put("a", { ...kept, absent: undefined, within: { absent: undefined } });
      expect(await table.get(key("a"))).toEqual({ ...row(pk, "a"), ...kept, within: {} });
    });

    test("a large row is read as it was written and updated since", async () => {
      const sync = keys.sync(pk, "shop", "web.app");
      const timer = { dueShard: "DUE#01", dueKey: "2026-11-23T08:00:00.000Z#a", dispatches: 3 };
      const more = { text: "\u00e9\u{1f980}".repeat(2000), fraction: 0.25, none: null, list: [{ a: "" }] };
      const observed = { ...observedOf({}), ...more };
      const written = { ...syncRowOf(pk), ...sync, version: 1, ...timer, reconcile: 1, observed } as Row;
      await table.write([{ put: written, when: "absent" }]);
      expect(await table.get(sync)).toEqual(written);
      expect(await table.getMany([sync])).toEqual([written]);
      const pages = await all((after) => table.query({ pk: sync.pk, ...from(after) }));
      expect(pages.flat()).toEqual([written]);

      const when = [{ attribute: "dueKey", equals: timer.dueKey }];
      const { dispatches: _dispatches, ...left } = written;
      const updated = { ...left, reconcile: 2, version: 2 } as Row;
      const write = { update: sync, set: { reconcile: 2 }, add: { version: 1 }, remove: ["dispatches"], when };
      expect(await table.update(write)).toEqual(updated);
      expect(await table.get(sync)).toEqual(updated);
      await table.write([{ put: { ...updated, version: 3 }, when: { version: 2 } }]);
      expect(await table.get(sync)).toEqual({ ...updated, version: 3 });
    });

    test("a row that does not exist is undefined, or absent from the answer for many rows", async () => {
      expect(await table.get(key("none"))).toBeUndefined();
      await put("a");
      expect(await table.getMany([key("none"), key("a"), key("a")])).toEqual([row(pk, "a")]);
      expect(await table.getMany([])).toEqual([]);
    });

    test("any number of rows can be read at once", async () => {
      const names = Array.from({ length: 230 }, (_, index) => String(index).padStart(3, "0"));
      for (let start = 0; start < names.length; start += 100) {
        await table.write(
          names.slice(start, start + 100).map((sk) => ({ put: row(pk, sk, { filler: "x".repeat(500) }) })),
        );
      }
      const found = await table.getMany(names.map(key));
      expect(found.map((one) => one.sk).sort()).toEqual(names);
    });

    test("any number of rows can be appended at once, and appended again", async () => {
      const names = Array.from({ length: 60 }, (_, index) => String(index).padStart(3, "0"));
      await put("000", { version: 7, filler: "old" });
      const events = names.map((sk) => row(pk, sk, { text: `the event ${sk}` }));
      await table.append([...events, ...events.slice(0, 3)]);
      await table.append(events.slice(20, 30));
      await table.append([]);
      const found = await table.getMany(names.map(key));
      expect([...found].sort((a, b) => (a.sk < b.sk ? -1 : 1))).toEqual(events);
    });

    test("no row is appended if one of them is too large", async () => {
      const large = row(pk, "large", { text: "x".repeat(420_000) });
      await expect(table.append([row(pk, "small"), large])).rejects.toMatchObject({
        code: "RowTooLarge",
        data: { row: key("large") },
      });
      expect(await table.getMany([key("small"), key("large")])).toEqual([]);
    });

    test("the error for a row that a newer version of Starling wrote names the row", async () => {
      await put("new", { schema: newestRowSchema + 1 });
      const data = { pk, sk: "new", schema: newestRowSchema + 1 };
      const refused = { code: "NewerRow", retry: "permanent", message: expect.stringContaining(pk), data };
      await expect(table.get(key("new"))).rejects.toMatchObject(refused);
      await expect(table.getMany([key("new")])).rejects.toMatchObject(refused);
      await expect(all((cursor) => table.query({ pk, ...from(cursor) }))).rejects.toMatchObject(refused);
    });

    test("a caller can have rows of a newer version in its answer, but none of their other attributes", async () => {
      await put("new", { schema: newestRowSchema + 1, secret: "of the future" });
      await put("old");
      const kept = { ...key("new"), type: "Newer", schema: newestRowSchema + 1, version: 0 };
      const both = expect.arrayContaining([kept, row(pk, "old")]);
      const many = await table.getMany([key("new"), key("old")], { newer: "kept" });
      expect(many).toHaveLength(2);
      expect(many).toEqual(both);
      const pages = await all((cursor) => table.query({ pk, newer: "kept", ...from(cursor) }));
      expect(pages.flat()).toEqual([kept, row(pk, "old")]);
    });

    test.each([
      ["has another type", { type: "Fleet", schema: rowSchema }],
      ["has no type", { schema: rowSchema }],
      ["has no schema", { type: "Cluster" }],
      ["has the name of another cluster", { type: "Cluster", schema: rowSchema, name: "prod-1" }],
      ["has no field of a Cluster", { type: "Cluster", schema: rowSchema }],
      ["has a field of another type", { ...clusterRow(), name: undefined, status: { conditions: "none" } }],
      ["has bytes that cannot be unpacked", { type: "Cluster", schema: rowSchema, packed1: new Uint8Array([1, 2, 3]) }],
    ])(
      "a row that %s, unlike the rows of its key, is refused, or kept as unreadable for callers that want it",
      async (_what, members) => {
        const [odd, fine] = [keys.cluster(pk), keys.sync(pk, "shop", "web")];
        const written = { version: 1, secret: "of a stranger", ...members, ...odd } as unknown as Row;
        const whole = { ...syncRowOf(pk), ...fine, name: "web" };
        await table.write([{ put: written }, { put: whole }]);
        const refused = { code: "UnexpectedRow", retry: "permanent", message: expect.stringContaining("its key says") };
        await expect(table.get(odd)).rejects.toMatchObject(refused);
        await expect(table.getMany([fine, odd])).rejects.toMatchObject(refused);
        const range = ranges.cluster(pk);
        await expect(all((cursor) => table.query({ ...range, ...from(cursor) }))).rejects.toMatchObject(refused);
        const pages = await all((cursor) => table.query({ ...range, newer: "kept", ...from(cursor) }));
        const unreadable = { ...odd, type: "Newer", schema: "schema" in members ? rowSchema : 0, version: 0 };
        expect(pages.flat()).toEqual([unreadable, whole]);
      },
    );
  });

  test.each(["cluster", "namespace", "name"])(
    "a Sync on a cluster with another %s than its key is refused",
    async (field) => {
      const key = keys.sync(pk, "shop", "web");
      const named = { ...syncRowOf(pk), ...key, name: "web" };
      await table.write([{ put: named }]);
      expect(await table.get(key)).toEqual(named);
      await table.write([{ put: { ...named, [field]: "other" } }]);
      await expect(table.get(key)).rejects.toMatchObject({ code: "UnexpectedRow" });
    },
  );

  describe("a transaction", () => {
    beforeEach(async () => {
      await table.write([{ put: row(pk, "one", { mark: "a" }) }, { put: row(pk, "two", { version: 7, count: 3 }) }]);
    });
    const two = (more: Attributes = {}) => row(pk, "two", { version: 8, ...more });

    test.each<{ readonly name: string; readonly write: () => Write; readonly holds: boolean }>([
      { name: "a put of an absent row", write: () => ({ put: row(pk, "new"), when: "absent" }), holds: true },
      { name: "a put of an absent row that exists", write: () => ({ put: two(), when: "absent" }), holds: false },
      {
        name: "a put over the version that was read",
        write: () => ({ put: two(), when: { version: 7 } }),
        holds: true,
      },
      { name: "a put over another version", write: () => ({ put: two(), when: { version: 6 } }), holds: false },
      {
        name: "a put over a version of a row that does not exist",
        write: () => ({ put: row(pk, "new"), when: { version: 1 } }),
        holds: false,
      },
      { name: "a put without a condition", write: () => ({ put: two() }), holds: true },
      {
        name: "a deletion of the version that was read",
        write: () => ({ delete: key("two"), when: { version: 7 } }),
        holds: true,
      },
      {
        name: "a deletion of another version",
        write: () => ({ delete: key("two"), when: { version: 6 } }),
        holds: false,
      },
      { name: "a deletion of a row that does not exist", write: () => ({ delete: key("new") }), holds: true },
      {
        name: "a check of the version that was read",
        write: () => ({ check: key("two"), when: { version: 7 } }),
        holds: true,
      },
      { name: "a check of another version", write: () => ({ check: key("two"), when: { version: 8 } }), holds: false },
      { name: "a check of absence", write: () => ({ check: key("new"), when: "absent" }), holds: true },
      {
        name: "a check of absence of a row that exists",
        write: () => ({ check: key("two"), when: "absent" }),
        holds: false,
      },
      {
        name: "a check of conditions that all hold",
        write: () => ({
          check: key("two"),
          when: [
            { attribute: "count", equals: 3 },
            { attribute: "count", lessThan: 4 },
            { attribute: "mark", absent: true },
          ],
        }),
        holds: true,
      },
      {
        name: "a check of conditions of which one does not hold",
        write: () => ({
          check: key("two"),
          when: [
            { attribute: "count", equals: 3 },
            { attribute: "count", lessThan: 3 },
          ],
        }),
        holds: false,
      },
      {
        name: "a check of an attribute that does not exist",
        write: () => ({ check: key("two"), when: [{ attribute: "mark", equals: "a" }] }),
        holds: false,
      },
      {
        name: "a comparison with an attribute that does not exist",
        write: () => ({ check: key("two"), when: [{ attribute: "mark", lessThan: "z" }] }),
        holds: false,
      },
      {
        name: "an update if any condition holds",
        write: () => ({
          update: key("two"),
          set: { mark: "b" },
          when: [
            { attribute: "count", equals: 9 },
            { attribute: "mark", absent: true },
          ],
          any: true,
        }),
        holds: true,
      },
      {
        name: "an update if any condition holds, and none does,",
        write: () => ({
          update: key("two"),
          set: { mark: "b" },
          when: [
            { attribute: "count", equals: 9 },
            { attribute: "count", absent: true },
          ],
          any: true,
        }),
        holds: false,
      },
    ])("the transaction with $name succeeds: $holds", async ({ write, holds }) => {
      const before = await table.getMany([key("one"), key("two")]);
      const other: Write = { put: row(pk, "one", { mark: "changed" }), when: { version: 1 } };
      if (holds) {
        await table.write([other, write()]);
        expect(await table.get(key("one"))).toMatchObject({ mark: "changed" });
        return;
      }
      const error = await failure(table.write([other, write()]));
      expect(error).toBeInstanceOf(ConflictError);
      expect(error).toMatchObject({ code: "Conflict", retry: "transient", data: { failed: [1] } });
      expect(await table.getMany([key("one"), key("two")])).toEqual(expect.arrayContaining([...before]));
      expect(await table.get(key("new"))).toBeUndefined();
    });

    test("the error of a transaction names every write whose condition did not hold", async () => {
      const error = await failure(
        table.write([
          { put: row(pk, "one"), when: "absent" },
          { put: row(pk, "three"), when: "absent" },
          { delete: key("two"), when: { version: 1 } },
        ]),
      );
      expect(error).toMatchObject({ data: { failed: [0, 2] } });
      expect(await table.get(key("three"))).toBeUndefined();
    });

    test("a transaction has at most 100 writes, each to another row, and may have none", async () => {
      const writes = Array.from({ length: 101 }, (_, index) => ({ put: row(pk, `n${index}`) }));
      await table.write(writes.slice(1));
      await failure(table.write(writes));
      expect(await table.get(key("n0"))).toBeUndefined();
      await failure(table.write([{ put: row(pk, "twice") }, { check: key("twice"), when: "absent" }]));
      expect(await table.get(key("twice"))).toBeUndefined();
      await table.write([]);
    });
  });

  describe("an update", () => {
    test("an update sets, adds and removes attributes, and returns the new row", async () => {
      await put("a", { count: 2, gone: "x", kept: [1] });
      const after = await table.update({
        update: key("a"),
        set: { mark: { deep: true } },
        add: { count: 3, fresh: 1 },
        remove: ["gone", "never"],
      });
      expect(after).toEqual({ ...row(pk, "a"), count: 5, fresh: 1, kept: [1], mark: { deep: true } });
      expect(await table.get(key("a"))).toEqual(after);
    });

    test("an update creates a missing row, unless its condition needs an existing one", async () => {
      expect(await table.update({ update: key("new"), add: { count: 1 } })).toEqual({ ...key("new"), count: 1 });
      const needs = table.update({ update: key("none"), add: { n: 1 }, when: [{ attribute: "n", equals: 1 }] });
      expect(await failure(needs)).toBeInstanceOf(ConflictError);
      expect(await table.get(key("none"))).toBeUndefined();
    });

    test("only one of three updates with the same condition succeeds", async () => {
      await put("a", { dueKey: "t1", dueShard: `shard ${pk}` });
      const claim = (to: string) =>
        table.update({ update: key("a"), set: { dueKey: to }, when: [{ attribute: "dueKey", equals: "t1" }] });
      const results = await Promise.allSettled([claim("t2"), claim("t3"), claim("t4")]);
      expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
      for (const result of results) {
        if (result.status === "rejected") expect(result.reason).toMatchObject({ data: { failed: [0] } });
      }
    });
  });

  describe("a query", () => {
    beforeEach(async () => {
      await table.write(["a#1", "a#2", "a#3", "b#1", "b#2"].map((sk) => ({ put: row(pk, sk) })));
      await table.write([{ put: row(`${pk}2`, "a#1") }]);
    });

    test.each([
      { name: "all rows of a partition", query: {}, found: ["a#1", "a#2", "a#3", "b#1", "b#2"] },
      { name: "all rows, the newest first", query: { newestFirst: true }, found: ["b#2", "b#1", "a#3", "a#2", "a#1"] },
      { name: "the rows with a prefix", query: { prefix: "a#" }, found: ["a#1", "a#2", "a#3"] },
      {
        name: "the rows of a range, both ends included",
        query: { between: ["a#2", "b#1"] as const },
        found: ["a#2", "a#3", "b#1"],
      },
      { name: "no row of an empty range", query: { between: ["a#4", "a#5"] as const }, found: [] },
      { name: "no row of a range that ends before it begins", query: { between: ["b#1", "a#2"] as const }, found: [] },
      { name: "no row if none has the prefix", query: { prefix: "c" }, found: [] },
    ])("a query returns $name, whatever the page size", async ({ query, found }) => {
      for (const limit of [undefined, 1, 2]) {
        const most = limit === undefined ? {} : { limit };
        const pages = await all((cursor) => table.query({ pk, ...query, ...most, ...from(cursor) }));
        expect(pages.flat().map((item) => item.sk)).toEqual(found);
        for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit ?? found.length);
      }
    });
  });

  test("a query by state returns only rows in these states, and continues after the last one, whatever the page size", async () => {
    const states = ["Succeeded", "Failed", "Failed", "Succeeded", "Unreachable", "Failed"];
    await table.write(states.map((state, at) => ({ put: row(pk, `a#${at}`, { state }) })));
    await put("a#9");
    const found = async (searched: readonly string[], limit?: number) => {
      const most = limit === undefined ? {} : { limit };
      const pages = await all((cursor) =>
        table.query({ pk, prefix: "a#", states: searched, ...most, ...from(cursor) }),
      );
      for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit ?? states.length);
      return pages.flat().map(({ sk }) => sk);
    };
    for (const limit of [undefined, 1, 2]) {
      expect(await found(["Failed"], limit)).toEqual(["a#1", "a#2", "a#5"]);
      expect(await found(["Failed", "Unreachable"], limit)).toEqual(["a#1", "a#2", "a#4", "a#5"]);
      expect(await found(["Skipped"], limit)).toEqual([]);
    }
  });

  describe("a row that is too large", () => {
    const text = (kibibytes: number) => "x".repeat(kibibytes * 1024);
    const refused = {
      code: "RowTooLarge",
      retry: "permanent",
      message: expect.stringMatching(/row .*\|large .*409600 bytes: make its content smaller/),
      data: { row: { sk: "large" } },
    };

    test("the error for a row that is too large names its largest attributes, and its transaction writes nothing", async () => {
      const large = row(pk, "large", { small: 1, reported: text(390), list: [text(12)] });
      const error = await failure(table.write([{ put: row(pk, "beside") }, { put: large }]));
      expect(error).toMatchObject(refused);
      expect(String(error)).toContain("most of them in reported (390 KB), list (13 KB)");
      expect(await table.getMany([key("beside"), key("large")])).toEqual([]);
    });

    test("the size of a row is counted in bytes, not in characters", async () => {
      expect(await failure(put("large", { reported: "\u{1f980}".repeat(110 * 1024) }))).toMatchObject(refused);
    });

    test("an update that makes a row too large is refused, alone and in a transaction", async () => {
      await put("large", { reported: text(300) });
      const grow = { update: key("large"), set: { more: text(150) } };
      expect(await failure(table.update(grow))).toMatchObject(refused);
      const inTransaction = await failure(table.write([{ put: row(pk, "beside") }, grow]));
      expect(inTransaction).toMatchObject(reasons === "words" ? refused : { name: "TransactionCanceledException" });
      expect(await table.getMany([key("beside"), key("large")])).toEqual([row(pk, "large", { reported: text(300) })]);
    });

    test("a row just below the limit is accepted", async () => {
      await put("fits", { reported: text(398), nested: { list: [1, "a", { b: [true] }] } });
      expect(await table.get(key("fits"))).toMatchObject({ nested: { list: [1, "a", { b: [true] }] } });
    });
  });

  describe("an index", () => {
    const index = async (query: Attributes) =>
      (await all((cursor) => table.queryIndex({ index: "due", pk: `shard ${pk}`, ...query, ...from(cursor) }))).flat();
    const due = (at: string) => ({ dueShard: `shard ${pk}`, dueKey: at });

    test("the index of due rows has the keys of the rows with both its attributes, in order, a page at a time", async () => {
      await put("late", due("2026-03#x"));
      await put("early", due("2026-01#x"));
      await put("same", due("2026-02#x"));
      await put("same too", due("2026-02#x"));
      await put("not due", { dueShard: `shard ${pk}` });
      const entries = await index({ limit: 1 });
      expect(entries.map((entry) => entry.sort)).toEqual(["2026-01#x", "2026-02#x", "2026-02#x", "2026-03#x"]);
      expect(entries[0]).toEqual({ key: key("early"), sort: "2026-01#x" });
      expect(entries.map((entry) => entry.key.sk).sort()).toEqual(["early", "late", "same", "same too"]);
      expect((await index({ upTo: "2026-02#\uffff" })).map((entry) => entry.sort)).toEqual([
        "2026-01#x",
        "2026-02#x",
        "2026-02#x",
      ]);
      expect(await index({ prefix: "2026-03" })).toEqual([{ key: key("late"), sort: "2026-03#x" }]);
    });

    test("the index of due rows follows updates and deletions of rows", async () => {
      await put("a", due("2026-01"));
      await put("b", due("2026-02"));
      await table.update({ update: key("a"), set: { dueKey: "2026-09" } });
      expect((await index({})).map((entry) => entry.sort)).toEqual(["2026-02", "2026-09"]);
      await table.update({ update: key("a"), remove: ["dueKey"] });
      await table.write([{ delete: key("b") }]);
      expect(await index({})).toEqual([]);
    });

    test("the index of states has its own entry for a row that is due, too", async () => {
      await put("a", { ...due("2026-01"), statePk: `state ${pk}`, stateSk: "Ready#c1" });
      const inState = async (prefix: string) =>
        (await all((next) => table.queryIndex({ index: "state", pk: `state ${pk}`, prefix, ...from(next) }))).flat();
      expect(await inState("Ready#")).toEqual([{ key: key("a"), sort: "Ready#c1" }]);
      expect(await inState("Failed#")).toEqual([]);
    });
  });
}
