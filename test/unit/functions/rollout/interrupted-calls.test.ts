/**
 * A call of the planner may end, or stand still and write late, at any effect: the clusters are assigned the same in
 * the end.
 */
import { describe, expect, test } from "vitest";
import { fates, playWithGap, type Story } from "#test/support/planner-model/gap-story.ts";

const stories: Readonly<Record<string, Story>> = {
  "a rollout": [[0, { do: "revise", rollout: 1 }]],
  "an undo in the middle": [
    [0, { do: "template", what: "drop", at: 1 }],
    [14, { do: "template", what: "drop", at: 1 }],
  ],
  "a deletion in the middle": [
    [0, { do: "revise", rollout: 1 }],
    [8, { do: "delete" }],
  ],
  "a suspend in the middle, and a resume": [
    [0, { do: "join", cluster: 2 }],
    [0, { do: "revise", rollout: 1 }],
    [8, { do: "suspend" }],
    [4, { do: "resume" }],
  ],
};

const last = ({ given }: Awaited<ReturnType<typeof playWithGap>>) =>
  Object.entries(given).map(([sync, all]) => [sync, all.at(-1)]);
const kinds = new Set<string>();

describe.each(Object.entries(stories))("%s", (what, story) => {
  test.each(fates)(
    "the last assignments are the same where any call of the planner %s",
    { timeout: 120_000 },
    async (fate) => {
      const quiet = await playWithGap(story, 0, fate);
      for (const kind of quiet.kinds) kinds.add(kind);
      // The two kinds of calls that go on late share the effects between them.
      const [first, step] = fate === "dies" ? [1, 1] : [fates.indexOf(fate), 2];
      for (let at = first; at <= quiet.effects; at += step) {
        const played = await playWithGap(story, at, fate);
        const where = `with effect ${at}`;
        expect(last(played), where).toEqual(last(quiet));
        // No cluster is taken back to an earlier rollout, or assigned one twice.
        if (what === "a rollout") expect(played.given, where).toEqual(quiet.given);
        expect(played.excesses, where).toEqual([]);
        expect(played.isGone, where).toBe(quiet.isGone);
      }
    },
  );
});

test("these stories include every kind of row that a call of the planner writes", () => {
  const rows = [
    "RolloutState",
    "SyncGroup",
    "Rollout",
    "StageRun",
    "Slot",
    "Target",
    "CatchUp",
    "SyncOnCluster",
    "Rendering",
  ];
  expect([...kinds].sort()).toEqual(
    expect.arrayContaining([...rows, "message", "check", "delete SLOT", "delete SyncGroup"].sort()),
  );
});
