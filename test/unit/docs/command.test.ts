import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "#cli/program.ts";
import type { CliIo } from "#cli/session/io.ts";

const page = readFileSync(new URL("../../../docs/command.md", import.meta.url), "utf8");

/** Verbs that people type, by their words: `rollout status`. Those that the command calls itself are hidden. */
function verbsOf(command: Command, words: readonly string[] = []): readonly string[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.flatMap((verb) => {
    if (verb.name() === "help") return [];
    const path = [...words, verb.name()];
    const below = verbsOf(verb, path);
    const isGroup = below.length > 0 && verb.registeredArguments.length === 0 && verb.options.length === 0;
    return isGroup ? below : [path.join(" "), ...below];
  });
}

test("docs/command.md names every verb, in the order of the help, and no other", () => {
  const io = { out() {}, err() {}, columns: 100 } as unknown as CliIo;
  const verbs = verbsOf(createProgram(io, () => {}));
  const table = page.slice(page.indexOf("## Verbs"), page.indexOf("## Completion"));
  const named = [...table.matchAll(/^\| `([a-z ]+)`/gm)].map(([, verb]) => verb);
  expect(named).toEqual(verbs);
});
