import { describe, expect, test } from "vitest";
import {
  bestTags,
  parseVersionConstraint,
  selectTag,
  VersionConstraintError,
} from "#shared/source/version-constraint.ts";

const accepted = [
  "v0.0.3",
  "v0.2.0",
  "0.2.1",
  "v1.0.0-alpha",
  "v1.0.0",
  "v1.0.0+b1",
  "v1.1.0-rc.1",
  "v1.1.0",
  "v1.2.3",
  "v1.2.4-beta.1",
  "v1.3.0",
  "v2.0.0-rc.1",
  "v2.0.0",
  "v2.1.0",
  "v11.1.0",
  "v2025.02.03",
  "v01.02.03",
];

const refusedTags = [
  "v1",
  "1.2",
  "release-1.0.0",
  "v1.2.3.4",
  "V1.5.0",
  " v1.6.0",
  "v1.8.0-rc_1",
  "v1.2.3-01",
  "v1.2.x",
  "",
];

/** The tags 1.x in the order of the list above. */
const ones = "v1.0.0 v1.0.0+b1 v1.1.0 v1.2.3 v1.3.0 v01.02.03";

/** Results of Masterminds/semver v3.4.0: the constraint, and every matching tag of the list or their number. */
const vectors: readonly (readonly [constraint: string, matches: string | number])[] = [
  ["*", 13],
  ["x", 13],
  ["1", ones],
  ["1.2", "v1.2.3 v01.02.03"],
  ["=1.2", "v1.2.3 v01.02.03"],
  [">1", "v2.0.0 v2.1.0 v11.1.0 v2025.02.03"],
  [">1.2", "v1.3.0 v2.0.0 v2.1.0 v11.1.0 v2025.02.03"],
  [">=1.0.0", 10],
  [">=1.0.0-0", 14],
  ["<v0.2.1", "v0.0.3 v0.2.0"],
  ["<1.0.0", "v0.0.3 v0.2.0 0.2.1"],
  ["<=1", `v0.0.3 v0.2.0 0.2.1 ${ones}`],
  ["<=1.2", "v0.0.3 v0.2.0 0.2.1 v1.0.0 v1.0.0+b1 v1.1.0 v1.2.3 v01.02.03"],
  ["~1.2", "v1.2.3 v01.02.03"],
  ["~1.2.3", "v1.2.3 v01.02.03"],
  ["~0", "v0.0.3 v0.2.0 0.2.1"],
  ["^1", ones],
  ["^1.2.3-0", "v1.2.3 v1.2.4-beta.1 v1.3.0 v01.02.03"],
  ["^0", "v0.0.3 v0.2.0 0.2.1"],
  ["^0.0.3", "v0.0.3"],
  ["^0.2", "v0.2.0 0.2.1"],
  ["1.0.0 - 1.2.3", "v1.0.0 v1.0.0+b1 v1.1.0 v1.2.3 v01.02.03"],
  ["1.0 - 2", "v1.0.0 v1.0.0+b1 v1.1.0 v1.2.3 v1.3.0 v2.0.0 v2.1.0 v01.02.03"],
  [">=1.0.0, <2.0.0", ones],
  [">=1.0.0 <2.0.0", ones],
  ["!=1.2.3", 11],
  ["!=1", "v0.0.3 v0.2.0 0.2.1 v2.0.0 v2.1.0 v11.1.0 v2025.02.03"],
  ["=<1.0.0", "v0.0.3 v0.2.0 0.2.1 v1.0.0 v1.0.0+b1"],
  ["=v1.0.0", "v1.0.0 v1.0.0+b1"],
  ["1.2.3-beta.1", ""],
  ["~>1.2", "v1.2.3 v01.02.03"],
  [">= 1.0.0 , < 2", ones],
  ["*-0", 17],
  ["~2.0.0-0", "v2.0.0-rc.1 v2.0.0"],
  ["1.x || 2.x", "v1.0.0 v1.0.0+b1 v1.1.0 v1.2.3 v1.3.0 v2.0.0 v2.1.0 v01.02.03"],
  ["1.x||2.x", "v1.0.0 v1.0.0+b1 v1.1.0 v1.2.3 v1.3.0 v2.0.0 v2.1.0 v01.02.03"],
  ["v1.2.3", "v1.2.3 v01.02.03"],
  ["=1.0.0+b1", "v1.0.0 v1.0.0+b1"],
  ["<2.x", `v0.0.3 v0.2.0 0.2.1 ${ones}`],
  [">=1.2.x", "v1.2.3 v1.3.0 v2.0.0 v2.1.0 v11.1.0 v2025.02.03 v01.02.03"],
];

/** The same, with the matching prereleases only. */
const prereleases: readonly (readonly [constraint: string, matches: string, best: string])[] = [
  [">=1.0.0-0 <2.0.0", "v1.0.0-alpha v1.1.0-rc.1 v1.2.4-beta.1 v2.0.0-rc.1", "v2.0.0-rc.1"],
  [">=1.0.0-0, <2", "v1.0.0-alpha v1.1.0-rc.1 v1.2.4-beta.1 v2.0.0-rc.1", "v2.0.0-rc.1"],
  [">=1.0.0 <2.0.0-0", "v1.1.0-rc.1 v1.2.4-beta.1", "v1.3.0"],
  ["^1.0.0-0 || ^2", "v1.0.0-alpha v1.1.0-rc.1 v1.2.4-beta.1", "v2.1.0"],
  ["1.0.0-0 - 2.0.0", "v1.0.0-alpha v1.1.0-rc.1 v1.2.4-beta.1 v2.0.0-rc.1", "v2.0.0"],
  [">=1.0.0-0 <1.1.0-0", "v1.0.0-alpha", "v1.0.0"],
];

const improper = [
  "",
  " ",
  "==1.0.0",
  "latest",
  "v",
  ">1<2",
  "1.2.3.4",
  "1,,2",
  "1 -2 - 3",
  "> 1 - 2",
  "1 ||",
  "1|2",
  "~~1",
];

function matching(constraint: string): string[] {
  const parsed = parseVersionConstraint(constraint);
  return accepted.filter((tag) => bestTags([{ name: tag, commit: "c" }], { constraint: parsed }).length === 1);
}

describe("ranges as Masterminds/semver reads them", () => {
  test.each(vectors)(
    "the constraint %s matches the same tags as in Masterminds/semver [source.version.range]",
    (constraint, matches) => {
      const found = matching(constraint);
      if (typeof matches === "number") expect(found).toHaveLength(matches);
      else expect(found.join(" ")).toBe(matches);
    },
  );

  test.each(prereleases)(
    "the constraint %s matches the prereleases %s [source.version.prerelease]",
    (constraint, matches, best) => {
      expect(
        matching(constraint)
          .filter((tag) => tag.includes("-"))
          .join(" "),
      ).toBe(matches);
      const tags = accepted.map((name) => ({ name, commit: name }));
      expect(bestTags(tags, { constraint: parseVersionConstraint(constraint) })[0]?.name).toBe(best);
    },
  );

  test.each(improper)("the constraint %j is improper [source.version.improper]", (constraint) => {
    expect(() => parseVersionConstraint(constraint)).toThrow(VersionConstraintError);
    expect(() => parseVersionConstraint(constraint)).toThrow("expected a range such as");
  });

  test("a hostile constraint is refused in time", () => {
    expect(() => parseVersionConstraint(`${"1   ".repeat(100)}!`)).toThrow(VersionConstraintError);
    expect(() => parseVersionConstraint(" ".repeat(100_000))).toThrow(VersionConstraintError);
  });
});

describe("version tags", () => {
  const everything = parseVersionConstraint("*-0");

  test.each(accepted)("the tag %s is a version [source.version.form]", (tag) => {
    expect(bestTags([{ name: tag, commit: "c" }], { constraint: everything })).toHaveLength(1);
  });
  test.each(refusedTags)("the tag %j is not a version [source.version.form]", (tag) => {
    expect(bestTags([{ name: tag, commit: "c" }], { constraint: everything })).toEqual([]);
  });
});

describe("selectTag", () => {
  const one = parseVersionConstraint("1.x");

  test("the later commit is selected among equal versions", () => {
    const tags = [
      { name: "v1.0.0", commit: "a", committedAt: "2026-01-02T00:00:00.000Z" },
      { name: "v1.0.0+b1", commit: "b", committedAt: "2026-01-01T00:00:00.000Z" },
    ];
    expect(selectTag(tags, { constraint: one })?.name).toBe("v1.0.0");
    expect(selectTag(tags.toReversed(), { constraint: one })?.name).toBe("v1.0.0");
  });

  test("the greater name is selected among equal versions of one time, in any order [source.version.equal]", () => {
    const tags = [
      { name: "1.0.0", commit: "a" },
      { name: "v1.0.0", commit: "b" },
    ];
    expect(selectTag(tags, { constraint: one })?.name).toBe("v1.0.0");
    expect(selectTag(tags.toReversed(), { constraint: one })?.name).toBe("v1.0.0");
  });

  test("only tags with the prefix count [source.version.prefix]", () => {
    const tags = ["app/1.0.0", "app/1.2.0", "web/1.9.0", "1.8.0"].map((name) => ({ name, commit: name }));
    expect(selectTag(tags, { constraint: one, tagPrefix: "app/" })?.name).toBe("app/1.2.0");
    expect(selectTag(tags, { constraint: one })?.name).toBe("1.8.0");
  });

  test("no tag is selected if none satisfies the constraint", () => {
    expect(selectTag([{ name: "v2.0.0", commit: "a" }], { constraint: one })).toBeUndefined();
  });
});
