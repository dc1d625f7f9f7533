import { describe, expect, test } from "vitest";
import { linesOf } from "#test/bench/source-lines.ts";

describe("the lines of a source", () => {
  /** Legend: the source, its lines, those in functions, and those in functions that await something. */
  test.each<[string, string, lines: number, inFunctions: number, inAwaiting: number]>([
    ["without functions", "const a = 1;\nconst b = 2;\n", 2, 0, 0],
    ["that does not end with a line break", "const a = 1;\nconst b = 2;", 2, 0, 0],
    ["with a pure function", "const a = 1;\nfunction f() {\n  return a;\n}\n", 4, 3, 0],
    ["with an async function", "async function f() {\n  await g();\n}\nfunction h() {}\n", 4, 4, 3],
    [
      "with an async function inside a pure one",
      "function f() {\n  return async () => {\n    g();\n  };\n}\n",
      5,
      5,
      5,
    ],
    ["with methods of a class", "class A {\n  a = 1;\n  async b() {\n    c();\n  }\n  d() {}\n}\n", 7, 4, 3],
    ["with functions in a table", "const t = [\n  () => 1,\n  2,\n  async () => 3,\n];\n", 5, 2, 1],
    ["with two functions in one line", "const t = [async () => 1, () => 2];\n", 1, 1, 1],
    ["with an overload", "function f(a: string): void;\nfunction f() {}\n", 2, 1, 0],
  ])("a source %s is counted", (_what, source, lines, inFunctions, inAwaiting) => {
    expect(linesOf(source)).toEqual({ lines, inFunctions, inAwaiting });
  });

  test("a source that cannot be parsed is refused", () => {
    expect(() => linesOf("function {")).toThrow();
  });
});
