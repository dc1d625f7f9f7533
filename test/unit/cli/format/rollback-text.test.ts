import { expect, test } from "vitest";
import { effectsText } from "#cli/format/rollback-text.ts";
import { effectKinds, type RollbackEffect } from "#shared/fleet/forecast/rollback-effects.ts";

const effect = (how: RollbackEffect["how"], more: Partial<RollbackEffect> = {}): RollbackEffect => ({
  how,
  object: "Job shop/migrate",
  sync: "shop.web",
  clusters: 1,
  ...more,
});

test("each effect has a line, with the object, its Sync and the number of clusters", () => {
  const text = effectsText({ effects: effectKinds.map((how) => effect(how)), more: 0, notCompared: [] });
  expect(text.split("\n").slice(0, -1)).toEqual(
    ["cannot change back", "would lose a version", "deleted", "not undone", "runs again", "created again", "stays"].map(
      (said) => `  ${said}: Job shop/migrate of shop.web on 1 cluster`,
    ),
  );
});

test("the text tells why, how many more effects there are, and which clusters were not compared", () => {
  expect(
    effectsText({
      effects: [effect("runsAgain", { clusters: 3, why: "it is a PreSync hook" })],
      more: 7,
      notCompared: [{ clusters: 2, why: "a rendering is not stored any more" }],
    }),
  ).toBe(
    [
      "  runs again: Job shop/migrate of shop.web on 3 clusters: it is a PreSync hook",
      "  and 7 more such lines",
      "  not compared: 2 clusters: a rendering is not stored any more",
      "",
    ].join("\n"),
  );
});

test("a rollback that does nothing to objects says so", () => {
  expect(effectsText({ effects: [], more: 0, notCompared: [] })).toBe("  no object is deleted, created or run again\n");
});
