import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { mutationAreas, partId } from "#test/nightly/mutants/areas.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Every path that a pattern names: `{a,b}` names two, and `!(a|b)`, which leaves two files out, names those two. */
function namedPaths(pattern: string): readonly string[] {
  const list = /\{([^{}]*)\}|!\(([^()]*)\)/.exec(pattern);
  if (list === null) return [pattern];
  const [whole, braces, leftOut = ""] = list;
  const names = braces?.split(",") ?? leftOut.split("|");
  const [before, after] = [pattern.slice(0, list.index), pattern.slice(list.index + whole.length)];
  return names.flatMap((name) => namedPaths(`${before}${name}${after}`));
}

function matchesNoFile(pattern: string): boolean {
  const path = pattern.replace(/^!(?!\()/, "");
  return [path, ...namedPaths(path)].some((each) => globSync(each, { cwd: root }).length === 0);
}

test("every name in the patterns of the mutation areas is the name of a file that exists", () => {
  const withoutFile = Object.entries(mutationAreas).flatMap(([area, { parts }]) =>
    Object.entries(parts).flatMap(([name, { mutate, tests }]) =>
      [...mutate, ...tests].filter(matchesNoFile).map((pattern) => `${partId(area, name)}: ${pattern}`),
    ),
  );
  expect(withoutFile).toEqual([]);
});
