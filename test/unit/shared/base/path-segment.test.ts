import { expect, test } from "vitest";
import { pathSegmentProblem } from "#shared/base/path-segment.ts";

test.each(["web", "system:node-proxier", "Reader@x", "...", "a..b", "\u00e9", "with blank", "apis?x=1#y"])(
  "%s is one segment of a path, once it is encoded",
  (text) => {
    expect(pathSegmentProblem(text)).toBeUndefined();
  },
);

test.each([
  [".", 'may not be "."'],
  ["..", 'may not be ".."'],
  ["a/b", 'may not contain "/"'],
  ["../../secrets", 'may not contain "/"'],
  ["..%2f", 'may not contain "%"'],
  ["a\r\nhost: b", "may not contain control characters"],
  ["a\u0000", "may not contain control characters"],
  ["\ud800", "may not contain half a character"],
])("%j is none", (text, problem) => {
  expect(pathSegmentProblem(text)).toBe(problem);
});
