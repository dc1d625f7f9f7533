import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { accessChecks } from "#cli/doctor/access-checks.ts";
import { installationChecks } from "#cli/doctor/installation-checks.ts";
import type { Session } from "#cli/session/session.ts";
import { rolloutPhases } from "#shared/fleet/api/rollout-phase.ts";
import { clusterLinks } from "#shared/fleet/cluster-links.ts";
import { type StageRunPhase, stalledPhases, targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { waitReasons } from "#shared/fleet/waits/wait.ts";
import { needsSomebody, stateWords } from "#shared/words/state-words.ts";

function section(file: string, title: string): string {
  const page = readFileSync(new URL(`../../../docs/${file}`, import.meta.url), "utf8");
  const start = page.indexOf(`\n${title}\n`);
  expect(start, `${title} of ${file}`).toBeGreaterThan(0);
  const next = /\n#+ /.exec(page.slice(start + 1));
  return next === null ? page.slice(start) : page.slice(start, start + 1 + next.index);
}

/** The rows of a table whose first cell is a word as the program prints it. */
function rowsOf(text: string): readonly (readonly string[])[] {
  const lines = text.split("\n").filter((line) => /^\| `\w+` +\|/.test(line) && !line.startsWith("| `phase`"));
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

function wordsOf(text: string): readonly string[] {
  return rowsOf(text).map(([word = ""]) => word.replaceAll("`", ""));
}

describe.each([
  ["rollouts.md", "## Waits"],
  ["spec/rollout.md", "## Working with"],
])("docs/%s", (file, title) => {
  test("has everything that is waited for, and nothing else", () => {
    expect([...wordsOf(section(file, title))].sort()).toEqual([...waitReasons].sort());
  });

  test("says of each what it is, and what clears it", () => {
    expect(rowsOf(section(file, title)).filter((cells) => cells.length !== 3 || cells.includes(""))).toEqual([]);
  });
});

describe("docs/spec/rollout.md", () => {
  const status = section("spec/rollout.md", "## Status");

  test("has every phase of a content, and no other", () => {
    expect([...wordsOf(status)].sort()).toEqual([...rolloutPhases].sort());
  });

  test("names every phase of a leg, and every state of a target", () => {
    const ended: readonly StageRunPhase[] = ["Updating", "Passed", "Superseded"];
    const below = status.slice(status.indexOf("`stages`"));
    expect([...ended, ...stalledPhases, ...targetStates].filter((word) => !below.includes(`\`${word}\``))).toEqual([]);
  });
});

test("docs/states.md says what to do about each state that needs a person, the worst first", () => {
  expect(wordsOf(section("states.md", "## What to do"))).toEqual(stateWords().filter(needsSomebody));
});

test("docs/tasks/check-a-cluster.md has every link of the way to a cluster, in the order of `cluster check`", () => {
  const page = readFileSync(new URL("../../../docs/tasks/check-a-cluster.md", import.meta.url), "utf8");
  const links: readonly string[] = clusterLinks;
  expect(wordsOf(page).filter((word) => links.includes(word))).toEqual(links);
});

test("docs/command.md has every check of the doctor, in its order, and no other", () => {
  // Checks look at their session when they run: for their names none is asked.
  const session = {} as Session;
  const names = [...accessChecks(session), ...installationChecks(session)].map(({ name }) => name);
  const table = section("command.md", "## Doctor");
  expect([...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name)).toEqual(names);
});
