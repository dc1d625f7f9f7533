import { describe, expect, test } from "vitest";
import { AnswerBudget, extentProblem, heapBytesOf, inMebibytes } from "#shared/adapters/kube/answer-budget.ts";

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
