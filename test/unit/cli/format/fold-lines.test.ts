import { describe, expect, test } from "vitest";
import { foldLines } from "#cli/format/fold-lines.ts";
import { formatTable } from "#cli/format/table.ts";

describe("lines that a terminal has no room for", () => {
  test.each([
    ["fits", "one two", 20, "one two"],
    ["are broken between words", "  one two three four", 12, "  one two\n      three\n      four"],
    [
      "go on below what they say of a label",
      "Status:      Halted for 30 minutes",
      27,
      "Status:      Halted for 30\n             minutes",
    ],
    [
      "keep a command in one line, and what is remarked of it out of it",
      "Next:        starling thaw everything     to go on",
      30,
      "Next:        starling thaw everything\n             to go on",
    ],
    ["have colours for nothing", "\u001b[31mone two\u001b[0m", 8, "\u001b[31mone two\u001b[0m"],
    ["keep a word that is longer", "a bbbbbbbbbbbb", 8, "a\n    bbbbbbbbbbbb"],
  ])("%s", (_what, text, columns, folded) => {
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

  test("has the rest of every row below it, at the same columns", () => {
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

  test("has its last cell whole where the lines are folded after", () => {
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
