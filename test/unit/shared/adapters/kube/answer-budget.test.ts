import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  AnswerBody,
  AnswerBudget,
  extentProblem,
  hasLongNumbers,
  heapBytesOf,
  inMebibytes,
  jsonExtent,
} from "#shared/adapters/kube/answer-budget.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

const mebibyte = 1024 * 1024;
const extent = { values: 1, depth: 1, longestNumber: 1 };

test.each([
  [{ ...extent, depth: 500 }, undefined],
  [{ ...extent, depth: 501 }, "it is nested 501 levels deep, more than the limit of 500"],
  [{ ...extent, longestNumber: 400 }, undefined],
  [{ ...extent, longestNumber: 401 }, "it has a number with 401 digits, more than the limit of 400"],
])(
  "a text with the extent %j is parsed unless it is nested too deeply or has a number that is too long",
  (found, problem) => {
    expect(extentProblem(found)).toBe(problem);
  },
);

test("the memory of a text is its length and the size of its values, with more for long integers", () => {
  expect(heapBytesOf("[1,2]", { ...extent, values: 3 })).toBe(10 + 3 * 64);
  expect(heapBytesOf("[9007199254740993]", { ...extent, values: 2, longestNumber: 16 })).toBe(36 + 2 * 512);
});

describe("the budget of one check", () => {
  const tooMuch = "the answers to one check would take more than 256 MiB of memory";

  test("a budget holds at most 256 MiB of answers, and counts each request once", () => {
    const budget = new AnswerBudget();
    expect(budget.hold("a", 200 * mebibyte)).toBeUndefined();
    expect(budget.hold("a", 156 * mebibyte)).toBeUndefined();
    expect(budget.hold("b", 100 * mebibyte)).toBeUndefined();
    expect(budget.hold("c", 1)).toBe(tooMuch);
  });

  test("a released answer gives its room back once", () => {
    const budget = new AnswerBudget();
    budget.hold("a", 256 * mebibyte);
    expect(budget.hold("b", 1)).toBe(tooMuch);
    budget.release("b");
    expect(budget.hold("b", 1)).toBe(tooMuch);
    for (let time = 0; time < 2; time += 1) budget.release("a");
    expect(budget.hold("b", 256 * mebibyte)).toBeUndefined();
    expect(budget.hold("c", 1)).toBe(tooMuch);
  });

  test("a refused answer takes no room", () => {
    const budget = new AnswerBudget();
    expect(budget.hold("a", 257 * mebibyte)).toBe(tooMuch);
    expect(budget.hold("b", 256 * mebibyte)).toBeUndefined();
  });

  test("a budget reads at most 1024 MiB in total", () => {
    const budget = new AnswerBudget();
    for (const bytes of [1023 * mebibyte, mebibyte, 0]) expect(budget.read(bytes)).toBeUndefined();
    expect(budget.read(1)).toBe("the answers to one check have more than 1024 MiB");
  });
});

test("sizes are shown in mebibytes", () => {
  expect(inMebibytes(1.5 * mebibyte)).toBe("1.5 MiB");
});

test.each([1, 7, 65_536, 65_537, 200_000])("the body is the answer that was sent, in pieces of %i bytes", (size) => {
  const text = "é€𝄞x".repeat(15_000);
  const bytes = Buffer.from(text);
  const body = new AnswerBody();
  const wrong: number[] = [];
  let pieces = 0;
  for (let at = 0; at < bytes.length; at += size) {
    const piece = Buffer.from(bytes.subarray(at, at + size));
    if (body.add(piece) !== Math.min(at + size, bytes.length)) wrong.push(at);
    // The HTTP client may use its memory again.
    piece.fill("!");
    pieces += 1;
  }
  expect(wrong).toEqual([]);
  expect(body.pieces).toBe(pieces);
  expect(body.text()).toBe(text);
});

test("an empty answer has an empty body", () => {
  const body = new AnswerBody();
  expect(body.add(Buffer.alloc(0))).toBe(0);
  expect([body.text(), body.pieces]).toEqual(["", 1]);
});

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
