import { describe, expect, test } from "vitest";
import { foreignList, foreignText } from "#shared/base/foreign-text.ts";

describe("a text of another system", () => {
  test.each([
    ["is left alone", "admission webhook denied it", "admission webhook denied it"],
    ["is one line", "a\r\nb\tc   d\u2028e", "a b c d e"],
    ["has no escapes", "\u001b[2Jall is well\u0007", "\\u001b[2Jall is well\\u0007"],
    ["has no NUL", "a\u0000b", "a\\u0000b"],
    ["has no C1 controls", "a\u009b31mb", "a\\u009b31mb"],
    ["reads in the order it is in", "safe\u202egnorw\u202c \u2066x\u2069", "safe\\u202egnorw\\u202c \\u2066x\\u2069"],
    ["has no halves of characters", "a\ud800b\udc00", "a\ufffdb\ufffd"],
    ["is cut", "x".repeat(50), `${"x".repeat(39)}…`],
    ["is cut between characters", "\u{1f980}".repeat(50), `${"\u{1f980}".repeat(19)}\ufffd…`],
    ["is cut although most of it is blank", `a${" ".repeat(1_000)}b`, "a…"],
  ])("a text of another system %s", (_legend, text, expected) => {
    expect(foreignText(text, 40)).toBe(expected);
  });

  test("the cost of a text of many megabytes depends on the part that is shown", () => {
    const text = "\u001b".repeat(50_000_000);
    expect(foreignText(text, 12)).toBe("\\u001b\\u001…");
  });
});

test("a long list of names is cut, with the number of names that are left out", () => {
  expect(foreignList(["a", "b"], 3)).toBe("a, b");
  expect(foreignList(["a", "b\u0000", "c", "d", "e"], 3)).toBe("a, b\\u0000, c and 2 more");
});
