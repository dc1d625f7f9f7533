import { expect, test } from "vitest";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";

test.each([
  [".*-rc.*", "v1.0.0-rc.1", true],
  ["-rc", "v1.0.0-rc.1", true],
  ["^rc", "v1.0.0-rc.1", false],
  ["^v1\\.\\d+\\.0$", "v1.12.0", true],
])("%s in %s: %s", (expression, text, isIn) => {
  const regex = parseLinearRegex(expression);
  expect(typeof regex === "string" ? regex : regex(text)).toBe(isIn);
});

test.each([
  ["[a-z", "is no regular expression: missing closing ]"],
  ["*", "is no regular expression: missing argument to repetition operator"],
  ["(?=a)", "which has no lookahead and no backreference"],
  ["(a)\\1", "which has no lookahead and no backreference"],
  ["(a{30}){30}", "is too large when its repetitions are written out; repeat less"],
  ["((a{100}){100}){100}", "is no regular expression: invalid repeat count"],
])("the expression %s is refused", (expression, problem) => {
  expect(parseLinearRegex(expression)).toContain(problem);
});

test("an expression that backtracking cannot finish is matched in linear time", () => {
  const regex = parseLinearRegex("^(a+)+$");
  if (typeof regex === "string") throw new Error(regex);
  const started = performance.now();
  expect(regex(`${"a".repeat(20_000)}!`)).toBe(false);
  expect(performance.now() - started).toBeLessThan(2000);
});

test.each([
  ["a|ab", "ab", true],
  ["a|b", "ab", false],
  ["(?m)^b$", "a\nb", false],
  ["\\Qa.b", "a.b", true],
  [".*", "a\nb", false],
])("the whole of a text: %s in %j: %s", (expression, text, isIn) => {
  const regex = parseLinearRegex(expression, { isWhole: true });
  expect(typeof regex === "string" ? regex : regex(text)).toBe(isIn);
});

test("an expression that leaves the group in which it is put is refused", () => {
  expect(parseLinearRegex("a)|(?:b", { isWhole: true })).toContain("is no regular expression: unexpected )");
});
