import { describe, expect, test } from "vitest";
import { largestAttributes, maxRowBytes, rowBytes } from "#shared/fleet/rows/row-size.ts";

describe("the size of a row", () => {
  test.each<[object, number]>([
    [{}, 0],
    [{ pk: "a" }, 3],
    [{ pk: "ä", sk: "€" }, 2 + 2 + 2 + 3],
    [{ n: 7 }, 1 + 21],
    [{ n: 7n }, 1 + 21],
    [{ b: true }, 1 + 1],
    [{ none: null }, 4 + 1],
    [{ left: undefined }, -1],
    [{ map: {} }, 3 + 3],
    [{ map: { a: "b" } }, 3 + 3 + 1 + 1 + 1],
    [{ list: [] }, 4 + 3],
    [{ list: ["ab", 1] }, 4 + 3 + (1 + 2) + (1 + 21)],
    [{ list: [["a"]] }, 4 + 3 + 1 + (3 + 1 + 1)],
  ])("the row %o has %i bytes", (row, bytes) => {
    expect(rowBytes(row)).toBe(bytes);
  });

  test("a row has at most 400 KB", () => {
    expect(maxRowBytes).toBe(409_600);
  });
});

describe("the largest attributes", () => {
  const row = { pk: "a", spec: "x".repeat(2048), observed: "x".repeat(5000), desired: "x".repeat(1025), type: "T" };

  test("the largest attributes are listed first, in whole KB, and small ones are left out", () => {
    expect(largestAttributes(row)).toBe("observed (5 KB), spec (2 KB), desired (2 KB)");
  });

  test("the list of the largest attributes has the requested length", () => {
    expect(largestAttributes(row, 1)).toBe("observed (5 KB)");
  });
});
