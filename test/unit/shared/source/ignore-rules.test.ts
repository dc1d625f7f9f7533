import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ignoreProblem } from "#shared/source/ignore-pattern.ts";
import { ignoreRoot, withoutIgnored } from "#shared/source/ignore-rules.ts";

const tree = (paths: readonly string[], texts: Readonly<Record<string, string>> = {}) =>
  [...paths, ...Object.keys(texts)].map((path) => ({
    path,
    executable: false,
    content: Buffer.from(texts[path] ?? ""),
  }));

interface Case {
  readonly ignore?: string;
  readonly paths: readonly string[];
  readonly texts?: Readonly<Record<string, string>>;
  readonly hasDefaults?: boolean;
}

const kept = ({ ignore, paths, texts, hasDefaults = false }: Case) =>
  withoutIgnored(tree(paths, texts), ignoreRoot(ignore, { hasDefaults }))
    .map(({ path }) => path)
    .filter((path) => !path.endsWith(".sourceignore"));

describe("patterns of spec.ignore", () => {
  test.each<[string, Case, readonly string[]]>([
    ["a name counts in every folder", { ignore: "a.md", paths: ["a.md", "x/a.md", "x/b.md"] }, ["x/b.md"]],
    ["a slash at the beginning means the root", { ignore: "/a.md", paths: ["a.md", "x/a.md"] }, ["x/a.md"]],
    ["a slash at the end means folders", { ignore: "a/", paths: ["a/b", "x/a", "x/a2/a/b"] }, ["x/a"]],
    ["a star stays in its folder", { ignore: "/a*/c", paths: ["ab/c", "a/b/c"] }, ["a/b/c"]],
    ["two stars cross folders", { ignore: "a/**/c", paths: ["a/c", "a/b/d/c", "x/a/c"] }, ["x/a/c"]],
    ["two stars at the end mean what is inside", { ignore: "a/**", paths: ["a/b/c", "a2"] }, ["a2"]],
    ["comments and empty lines", { ignore: "# a\n\n  \nb\r\n", paths: ["a", "b", "# a"] }, ["a", "# a"]],
    ["a backslash protects", { ignore: "\\#a\n\\!b\nc\\ ", paths: ["#a", "!b", "c ", "c"] }, ["c"]],
    ["a class", { ignore: "[!a-c]?[[:digit:]]", paths: ["ax1", "dx1", "d\u{1f600}2", "dxx"] }, ["ax1", "dxx"]],
    ["one pattern takes back", { ignore: "*.md\n!keep.md", paths: ["a.md", "x/keep.md"] }, ["x/keep.md"]],
    [
      "a folder is taken back out of an ignored one, as in Flux",
      { ignore: "/*\n!/deploy/base\n/deploy/base/*.md", paths: ["a", "deploy/a", "deploy/base/a", "deploy/base/a.md"] },
      ["deploy/base/a"],
    ],
    ["the last pattern wins, not the longest path", { ignore: "!/deploy\n/*", paths: ["deploy/a"] }, []],
  ])("%s [source.ignore.patterns]", (_what, given, expected) => {
    expect(kept(given)).toEqual(expected);
  });

  test.each<[string, Case, readonly string[]]>([
    ["are ignored as ever", { paths: ["a.png", ".github/w.yaml", "b"] }, ["b"]],
    ["stay ignored beside other patterns", { ignore: "*.md", paths: ["a.png", "b", "c.md"] }, ["b"]],
    ["are taken back by a pattern", { ignore: "!*.png", paths: ["a.png", "b.jpg", "c"] }, ["a.png", "c"]],
    [
      "come with a folder that is taken back",
      { ignore: "/*\n!/deploy", paths: ["a.png", "deploy/a.png"] },
      ["deploy/a.png"],
    ],
    ["never include .git", { ignore: "!.git\n!.git/**", paths: [".git/config", "b"] }, ["b"]],
  ])("files of version control and CI %s [source.ignore.default]", (_what, given, expected) => {
    expect(kept({ ...given, hasDefaults: true })).toEqual(expected);
  });

  test.each<[string, Case, readonly string[]]>([
    [
      "count below their folder",
      { texts: { "x/.sourceignore": "/a\nb" }, paths: ["a", "b", "x/a", "x/y/a", "x/y/b"] },
      ["a", "b", "x/y/a"],
    ],
    [
      "of a deeper folder win",
      { texts: { ".sourceignore": "*.md", "x/.sourceignore": "!a.md" }, paths: ["a.md", "x/a.md", "x/b.md"] },
      ["x/a.md"],
    ],
    [
      "lose against spec.ignore",
      { ignore: "a.md", texts: { ".sourceignore": "!a.md\nb.md" }, paths: ["a.md", "b.md", "c"] },
      ["c"],
    ],
    [
      "can be overruled by spec.ignore",
      { ignore: "!b.md", texts: { ".sourceignore": "*.md" }, paths: ["a.md", "b.md"] },
      ["b.md"],
    ],
    [
      "in an ignored folder do not count",
      { ignore: "x/", texts: { "x/.sourceignore": "!a" }, paths: ["x/a", "b"] },
      ["b"],
    ],
  ])("files .sourceignore %s [source.ignore.files]", (_what, given, expected) => {
    expect(kept(given)).toEqual(expected);
  });

  test("patterns that would take long are counted and refused [source.ignore.hostile]", () => {
    const hostile = Array.from({ length: 200 }, (_, index) => `${"*a".repeat(100)}b${index}`).join("\n");
    const paths = Array.from({ length: 20_000 }, (_, index) => `${"a".repeat(240)}${index}`);
    expect(() => kept({ ignore: hostile, paths })).toThrow("has patterns that take too long for so many files");
    const deep = `${"a/".repeat(250)}c`;
    expect(kept({ ignore: `${"**/a/".repeat(40)}**/b`, paths: [deep] })).toEqual([deep]);
  });

  test("usual patterns of a large repository are far below the bound [source.ignore.hostile]", () => {
    const usual = Array.from({ length: 200 }, (_, index) => `*.${index}.md`).join("\n");
    const paths = Array.from({ length: 20_000 }, (_, index) => `apps/team-${index % 100}/app-${index}/deployment.yaml`);
    const root = ignoreRoot(usual, { hasDefaults: true });
    expect(withoutIgnored(tree(paths), root)).toHaveLength(20_000);
    expect(root.meter.steps).toBeLessThan(500_000_000 / 10);
  });

  test.each([
    ["too many", "a\n".repeat(201), "has more than 200 patterns"],
    ["a long one", "a".repeat(257), `has a pattern of more than 256 characters: "${"a".repeat(40)}"…`],
    ["an open class", "*.md\n[ab", 'has a pattern with a [ that no ] closes: "[ab"'],
    ["200 of them", "a\n".repeat(200), undefined],
  ])("%s: the message says what is wrong [source.ignore.hostile]", (_what, text, expected) => {
    expect(ignoreProblem(text)).toBe(expected);
  });
});

describe("compared with git itself", () => {
  let folder: string;
  const names = ["a", "b", "ab", "a.md", "-x", "a b"];
  const paths = names.flatMap((one) => [
    ...names.map((two) => `d${one}/${two}`),
    ...names.map((two) => `d${one}/e/${two}`),
    one,
  ]);

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "starling-ignore-"));
    execFileSync("git", ["init", "-q", folder]);
    for (const path of paths) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), "");
    }
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const piece = fc.constantFrom(
    "a",
    "b",
    "d",
    "e",
    "*",
    "?",
    "**",
    "[ab]",
    "[!a]",
    "[a-c]*",
    ".md",
    "\\a",
    "da",
    " ",
    "-x",
  );
  // Git reads two stars beside other characters in ways of its own, which its pages call regular stars.
  const part = fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .array(piece, { minLength: 1, maxLength: 3 })
        .map((pieces) => pieces.join(""))
        .filter((text) => !text.includes("**")),
    },
    { weight: 1, arbitrary: fc.constant("**") },
  );
  const line = fc
    .tuple(fc.constantFrom("", "/"), fc.array(part, { minLength: 1, maxLength: 3 }), fc.constantFrom("", "/"))
    .map(([start, parts, end]) => start + parts.join("/") + end);

  test("patterns without ! leave out what git leaves out [source.ignore.patterns]", () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 3 }), (lines) => {
        writeFileSync(join(folder, ".git/info/exclude"), `${lines.join("\n")}\n`);
        const listed = execFileSync("git", ["ls-files", "-z", "--others", "--exclude-standard"], { cwd: folder });
        const expected = listed
          .toString()
          .split("\0")
          .filter((path) => path !== "");
        expect(kept({ ignore: lines.join("\n"), paths }).toSorted()).toEqual(expected.toSorted());
      }),
      { numRuns: 150 },
    );
  });
});
