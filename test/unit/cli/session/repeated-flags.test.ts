import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

/** A command writes a file below its home folder when it runs. */
const home = { folder: mkdtempSync(join(tmpdir(), "starling-flags-")), patienceMs: 10_000 };

afterAll(() => {
  rmSync(home.folder, { recursive: true, force: true });
});

test.each([
  [["local", "up", "--repo", "a", "--repo", "b"], '--repo was given twice, "a" and "b"; give it once', " local up"],
  [["-n", "a", "get", "syncgroups", "-n", "b"], '--namespace was given twice, "a" and "b"; give it once', ""],
  [["get", "syncgroups", "--limit=5", "--limit", "5"], '--limit was given twice, "5" and "5"; give it once', " get"],
  [["get", "syncgroups", "-o", "json", "-oyaml"], '--output was given twice, "json" and "yaml"; give it once', ""],
])("a flag that takes one value is refused when it is given twice: %j", async (words, message, verb) => {
  const { code, err } = await runWithoutTerminal(words, home);
  expect({ code, err }).toEqual({ code: 2, err: `error: ${message}\n  next: starling${verb} --help\n` });
});

test("a flag that takes several values may be given several times", async () => {
  const { err } = await runWithoutTerminal(["validate", "-f", "/nowhere/a.yaml", "-f", "/nowhere/b.yaml"], home);
  expect(err).not.toContain("twice");
});
