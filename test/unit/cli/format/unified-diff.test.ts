import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { unifiedDiff } from "#cli/format/unified-diff.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-diff-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The results of one `git apply` of the hunks to the first text of each pair. */
function patched(sides: readonly (readonly [string, string])[]): readonly string[] {
  const names = sides.map((_, index) => `f${index}`);
  const patches = sides.map(([before, after], index) => {
    writeFileSync(join(folder, `f${index}`), before);
    return `--- a/f${index}\n+++ b/f${index}\n${unifiedDiff(before, after).join("\n")}\n`;
  });
  execFileSync("git", ["apply", "-"], { cwd: folder, input: patches.join(""), stdio: ["pipe", "pipe", "pipe"] });
  return names.map((name) => readFileSync(join(folder, name), "utf8"));
}

const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
const text = (all: readonly string[]) => `${all.join("\n")}\n`;

describe("a unified diff", () => {
  test("the diff of equal texts is empty", () => {
    expect(unifiedDiff("a: 1\n", "a: 1\n")).toEqual([]);
  });

  test("the diff shows three lines around each change, and names the field that contains it", () => {
    const before =
      "spec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n        - name: web\n          image: web:1\n";
    expect(unifiedDiff(before, before.replace("web:1", "web:2"))).toEqual([
      "@@ -4,4 +4,4 @@ spec.template.spec.containers",
      "     spec:",
      "       containers:",
      "         - name: web",
      "-          image: web:1",
      "+          image: web:2",
    ]);
  });

  test("the diff has separate hunks for distant changes, and one hunk for changes close to each other", () => {
    const before = lines(0, 40);
    const change = (...places: readonly number[]) =>
      unifiedDiff(text(before), text(before.map((line, index) => (places.includes(index) ? `${line}!` : line))));
    const heads = (hunks: readonly string[]) => hunks.filter((line) => line.startsWith("@@"));
    expect(heads(change(3, 30))).toEqual(["@@ -1,7 +1,7 @@", "@@ -28,7 +28,7 @@"]);
    expect(heads(change(3, 8))).toEqual(["@@ -1,12 +1,12 @@"]);
  });

  test("git apply turns the first text into the second with the diff", () => {
    const line = fc.constantFrom("a", "b", "c", "  d: 1", "x");
    const side = fc.array(line, { minLength: 1, maxLength: 30 }).map(text);
    const sides = fc.sample(fc.tuple(side, side), 300).filter(([before, after]) => before !== after);
    expect(patched(sides)).toEqual(sides.map(([, after]) => after));
  });

  test("the diff of two long texts without a common line is one hunk, and takes no long search", () => {
    const hunks = unifiedDiff(text(lines(0, 5000)), text(lines(5000, 10_000)));
    expect(hunks).toHaveLength(10_001);
    expect(hunks[0]).toBe("@@ -1,5000 +1,5000 @@");
  });
});
