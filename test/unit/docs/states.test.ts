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

/** The rows of a table whose first cell is a word in backticks. */
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

describe("the table of waits in docs/rollouts.md", () => {
  const waits = section("rollouts.md", "## Waits");

  test("the table has every reason of a wait, and no other", () => {
    expect([...wordsOf(waits)].sort()).toEqual([...waitReasons].sort());
  });

  test("the table says for each wait what it is, and what clears it", () => {
    expect(rowsOf(waits).filter((cells) => cells.length !== 3 || cells.includes(""))).toEqual([]);
  });
});

describe("docs/spec/rollout.md", () => {
  const status = section("spec/rollout.md", "## Status");

  test("the page lists every phase of a rollout, and no other", () => {
    expect([...wordsOf(status)].sort()).toEqual([...rolloutPhases].sort());
  });

  test("the page names every phase of a stage run, and every state of a target", () => {
    const ended: readonly StageRunPhase[] = ["Gated", "Updating", "Baking", "Passed", "Superseded"];
    const below = status.slice(status.indexOf("`stages`"));
    expect([...ended, ...stalledPhases, ...targetStates].filter((word) => !below.includes(`\`${word}\``))).toEqual([]);
  });
});

test("docs/states.md has a remedy for each state that needs a person, the worst state first", () => {
  expect(wordsOf(section("states.md", "## What to do"))).toEqual(stateWords().filter(needsSomebody));
});

test("docs/tasks/check-a-cluster.md explains every step of the connection to a cluster, in the order of `cluster check`", () => {
  const page = readFileSync(new URL("../../../docs/tasks/check-a-cluster.md", import.meta.url), "utf8");
  const links: readonly string[] = clusterLinks;
  expect(wordsOf(page).filter((word) => links.includes(word))).toEqual(links);
});

test("docs/command.md lists every check of the doctor, in the doctor's order, and no other", () => {
  // A check uses its session only when it runs; its name needs no session.
  const session = {} as Session;
  const names = [...accessChecks(session), ...installationChecks(session)].map(({ name }) => name);
  const table = section("command.md", "## Doctor");
  expect([...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name)).toEqual(names);
});
