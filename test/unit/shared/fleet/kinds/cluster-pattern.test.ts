import fc from "fast-check";
import { expect, test } from "vitest";
import { clusterPattern, fitsClusterPattern } from "#shared/fleet/kinds/cluster-pattern.ts";

test.each([
  ["eu-1", "eu-1", true],
  ["eu-1", "eu-11", false],
  ["*", "eu-1", true],
  ["**", "e", true],
  ["eu-*", "eu-", true],
  ["eu-*", "eu-1", true],
  ["eu-*", "neu-1", false],
  ["*-prod", "eu-prod", true],
  ["*-prod", "eu-prod-1", false],
  ["a*a", "a", false],
  ["ab*ba", "aba", false],
  ["a*b*c", "a-c-b", false],
  ["a*b*c", "abbc", true],
])("the pattern %s fits %s: %s", (pattern, name, fits) => {
  expect(fitsClusterPattern(name, pattern)).toBe(fits);
});

test("a pattern fits what the same pattern with .* for each star fits", () => {
  const text = (letters: string, maxLength: number) =>
    fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength });
  fc.assert(
    fc.property(text("ab-", 12), text("ab-*", 6), (name, pattern) => {
      const isLike = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(name);
      expect(fitsClusterPattern(name, pattern)).toBe(isLike);
    }),
  );
});

test("a pattern of many stars ends with a name that almost fits", () => {
  const pattern = `a${"*-".repeat(20)}*x`;
  expect(clusterPattern.safeParse(pattern).success).toBe(true);
  expect(fitsClusterPattern(`a${"-".repeat(61)}y`, pattern)).toBe(false);
});
