import { describe, expect, test } from "vitest";
import { fieldsText } from "#cli/format/describe-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";

/** Erases the screen, sets the title, turns text around: what a cluster or repository may want a terminal to do. */
const hostile = "a\u001b[2J\u001b]0;owned\u0007\u009b1m\u202eb\r";
const shown = String.raw`a\u001b[2J\u001b]0;owned\u0007\u009b1m\u202eb\u000d`;

describe("what others wrote is shown and not obeyed", () => {
  test("in tables, whose columns stay in line", () => {
    const table = { columns: ["NAME", "STATE"], rows: [[hostile, "Ready"]] };
    expect(formatTable(table, { headers: "hide" })).toBe(`${shown}  Ready\n`);
    const header = formatTable(table, { headers: "show" }).split("\n")[0];
    expect(header?.indexOf("STATE")).toBe(shown.length + 2);
  });

  test("on pages of one object", () => {
    expect(fieldsText([["Message", hostile]])).toBe(`Message:     ${shown}\n`);
  });

  test("in JSON, where it stays the same value, and in YAML", () => {
    const json = serialise({ message: hostile }, "json");
    expect(json).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
    expect(JSON.parse(json)).toEqual({ message: hostile });
    expect(serialise({ message: hostile }, "yaml")).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});
