import { describe, expect, test } from "vitest";
import { foldLines } from "#cli/format/fold-lines.ts";
import { formatTable } from "#cli/format/table.ts";

describe("a line in a narrow terminal", () => {
  test.each([
    ["stays as it is when it fits", "one two", 20, "one two"],
    ["is broken between words", "  one two three four", 12, "  one two\n      three\n      four"],
    [
      "goes on below the text after its label",
      "Status:      Halted for 30 minutes",
      27,
      "Status:      Halted for 30\n             minutes",
    ],
    [
      "keeps a command whole, and puts the remark about it on a line of its own",
      "Next:        starling thaw everything     to go on",
      30,
      "Next:        starling thaw everything\n             to go on",
    ],
    ["is measured without its colours", "\u001b[31mone two\u001b[0m", 8, "\u001b[31mone two\u001b[0m"],
    ["keeps a word whole that is wider than the terminal", "a bbbbbbbbbbbb", 8, "a\n    bbbbbbbbbbbb"],
  ])("a line %s", (_what, text, columns, folded) => {
    expect(foldLines(`${text}\n`, columns)).toBe(`${folded}\n`);
    expect(foldLines(text, undefined)).toBe(text);
  });
});

describe("a table wider than the terminal", () => {
  const table = {
    columns: ["NAME", "REVISION", "STATE", ""],
    rows: [
      ["a", "main@sha1:1234567", "Failed", "what is wrong with it, at length"],
      ["bbbb", "main@sha1:1234567", "Ready", ""],
    ],
  };

  test("the table continues each row below it, in the same columns for every row", () => {
    expect(formatTable(table, { headers: "show", columns: 30 })).toBe(
      [
        "NAME  REVISION",
        "    STATE",
        "a     main@sha1:1234567",
        "    Failed",
        "    what is wrong with it, at…",
        "bbbb  main@sha1:1234567",
        "    Ready",
        "",
      ].join("\n"),
    );
  });

  test("the table keeps the last cell whole when the lines are folded afterwards", () => {
    expect(formatTable(table, { headers: "hide", columns: 34, last: "whole" })).toBe(
      [
        "a     main@sha1:1234567  Failed",
        "    what is wrong with it, at length",
        "bbbb  main@sha1:1234567  Ready",
        "",
      ].join("\n"),
    );
  });
});
