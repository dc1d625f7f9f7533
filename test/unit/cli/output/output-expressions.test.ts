import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-output-"));
writeFileSync(join(folder, "config.json"), JSON.stringify({ current: "here", contexts: contexts() }));

function contexts() {
  const of = (endpoint: string) => ({ endpoint, region: "eu-west-1", namespace: "shop" });
  return { here: of("https://here.example.com"), there: of("https://there.example.com") };
}

function run(...words: readonly string[]) {
  return runWithoutTerminal(words, { folder, patienceMs: 10_000 });
}

test("-o jsonpath evaluates an expression on the same value that -o json prints", async () => {
  expect(await run("context", "list", "-o", 'jsonpath={range .items[*]}{.name} {.region}{"\\n"}{end}')).toEqual({
    code: 0,
    out: "here eu-west-1\nthere eu-west-1\n",
    err: "",
  });
  expect((await run("context", "list", "-o=jsonpath={.items[?(@.current==true)].name}")).out).toBe("here");
});

test("-o custom-columns prints a table, and --no-headers leaves its headers out", async () => {
  const columns = "custom-columns=NAME:.name,ENDPOINT:.endpoint";
  const { out } = await run("context", "list", "-o", columns);
  expect(out).toBe("NAME   ENDPOINT\nhere   https://here.example.com\nthere  https://there.example.com\n");
  expect((await run("context", "list", "--no-headers", "-o", columns)).out).toBe(out.slice(out.indexOf("\n") + 1));
});

test("-o jsonpath escapes control characters of a text, and keeps line ends of the expression", async () => {
  expect((await run("context", "list", "-o", 'jsonpath={"\\x1b[2J"}{"\\n"}')).out).toBe("\\u001b[2J\n");
});

test.each([
  [
    "jsonpath={.items[a]}",
    '--output is "jsonpath={.items[a]}"; at character 8 ([a]}) [a] is not an index, a slice or a key; write [0]',
  ],
  ["jsonpath=", "the expression is missing; write -o jsonpath='{.items[*].metadata.name}'"],
  ["jsonpath", "the expression is missing"],
  ["custom-columns", "the columns are missing; write -o custom-columns=NAME:.metadata.name"],
  ["custom-columns=NAME", "NAME is not a column; write HEADER:PATH"],
  ["jsonpth={.a}", "expected one of wide, json, yaml, name, jsonpath=, custom-columns="],
])("-o %s is refused, and the error shows what to write", async (output, words) => {
  const { code, err } = await run("context", "list", "-o", output);
  expect(code).toBe(2);
  expect(err).toContain(words);
});

test("an expression that does not fit the value is refused, and the error shows what to write", async () => {
  const { code, err } = await run("context", "list", "-o", "jsonpath={.items[7].name}");
  expect(code).toBe(2);
  expect(err).toContain("-o does not fit the answer: 7 is beyond a list of 2; write [*]");
});
