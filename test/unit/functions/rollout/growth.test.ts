/** What the planner reads and keeps does not grow with what has nothing to do with it: counted at the table. */
import { describe, expect, test } from "vitest";
import { begin, names, ownPaths, worldOf } from "#test/support/planner-story.ts";

describe("clusters that join a first leg one by one", () => {
  test("make its row no longer, and get their turn each", async () => {
    const made = await worldOf(["c000"], { maxConcurrent: 1 }, ownPaths);
    await begin(made);
    for (const name of names(12, "n")) {
      await made.addCluster(name, "all");
      await made.plan();
    }
    expect(made.leg("all")).toMatchObject({ size: 13, pages: [{ first: 0 }], counts: { Assigned: 1 } });
    await made.rollOut();
    expect(made.leg("all")).toMatchObject({ phase: "Passed", counts: { Succeeded: 13 } });
  });
});
