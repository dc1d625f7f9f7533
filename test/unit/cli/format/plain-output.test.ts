import { describe, expect, test } from "vitest";
import { fieldsText } from "#cli/format/describe-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";

/** A text of a cluster or repository that erases the screen, sets the title and reverses text in a terminal. */
const hostile = "a\u001b[2J\u001b]0;owned\u0007\u009b1m\u202eb\r";
const shown = String.raw`a\u001b[2J\u001b]0;owned\u0007\u009b1m\u202eb\u000d`;

describe("control characters in texts of clusters and repositories", () => {
  test("a table escapes control characters, and keeps its columns aligned", () => {
    const table = { columns: ["NAME", "STATE"], rows: [[hostile, "Ready"]] };
    expect(formatTable(table, { headers: "hide" })).toBe(`${shown}  Ready\n`);
    const header = formatTable(table, { headers: "show" }).split("\n")[0];
    expect(header?.indexOf("STATE")).toBe(shown.length + 2);
  });

  test("a cell with line breaks and tabs is one line of its table, and one line of a page", () => {
    const table = { columns: ["A\nB", "STATE"], rows: [["a\n\tb", "Ready"]] };
    expect(formatTable(table, { headers: "show" })).toBe(`A\\nB    STATE\na\\n\\tb  Ready\n`);
    expect(fieldsText([["Message", "a\nStatus:      Ready"]])).toBe("Message:     a\\nStatus:      Ready\n");
  });

  test("the page of an object escapes control characters", () => {
    expect(fieldsText([["Message", hostile]])).toBe(`Message:     ${shown}\n`);
  });

  test("JSON and YAML escape control characters, and JSON keeps the value", () => {
    const json = serialise({ message: hostile }, "json");
    expect(json).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
    expect(JSON.parse(json)).toEqual({ message: hostile });
    expect(serialise({ message: hostile }, "yaml")).not.toMatch(/(?!\n)\p{Cc}/u);
  });
});
