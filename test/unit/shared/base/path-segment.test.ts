import { expect, test } from "vitest";
import { isPlainPath, pathSegmentProblem } from "#shared/base/path-segment.ts";

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
])("%j is a path as it is written: %s", (path, isPlain) => {
  expect(isPlainPath(path)).toBe(isPlain);
  if (isPlain) expect(new URL(`https://api.example.com${path}`).pathname).toBe(path);
});
