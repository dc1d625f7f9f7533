import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "#cli/program.ts";
import type { GuardedIo } from "#cli/session/io.ts";

const page = readFileSync(new URL("../../../docs/command.md", import.meta.url), "utf8");

const io = { out() {}, err() {}, columns: 100 } as unknown as GuardedIo;

/** The commands that people type, such as `rollout status`. Hidden commands are only for Starling's own use. */
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

test("docs/command.md lists every command, in the order of the help, and no other", () => {
  const verbs = verbsOf(createProgram(io, () => {}));
  const table = page.slice(page.indexOf("## Commands"), page.indexOf("## Completion"));
  const named = [...table.matchAll(/^\| `([a-z ]+)`/gm)].map(([, verb]) => verb);
  expect(named).toEqual(verbs);
});

function flagsOf(command: Command): string {
  const own = command.options.filter(({ hidden }) => !hidden);
  return own.map(({ long, short }) => `\`${[short, long].filter(Boolean).join(", ")}\``).join(" ");
}

/** `get | -l, --selector …`: a row for each visible command that has flags of its own. */
function flagRows(command: Command, words: readonly string[] = []): readonly string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .flatMap((verb) => {
      const path = [...words, verb.name()];
      const own = flagsOf(verb);
      return [...(own === "" ? [] : [`| \`${path.join(" ")}\` | ${own} |`]), ...flagRows(verb, path)];
    });
}

test("docs/command.md lists the flags of every command and the flags that all commands take, and no other", () => {
  const program = createProgram(io, () => {});
  const everywhere = program.options.map(({ flags, description }) => `| \`${flags}\` | ${description} |`);
  const flags = page.slice(page.indexOf("## Flags"), page.indexOf("## Doctor"));
  const rows = flags.split("\n").filter((line) => line.startsWith("| `"));
  expect(rows).toEqual([...everywhere, ...flagRows(program)]);
});
