import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { objectHealths } from "#shared/fleet/api/sync-objects.ts";
import { targetStates } from "#shared/fleet/rows/rollout-rows.ts";
import { stateWords } from "#shared/words/state-words.ts";

const page = readFileSync(new URL("../../../docs/seeing.md", import.meta.url), "utf8");

test("docs/seeing.md says what each word of a STATE column means, in their order, and no other", () => {
  const rows = page
    .slice(page.indexOf("### Words"), page.indexOf("### What to do"))
    .matchAll(/^\| `(\w+)` \| (.+) \|$/gm);
  const words = [...rows].map(([, word]) => word);
  expect(words).toEqual(stateWords());
});

test("every state of a target is such a word", () => {
  expect(targetStates.filter((state) => !stateWords().includes(state))).toEqual([]);
});

test("docs/seeing.md says what each health of an object means", () => {
  for (const health of objectHealths) expect(page).toContain(`\`${health}\``);
});
