import { expect, test } from "vitest";
import { isPlainPath, pathSegmentProblem } from "#shared/base/path-segment.ts";

test.each(["web", "system:node-proxier", "Reader@x", "...", "a..b", "\u00e9", "with blank", "apis?x=1#y"])(
  "the text %s, once encoded, is one segment of a path",
  (text) => {
    expect(pathSegmentProblem(text)).toBeUndefined();
  },
);

test.each([
  [".", 'must not be "."'],
  ["..", 'must not be ".."'],
  ["a/b", 'must not contain "/"'],
  ["../../secrets", 'must not contain "/"'],
  ["..%2f", 'must not contain "%"'],
  ["a\r\nhost: b", "must not contain control characters"],
  ["a\u0000", "must not contain control characters"],
  ["\ud800", "must not contain half of a surrogate pair"],
])("the text %j is not a segment of a path: %s", (text, problem) => {
  expect(pathSegmentProblem(text)).toBe(problem);
});

test.each([
  ["/v1/namespaces/a/syncs/b.c", true],
  ["/v1/freezes/a%20b%2Fc", true],
  ["/v1/clusters/...", true],
  ["v1/clusters", false],
  ["/v1/clusters/", false],
  ["/v1//clusters", false],
  ["/v1/../clusters", false],
  ["/v1/%2E./clusters", false],
  ["/v1/a?b=c", false],
  ["/v1/a#b", false],
  ["/v1/a\\..\\b", false],
  ["/v1/a b", false],
  ["/v1/a\n", false],
])("the text %j is a literal path: %s", (path, isPlain) => {
  expect(isPlainPath(path)).toBe(isPlain);
  if (isPlain) expect(new URL(`https://api.example.com${path}`).pathname).toBe(path);
});
