import { expect, test } from "vitest";
import { describeWindow, nextOpeningsText } from "#cli/format/describe-window.ts";
import { getTable } from "#cli/format/get-table.ts";
import { type WindowObject, windowObject } from "#shared/fleet/api/objects.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

const night = { cron: "30 22 * * *", duration: "4h", timeZone: "Europe/Berlin" };
const past = { start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" };

function specOf(times: Partial<WindowSpec>): WindowSpec {
  return { clusters: { all: true }, allow: [], deny: [], ...times };
}

function objectAt(now: string, times: Partial<WindowSpec>): WindowObject {
  const row = {
    ...keys.window("night"),
    type: "Window" as const,
    schema: rowSchema,
    version: 1,
    ...{ uid: "u", name: "night", labels: {}, annotations: {}, generation: 1, createdAt: "2026-01-01T00:00:00.000Z" },
    spec: specOf(times),
    operations: {},
    status: { conditions: [] as const },
  };
  return windowObject(row, [{ name: "c1", labels: {} }], new Date(now));
}

function wideCells(now: string, times: Partial<WindowSpec>): Readonly<Record<string, string | undefined>> {
  const options = { now: new Date(now), width: "wide", namespaces: "one" } as const;
  const { columns, rows } = getTable("Window", [objectAt(now, times)], options);
  return Object.fromEntries(columns.map((column, index) => [column, rows[0]?.[index]]));
}

test("the wide table shows when a window opens and closes next, by its zone's clock and in UTC", () => {
  expect(wideCells("2026-07-01T12:00:00Z", { allow: [night] })).toMatchObject({
    OPEN: "no",
    CLUSTERS: "1",
    "NEXT OPENING": "2026-07-01T22:30+02:00 Europe/Berlin, 2026-07-01T20:30Z",
    "NEXT CLOSING": "-",
  });
  expect(wideCells("2026-12-01T22:00:00Z", { allow: [night] })).toMatchObject({
    OPEN: "yes",
    "NEXT OPENING": "-",
    "NEXT CLOSING": "2026-12-02T02:30+01:00 Europe/Berlin, 2026-12-02T01:30Z",
  });
});

test("a window that never opens again is named so in the table, in its description and by validate", () => {
  const now = "2026-07-01T12:00:00Z";
  expect(wideCells(now, { allow: [past] })).toMatchObject({ OPEN: "no", "NEXT OPENING": "-", "": "never opens again" });
  expect(describeWindow(objectAt(now, { allow: [past] }), new Date(now))).toContain("Next openings:\n  never\n");
});

test("the openings of an open window begin with the next one, and a window without a later one stays open", () => {
  const open = new Date("2026-12-01T22:00:00Z");
  expect(nextOpeningsText(specOf({ allow: [night] }), open)).toMatch(/^ {2}2026-12-02T22:30\+01:00 Europe\/Berlin/);
  expect(nextOpeningsText(specOf({ deny: [past] }), open)).toBe("  stays open\n");
});

test("the next five openings have the offset of their own day", () => {
  const lines = nextOpeningsText(specOf({ allow: [night] }), new Date("2026-10-23T12:00:00Z")).split("\n");
  expect(lines.filter((line) => line !== "").map((line) => line.trim())).toEqual([
    "2026-10-23T22:30+02:00 Europe/Berlin, 2026-10-23T20:30Z",
    "2026-10-24T22:30+02:00 Europe/Berlin, 2026-10-24T20:30Z",
    "2026-10-25T22:30+01:00 Europe/Berlin, 2026-10-25T21:30Z",
    "2026-10-26T22:30+01:00 Europe/Berlin, 2026-10-26T21:30Z",
    "2026-10-27T22:30+01:00 Europe/Berlin, 2026-10-27T21:30Z",
  ]);
});

test("a window over groups is described with them, in the table, too", () => {
  const now = "2026-07-01T12:00:00Z";
  const groups = { namespaces: ["payments"] };
  expect(wideCells(now, { allow: [night], clusters: undefined, groups })).toMatchObject({
    SELECTION: "groups payments/*",
    CLUSTERS: "1",
  });
  const both = { allow: [night], clusters: { names: ["c1"] }, groups };
  expect(wideCells(now, both)).toMatchObject({ SELECTION: "c1; groups payments/*" });
  expect(describeWindow(objectAt(now, both), new Date(now))).toMatch(/^Groups: +payments\/\*$/m);
});

test("a description lists the times of a window and until when it is open", () => {
  const text = describeWindow(
    objectAt("2026-12-01T22:00:00Z", { allow: [night], deny: [past] }),
    new Date("2026-12-01T22:00:00Z"),
  );
  expect(text).toContain("all (1 registered)");
  expect(text).toContain("yes, until 2026-12-02T02:30+01:00 Europe/Berlin, 2026-12-02T01:30Z");
  expect(text).toContain("Allow:\n  30 22 * * * for 4h in Europe/Berlin\n");
  expect(text).toContain("Deny:\n  2020-01-01T00:00:00Z to 2020-01-02T00:00:00Z\n");
});
