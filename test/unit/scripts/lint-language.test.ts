import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";

const script = fileURLToPath(new URL("../../../scripts/lint-language.mjs", import.meta.url));

/** Runs the language check on a repository that has these files. */
function lint(files: Readonly<Record<string, string>>, ...options: readonly string[]) {
  const root = mkdtempSync(join(tmpdir(), "lint-language-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  spawnSync("git", ["init", "-q"], { cwd: root });
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--root", root, ...options], {
    encoding: "utf8",
  });
  return { status, lines: `${stdout}${stderr}`.trimEnd().split("\n") };
}

function findings(files: Readonly<Record<string, string>>) {
  expect(lint(files).status).toBe(1);
  return lint(files, "--list").lines;
}

describe("a sentence that begins with a headless clause", () => {
  const sentence = "What failed before is tried again.";
  test.each([
    ["a block comment", "shared/a.ts", `/**\n * Runs twice. ${sentence}\n */`, 2],
    ["a line comment over two lines", "test/a.ts", "\n// What failed before\n// is tried again.\n", 2],
    ["a comment of a script", "scripts/a.mjs", `// ${sentence}`, 1],
    ["a comment in YAML", "examples/a.yaml", `a: 1\n# ${sentence}`, 2],
    ["a page", "docs/a.md", `# A\n\nThe worker writes.\n${sentence}\n`, 3],
    ["a list item", "docs/a.md", `- Two words\n- ${sentence}\n`, 2],
    ["a table", "README.md", `| a | b |\n| --- | --- |\n| a | ${sentence} |\n`, 3],
    ["a decision record", "docs/adr/0001-a.md", sentence, 1],
    ["a message", "cli/a.ts", `\nfail("what failed before is tried again");`, 2],
    ["a message of several parts", "functions/a.ts", `fail("what failed" + " before is tried again");`, 1],
    ["a template", "infra/a.ts", `fail(\`\${name} failed. What failed before is tried again.\`);`, 1],
    ["a test's title", "test/a.test.ts", `test("what failed before is tried again", () => {});`, 1],
    ["a title of a table of tests", "test/a.test.ts", `it.each([])("of %s tests all run again", () => {});`, 1],
  ])("the sentence is refused in %s", (_, path, text, line) => {
    const found = findings({ [path]: text });
    expect(found).toHaveLength(1);
    expect(found[0]?.startsWith(`${path}:${line}: headless: `)).toBe(true);
  });

  test.each([
    "Who reads the row sees that it is old.",
    "Of these rows the last counts.",
    "Nor is the row of the cluster deleted.",
    "Whose lease is over writes no more.",
    "In what was reported the cluster is missing.",
    "Only then is the row deleted again.",
    "**What failed** before is tried again.",
  ])("the clause is refused: %s", (text) => {
    expect(findings({ "docs/a.md": text })).toHaveLength(1);
  });
});

test("a sentence without its subject is refused in a title, on a page, and inside of a comment", () => {
  expect(findings({ "test/a.test.ts": `test("is tried again after a minute", () => {});` })).toEqual([
    "test/a.test.ts:1: subjectless: is tried again after a minute",
  ]);
  expect(findings({ "docs/a.md": "The row stays. Is deleted by the next run." })).toHaveLength(1);
  expect(findings({ "cli/a.ts": "/** Reads the row. May be a moment behind it. */" })).toHaveLength(1);
});

test.each([
  ["a question", "docs/a.md", "What is a stage of a rollout? It is a set of clusters."],
  ["a heading", "docs/a.md", "# What a stage of a rollout is\n"],
  ["a block of code", "docs/a.md", "```\nWhat is in here is code.\n```\n"],
  ["a clause in the middle", "docs/a.md", "The planner knows what each of the clusters needs."],
  ["a label of few words", "docs/a.md", "What it does:\n"],
  ["a string with few words", "cli/a.ts", `print("what it does");`],
  ["a message about a value", "cli/a.ts", `fail("must be a number from 1 to 9");`],
  ["a docstring that begins with its verb", "cli/a.ts", "/** Has the build function render the artifact. */"],
  ["an adverb", "docs/a.md", "Of course the worker deletes the row."],
])("%s is not refused", (_, path, text) => {
  expect(lint({ [path]: text })).toEqual({ status: 0, lines: [expect.stringContaining("old words: 0")] });
});

test("a phrase that has a plain word is refused", () => {
  expect(findings({ "docs/a.md": "The worker gives back the slot." })).toEqual([
    "docs/a.md:1: old word in text: gives back; use: restore, release",
  ]);
});

describe("an old word", () => {
  test("an old word is refused in an identifier, in each of its forms", () => {
    const found = findings({ "shared/a.ts": "const sealedTarget = 1;\ntype LegRow = 1;\nfunction nextLook() {}" });
    expect(found).toEqual([
      "shared/a.ts:1: old word in identifier: sealed; use: snapshot",
      "shared/a.ts:2: old word in identifier: leg; use: stage run",
      "shared/a.ts:3: old word in identifier: look; use: check, scan, poll, read",
    ]);
  });

  test("an old word is refused in a key of a row, in a comment, in the code of a page, and in the name of a file", () => {
    const use = "use: stage run";
    expect(findings({ "shared/a.ts": `const key = "LEG#1";` })).toEqual([
      `shared/a.ts:1: old word in text: leg; ${use}`,
    ]);
    expect(findings({ "cli/a.ts": "// The leg ends." })).toEqual([`cli/a.ts:1: old word in text: leg; ${use}`]);
    expect(findings({ "docs/a.md": "```\n{ legs: 1 }\n```" })).toEqual([`docs/a.md:2: old word in text: legs; ${use}`]);
    expect(findings({ "infra/end-legs.ts": "" })).toEqual([
      `infra/end-legs.ts:0: old word in identifier: legs; ${use}`,
    ]);
  });

  test("a word that only contains an old word is allowed, and so is a subject of RBAC", () => {
    const files = {
      "shared/a.ts": "const elegance = delegate(); // The lookup of troubleshooting.",
      "local/apiserver/rbac.ts": "const subjects = 1;",
    };
    expect(lint(files).status).toBe(0);
  });
});

describe("a name that stands twice", () => {
  test("two files with the same name are refused", () => {
    const found = findings({ "cli/turns.ts": "export const a = 1;", "shared/kube/turns.ts": "export const b = 1;" });
    expect(found).toEqual(["cli/turns.ts, shared/kube/turns.ts: stands twice: turns.ts"]);
  });

  test("two exports with the same name are refused, also when one is a type and the other a value", () => {
    const found = findings({ "cli/a.ts": "export type Pace = 1;", "functions/b.ts": "export class Pace {}" });
    expect(found).toEqual(["cli/a.ts, functions/b.ts: stands twice: Pace"]);
  });

  test("a re-export, the entry points of functions, and a name in another folder are allowed", () => {
    const files = {
      "cli/a.ts": "export const pace = 1;",
      "cli/b.ts": `export { pace } from "./a.ts";`,
      "functions/a/handler.ts": "export const handler = 1;",
      "functions/b/handler.ts": "export const handler = 2;",
      "local/a.ts": "export const pace = 2;",
    };
    expect(lint(files).status).toBe(0);
  });
});

test("the limits in a repository allow as many findings as they say, and no more", () => {
  const page = (sentences: number) => `${"What failed is tried again. ".repeat(sentences)}The worker writes the row.`;
  const limits = JSON.stringify({ headlessPercent: { doc: 50 } });
  expect(lint({ "docs/a.md": page(1), "scripts/language/limits.json": limits }).status).toBe(0);
  const { status, lines } = lint({ "docs/a.md": page(2), "scripts/language/limits.json": limits });
  expect(status).toBe(1);
  expect(lines[0]).toBe("language: headlessPercent.doc is 66.7; at most 50 is allowed");
});

test("the option --list lists the findings of the files whose paths begin with its value", () => {
  const files = { "docs/a.md": "What failed is tried again.", "docs/b.md": "What failed is tried again." };
  expect(lint(files, "--list", "docs/b").lines).toEqual(["docs/b.md:1: headless: What failed is tried again."]);
});
