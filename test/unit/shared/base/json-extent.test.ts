import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasLongNumbers, jsonExtent } from "#shared/base/json-extent.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

describe("the extent of a JSON text", () => {
  test.each([
    ["1", { values: 1, depth: 0, longestNumber: 1 }],
    ["[]", { values: 2, depth: 1, longestNumber: 0 }],
    ["[{},{},{}]", { values: 7, depth: 2, longestNumber: 0 }],
    ['{"a":{"b":[1,22,333]}}', { values: 6, depth: 3, longestNumber: 3 }],
    ['"[[[[{{{{,,,,99999"', { values: 1, depth: 0, longestNumber: 0 }],
    ['"a\\"[[["', { values: 1, depth: 0, longestNumber: 0 }],
    ['"a\\\\",[', { values: 3, depth: 1, longestNumber: 0 }],
    ["-12.345e6", { values: 1, depth: 0, longestNumber: 3 }],
    ["[[[[", { values: 5, depth: 4, longestNumber: 0 }],
    ['"no end [[[', { values: 1, depth: 0, longestNumber: 0 }],
  ])("the extent of %s is computed", (text, expected) => {
    expect(jsonExtent(text)).toEqual(expected);
  });

  test.each(propertySeeds)("the extent has at least as many values and levels as the parsed text (seed %i)", (seed) => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        const extent = jsonExtent(text);
        const parsed = measured(JSON.parse(text));
        expect(extent.depth).toBe(parsed.depth);
        expect(extent.values).toBeGreaterThanOrEqual(parsed.values);
      }),
      { seed, numRuns: propertyRuns(50) },
    );
  });
});

test.each([
  ["999999999999999", false],
  ["[1000000000000000]", true],
  ['{"a":-1000000000000000}', true],
  ['{"a":"1000000000000000"}', false],
  ['{"1000000000000000":1}', false],
])("integers of %s may have to be read digit by digit: %s", (text, expected) => {
  expect(hasLongNumbers(jsonExtent(text))).toBe(expected);
});

function measured(value: unknown): { readonly values: number; readonly depth: number } {
  if (typeof value !== "object" || value === null) return { values: 1, depth: 0 };
  const members = Object.values(value).map(measured);
  return {
    values: members.reduce((sum, member) => sum + member.values, 1),
    depth: Math.max(0, ...members.map((member) => member.depth)) + 1,
  };
}
