import { expect, test } from "vitest";
import { FilterPatternError, parseFilterPattern } from "#local/aws/services/filter-pattern.ts";

const line = { kind: "Sync", name: "web.app", namespace: "shop", inner: { deep: "x" }, count: 3 };

test.each([
  ['{ $.kind = "Sync" }', true],
  ['{ $.kind = "Source" }', false],
  ['{ ($.kind = "Sync") && ($.name = "web.app") }', true],
  ['{ ($.kind = "Sync" && $.name = "other") }', false],
  ['{ ($.kind = "Source") || ($.name = "web.app") }', true],
  ['{ ($.kind = "Source" || $.kind = "Sync") && $.namespace = "other" }', false],
  ['{ $.kind = "Source" || $.kind = "Sync" && $.namespace = "shop" }', true],
  ['{ $.inner.deep = "x" }', true],
  ['{ $.missing.deep = "x" }', false],
  ['{ $.count = "3" }', false],
])("the pattern %s matches the line: %s", (pattern, matches) =>
  expect(parseFilterPattern(pattern)(line)).toBe(matches),
);

test.each([
  "",
  "ERROR",
  "{ $.kind }",
  "{ $.kind = Sync }",
  '{ $.kind = "S*" }',
  '{ $.kind = "Sync"',
  '{ $.a = "b" } more',
])("the pattern %j is refused", (pattern) => expect(() => parseFilterPattern(pattern)).toThrow(FilterPatternError));
