/** Every link in the pages, and every name of a page in the code, leads to a file and a title that exist. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";

function tracked(...patterns: readonly string[]): readonly string[] {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...patterns];
  const files = execFileSync("git", args, { encoding: "utf8" }).trim().split("\n");
  return files.filter((file) => existsSync(file));
}

/** The anchors that GitHub makes of the titles. The second anchor of one name ends with `-1`. */
function anchorsOf(text: string): ReadonlySet<string> {
  const found = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, title = ""] of withoutCode(text).matchAll(/^#{1,6} +(.*?) *$/gm)) {
    const bare = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = bare.replaceAll(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");
    const count = found.get(anchor) ?? 0;
    found.set(anchor, count + 1);
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`);
  }
  return anchors;
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```/gms, "");
}

/** The targets of a page's links, without URLs. */
function linksOf(text: string): readonly string[] {
  const inline = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return inline.filter((target) => !/^[a-z]+:/.test(target));
}

function problemOf(page: string, target: string): string | undefined {
  const [path = "", anchor] = target.split("#");
  const file = path === "" ? page : normalize(join(dirname(page), path));
  if (!existsSync(file)) return `${target}: there is no ${file}`;
  if (anchor === undefined || !file.endsWith(".md")) return undefined;
  return anchorsOf(readFileSync(file, "utf8")).has(anchor) ? undefined : `${target}: ${file} has no #${anchor}`;
}

const pages = tracked("*.md");

test("the repository has the expected pages, and more than 100 links between pages", () => {
  expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/kinds.md", "docs/spec/syncgroup.md"]));
  expect(pages.flatMap((page) => linksOf(readFileSync(page, "utf8"))).length).toBeGreaterThan(100);
});

test.each(pages)("every link of %s leads to a file and a title that exist", (page) => {
  const problems = linksOf(readFileSync(page, "utf8")).flatMap((target) => problemOf(page, target) ?? []);
  expect(problems).toEqual([]);
});

describe("names of pages in the code", () => {
  const named = /\bdocs\/[\w/-]+\.md(?:#[a-z0-9-]+)?/g;
  const code = tracked("shared/*.ts", "functions/*.ts", "cli/*.ts", "local/*.ts", "infra/*.ts", "scripts/*.mjs");

  test("every page that the code names exists, and so does the title", () => {
    const problems = code.flatMap((file) => {
      const targets = readFileSync(file, "utf8").match(named) ?? [];
      return targets.flatMap((target) => {
        const problem = problemOf("README.md", target);
        return problem === undefined ? [] : [`${file}: ${problem}`];
      });
    });
    expect(problems).toEqual([]);
  });
});
