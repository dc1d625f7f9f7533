import { expect, test } from "vitest";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const nowhere = { folder: "/nowhere", patienceMs: 10_000 };

test.each([
  [["local", "up", "--repo", "a", "--repo", "b"], '--repo was given twice, "a" and "b"; give it once', " local up"],
  [["-n", "a", "get", "syncgroups", "-n", "b"], '--namespace was given twice, "a" and "b"; give it once', ""],
  [["get", "syncgroups", "--limit=5", "--limit", "5"], '--limit was given twice, "5" and "5"; give it once', " get"],
  [["get", "syncgroups", "-o", "json", "-oyaml"], '--output was given twice, "json" and "yaml"; give it once', ""],
])("a flag that takes one value is refused when there are two: %j", async (words, told, verb) => {
  const { code, err } = await runWithoutTerminal(words, nowhere);
  expect({ code, err }).toEqual({ code: 2, err: `error: ${told}\n  next: starling${verb} --help\n` });
});

test("a flag that takes several values takes them", async () => {
  const { err } = await runWithoutTerminal(["validate", "-f", "/nowhere/a.yaml", "-f", "/nowhere/b.yaml"], nowhere);
  expect(err).not.toContain("twice");
});
