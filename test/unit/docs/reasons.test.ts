import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type StageRunPhase, stalledPhases, targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import type { StateReason } from "#shared/fleet/rows/stated-reason.ts";
import { reasons } from "#shared/kube/reasons.ts";
import { type StateWord, stateWords } from "#shared/words/state-words.ts";

const root = new URL("../../../", import.meta.url);
const page = readFileSync(new URL("docs/reasons.md", root), "utf8");
const rows = [...page.matchAll(/^\| `(\w+)` \|(.*)\|$/gm)].map(([, word = "", rest = ""]) => ({
  word,
  cells: rest.split("|").map((cell) => cell.trim()),
}));

test("docs/reasons.md lists every reason, in the order of the sources, and no other", () => {
  expect(rows.map(({ word }) => word)).toEqual(reasons);
});

test("docs/reasons.md has a meaning and a remedy for each reason", () => {
  expect(rows.filter(({ cells }) => cells.length !== 2 || cells.includes("")).map(({ word }) => word)).toEqual([]);
});

test("no reason stands twice in the list of reasons", () => {
  expect(new Set(reasons).size).toBe(reasons.length);
});

/** The texts of shared/ and functions/ by their paths, without the lists of reasons and codes. */
function sources(): ReadonlyMap<string, string> {
  const patterns = ["shared/**/*.ts", "functions/**/*.ts"].map((each) => `:(glob)${each}`);
  const files = execFileSync("git", ["ls-files", "--", ...patterns], { cwd: root, encoding: "utf8" });
  return new Map(
    files
      .trim()
      .split("\n")
      .filter((file) => file !== "shared/kube/reasons.ts" && file !== "shared/base/error-codes.ts")
      .map((file) => [file, readFileSync(new URL(file, root), "utf8")]),
  );
}

test("each reason is used in a source", () => {
  const all = [...sources().values()].join("\n");
  const phases = reasons.filter((word) => word.startsWith("Rollout"));
  expect(reasons.filter((word) => !phases.includes(word) && !all.includes(`"${word}"`))).toEqual([]);
});

/** Types do not check a reason in a row that is written as it was read. */
test("every reason in a source is in the list of reasons, or is a state", () => {
  const stageRuns: readonly StageRunPhase[] = ["Gated", "Updating", "Baking", "Passed", "Superseded", ...stalledPhases];
  const known = new Set<string>([...reasons, ...stageRuns, ...targetStates, ...stateWords()]);
  const strangers = [...sources()]
    .flatMap(([file, text]) => {
      const said = text.matchAll(/\breason: (?:\w+ \? )?["`]([A-Z]\w*)["`:](?: : "([A-Z]\w*)")?/g);
      return [...said].flatMap(([, ...words]) => words.flatMap((word) => word ?? [])).map((word) => ({ file, word }));
    })
    .filter(({ word }) => !known.has(word));
  expect(strangers).toEqual([]);
});

/** A caught error's code becomes the reason in the status of a Source, a Sync, a Cluster or a ClusterDiscovery. */
test("every code of a StarlingError is in the list of reasons", () => {
  const strangers = [...sources()]
    .flatMap(([file, text]) => {
      const made = text.matchAll(/new StarlingError\((?:(?!\bcode\b)[^;])*\bcode: "([A-Z]\w*)"/g);
      return [...made].map(([, word = ""]) => ({ file, word }));
    })
    .filter(({ word }) => !(reasons as readonly string[]).includes(word));
  expect(strangers).toEqual([]);
});

test("every state that may be given as a reason is a word of docs/states.md", () => {
  // The compiler checks it: a state that is no such word makes this type `never`.
  const isWord: Exclude<StateReason, StageRunPhase> extends StateWord ? true : never = true;
  expect(isWord).toBe(true);
});
