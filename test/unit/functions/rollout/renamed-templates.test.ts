/**
 * Syncs of removed templates on an unreachable cluster stay until it answers or is unregistered; other clusters do not
 * wait.
 */
import { expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { begin, names, playOn, worldOf } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";

/** More renames than one step can write for one cluster. */
const renames = 60;
const pace = { maxConcurrent: 2, maxUnreachable: 1 };
const templates = (number: number) => [{ name: `t${number}`, source: "app" }];

const syncsOf = (made: PlannerWorld, cluster: string) =>
  made.rows<SyncRow>("SyncOnCluster").filter((row) => row.cluster === cluster);

async function rollOutWithout(made: PlannerWorld, dead: string): Promise<void> {
  for (let round = 0; round < 10; round++) {
    await begin(made);
    for (const { cluster } of made.slots()) await made.finish(cluster, cluster === dead ? "Unreachable" : "Ready");
    await made.plan();
    if (made.isThrough()) return;
  }
  throw new Error(`the rollout does not complete: ${JSON.stringify(made.stageRun("all"))}`);
}

test.each([
  [
    "is reachable again",
    async (made: PlannerWorld) => {
      for (const { name } of syncsOf(made, "dead")) await made.observe("dead", "Reachable", { name });
    },
    ["apply"],
  ],
  ["is unregistered", (made: PlannerWorld) => made.removeCluster("dead"), ["orphan"]],
  [
    "is registered anew",
    (made: PlannerWorld) => made.addCluster("dead", "all", { uid: "dead-2" }),
    ["apply", "orphan"],
  ],
])(
  "a cluster that is unreachable while a template is renamed often loses all old Syncs when it %s",
  { timeout: 60_000 },
  async (_what, happens, left) => {
    const made = await worldOf([...names(3), "dead"], pace, templates(0));
    await made.rollOut();
    for (let number = 1; number <= renames; number++) {
      await made.setGroup(pace, templates(number));
      await rollOutWithout(made, "dead");
      made.advanceClock(120);
      await made.plan();
    }
    for (const cluster of names(3)) expect(syncsOf(made, cluster).map(({ name }) => name)).toEqual([`web.t${renames}`]);
    expect(made.rolloutState().templates).toHaveLength(renames + 1);
    const { clusters, conditions } = (await made.group()).status;
    expect(clusters).toMatchObject({ ready: 3, unreachable: 1 });
    expect(conditions[0]?.message).toMatch(
      /^3 of 4 clusters ready; dead does not answer .* cluster\/dead --cascade=orphan; 60 removed templates are remembered /,
    );
    await happens(made);
    await playOn(made);
    made.advanceClock(120);
    await made.plan();
    expect(made.rolloutState().templates).toEqual([`t${renames}`]);
    expect((await made.group()).status.conditions[0]?.message).not.toContain("gone");
    expect([...new Set(syncsOf(made, "dead").map(({ desired }) => desired.action))].sort()).toEqual(left);
  },
);
