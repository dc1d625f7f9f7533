/** Each command that a page shows exists, and so do its flags. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "#cli/program.ts";
import type { GuardedIo } from "#cli/session/io.ts";

const io = { out() {}, err() {}, columns: 100 } as unknown as GuardedIo;
const program = createProgram(io, () => {});
/** This page is generated from the sources, and its texts have placeholders. */
const generated = "docs/messages.md";
const pages = execFileSync("git", ["ls-files", "README.md", "docs/*.md"], { encoding: "utf8" })
  .trim()
  .split("\n")
  .filter((page) => page !== generated);

/** The commands in the code of a page, each as the words after `starling`. A quoted text counts as one word. */
function commandsIn(page: string): readonly (readonly string[])[] {
  const text = readFileSync(page, "utf8").replaceAll(/\\\n\s*/g, "");
  const blocks = [...text.matchAll(/^```[^\n]*\n(.*?)^```$/gms)].map(([, body = ""]) => body);
  const lines = blocks.flatMap((body) => [...body.matchAll(/^(?:\$ )?starling (.+)$/gm)]);
  const inline = [...text.replaceAll(/^```.*?^```$/gms, "").matchAll(/`starling\s+([^`]+)`/g)];
  return [...lines, ...inline].map(([, words = ""]) => {
    const quoted = words.replaceAll(/"[^"]*"|'[^']*'/g, "TEXT").replace(/\s[#>&|].*$/, "");
    return quoted.trim().split(/\s+/);
  });
}

/** The command that the first words name, and the words after them. */
function resolve(command: Command, words: readonly string[]): { command: Command; rest: readonly string[] } {
  const [word = "", ...rest] = words;
  const next = command.commands.find((each) => each.name() === word);
  return next === undefined ? { command, rest: words } : resolve(next, rest);
}

function problemOf(words: readonly string[]): string | undefined {
  if (words[0]?.startsWith("-") === true || /^[A-Z]+$/.test(words[0] ?? "")) return undefined;
  const { command, rest } = resolve(program, words);
  if (command === program) return "has no such command";
  const known = new Set([...program.options, ...command.options].flatMap(({ short, long }) => [short, long]));
  const unknown = rest
    .filter((word) => /^--?[a-z]/i.test(word))
    .map((word) => word.replace(/=.*$/, ""))
    .filter((flag) => flag !== "--help" && flag !== "-h" && !known.has(flag));
  return unknown.length === 0 ? undefined : `has no flag ${unknown.join(" ")}`;
}

test.each(pages)("every command of starling on %s exists, with its flags", (page) => {
  const problems = commandsIn(page).flatMap((words) => {
    const problem = problemOf(words);
    return problem === undefined ? [] : [`starling ${words.join(" ")}: ${problem}`];
  });
  expect(problems).toEqual([]);
});

test("the pages show more than 200 commands of starling", () => {
  expect(pages.flatMap(commandsIn).length).toBeGreaterThan(200);
});
