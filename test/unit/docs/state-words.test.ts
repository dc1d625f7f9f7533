import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { objectHealths } from "#shared/fleet/api/sync-objects.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { stateWords } from "#shared/words/state-words.ts";

const page = readFileSync(new URL("../../../docs/states.md", import.meta.url), "utf8");

test("docs/states.md explains every word of a STATE column, in order, and no other", () => {
  const rows = page
    .slice(page.indexOf("## Words"), page.indexOf("## What to do"))
    .matchAll(/^\| `(\w+)` \| (.+) \|$/gm);
  const words = [...rows].map(([, word]) => word);
  expect(words).toEqual(stateWords());
});

test("every state of a target is a word of a STATE column", () => {
  expect(targetStates.filter((state) => !stateWords().includes(state))).toEqual([]);
});

test("docs/states.md explains every health of an object", () => {
  for (const health of objectHealths) expect(page).toContain(`\`${health}\``);
});
