import { describe, expect, test } from "vitest";
import { isIgnored, isWithin, treeDigest } from "#shared/source/tree-listing.ts";

function file(path: string, content: string, executable = false) {
  return { path, executable, content: new TextEncoder().encode(content) };
}

describe("treeDigest", () => {
  const files = [file("a.yaml", "a: 1"), file("b/c.sh", "echo", true)];

  test("the digest of a tree is the same in any order of its files [source.artifact.same-files-same-digest]", () => {
    // sha256 of [["a.yaml","644","sha256:<of a: 1>"],["b/c.sh","755","sha256:<of echo>"]], computed with sha256sum.
    expect(treeDigest(files)).toBe("sha256:87526b41050b096c81b80731dc37b363a1b6fdfe84fcca61921b3a157503f1d8");
    expect(treeDigest(files.toReversed())).toBe(treeDigest(files));
  });

  const changes: readonly (readonly [legend: string, files: readonly ReturnType<typeof file>[]])[] = [
    ["content", [file("a.yaml", "a: 2"), file("b/c.sh", "echo", true)]],
    ["name", [file("a.yml", "a: 1"), file("b/c.sh", "echo", true)]],
    ["mode", [file("a.yaml", "a: 1"), file("b/c.sh", "echo")]],
    ["number of files", [file("a.yaml", "a: 1")]],
  ];
  test.each(changes)(
    "the digest of a tree changes with the %s [source.artifact.same-files-same-digest]",
    (_legend, changed) => {
      expect(treeDigest(changed)).not.toBe(treeDigest(files));
    },
  );
});

describe("isWithin", () => {
  const rows: readonly (readonly [path: string, paths: readonly string[], within: boolean])[] = [
    ["deploy/a.yaml", ["."], true],
    ["deploy/a.yaml", ["deploy"], true],
    ["deploy/a.yaml", ["deploy/a.yaml"], true],
    ["deploy-old/a.yaml", ["deploy"], false],
    ["a.yaml", ["deploy", "base"], false],
    ["base/b/c.yaml", ["deploy", "base/b"], true],
  ];
  test.each(rows)("the path %s is within %j: %s", (path, paths, within) => {
    expect(isWithin(path, paths)).toBe(within);
  });
});

describe("isIgnored", () => {
  const ignored = [
    ".git/config",
    ".gitignore",
    "sub/.gitattributes",
    ".github/workflows/ci.yaml",
    "img/logo.png",
    "x.tar.gz",
    "a/.sops.yaml",
  ];
  test.each(ignored)("the path %s is ignored [source.files.left-out]", (path) => {
    expect(isIgnored(path)).toBe(true);
  });
  const kept = ["a.yaml", "git/config.yaml", "png/a.yaml", ".helmignore", "x.gz", "github/a.yaml"];
  test.each(kept)("the path %s is kept [source.files.left-out]", (path) => {
    expect(isIgnored(path)).toBe(false);
  });
});
