/** A guard keeps its word when the planner dies at any call: nothing that it withholds gets through, and nothing twice. */
import { describe, expect, test } from "vitest";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { copyOf, diesAt, having, names, playOn, revise, web, worldOf } from "#test/support/planner-story.ts";
import { owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

const pace = { maxConcurrent: 20 };
const two = [...web, { name: "logs", source: "app", path: "logs" }];
const canary = { selector: { matchLabels: { ring: "canary" } } };
const all = { all: true };
const prune = { count: 8, members: 12, allowed: 2, hash: "1f8a90c2d4e5f607" };

interface Story {
  readonly on: string;
  readonly guard: object;
  readonly before: readonly [templates: readonly unknown[], clusters: unknown];
  /** The change, which the planner has not seen. */
  readonly change: (made: PlannerWorld, guard: object) => Promise<void>;
  /** The clusters that have what the guard must keep, or keep away. */
  readonly seen: (made: PlannerWorld) => readonly string[];
  readonly withheld: readonly string[];
  readonly approved: readonly string[];
}

const few = names(4);
const canaries = few.slice(0, 2);
const stories: readonly Story[] = [
  {
    on: "a wider selection",
    guard: { additions: 0 },
    before: [web, canary],
    change: (made, guard) => made.setGroup(pace, web, all, guard),
    seen: having,
    withheld: canaries,
    approved: few,
  },
  {
    on: "a narrower selection",
    guard: {},
    before: [web, all],
    change: (made, guard) => made.setGroup(pace, web, canary, guard),
    seen: having,
    withheld: few,
    approved: canaries,
  },
  {
    on: "clusters with another label",
    guard: {},
    before: [web, canary],
    async change(made) {
      for (const cluster of canaries) await made.addCluster(cluster, "rest");
    },
    seen: having,
    withheld: canaries,
    approved: [],
  },
  {
    on: "a template that was renamed",
    guard: {},
    before: [two, all],
    change: (made, guard) => made.setGroup(pace, [...web, { ...two[1], name: "logging" }], all, guard),
    seen: (made) => having(made, "logs"),
    withheld: few,
    approved: [],
  },
  {
    on: "a prune of too many objects",
    guard: { objects: "20%" },
    before: [web, all],
    async change(made) {
      await revise(made, "bbb");
      for (const { cluster } of made.slots())
        await made.observe(cluster, "Failed", { reason: "PruneGuard", guardedPrune: prune });
    },
    seen: (made) =>
      made
        .rows<SyncRow>("SyncOnCluster")
        .filter(({ desired }) => desired.mayPrune !== undefined)
        .map(({ cluster }) => cluster),
    withheld: [],
    approved: few,
  },
];

async function changed({ guard, before: [templates, clusters], change }: Story): Promise<PlannerWorld> {
  const fleet = Object.fromEntries(few.map((name, index) => [name, index < 2 ? "canary" : "rest"]));
  const made = await worldOf(fleet, pace, templates, clusters, guard);
  await made.rollOut();
  await made.plan();
  await change(made, guard);
  return made;
}

/** Plays a planner that dies at each of its calls in turn, before its effect and after it, and then the others. */
async function dieEverywhere(made: PlannerWorld, check: (copy: PlannerWorld, at: string) => void): Promise<number> {
  let deaths = 0;
  for (const when of ["before", "after"] as const) {
    for (let at = 1, hasDied = true; hasDied; at++) {
      const copy = await copyOf(made);
      hasDied = await diesAt(copy, at, when);
      deaths += Number(hasDied);
      check(copy, `${when} call ${at}`);
      await playOn(copy, 3);
      check(copy, `after it died ${when} call ${at}`);
    }
  }
  return deaths;
}

describe.each(stories)("under a guard, $on", { timeout: 120_000 }, (story) => {
  test("gets nowhere while it is withheld, wherever the planner dies", async () => {
    const made = await changed(story);
    const deaths = await dieEverywhere(made, (copy, at) => expect(story.seen(copy), at).toEqual(story.withheld));
    expect(deaths).toBeGreaterThan(8);
  });

  test("gets through once when it is approved, wherever the planner dies", async () => {
    const made = await changed(story);
    await playOn(made, 2);
    const [{ hash } = { hash: "" }] = made.rolloutState().guard?.withheld ?? [];
    const api = apiFixture(made.table);
    api.setNow(made.now.toISOString());
    const path = `/v1/namespaces/${owner.namespace}/syncgroups/${owner.name}/approve-guard`;
    expect(await api.call("POST", path, { hash, reason: "reviewed" })).toMatchObject({ status: 200 });
    await dieEverywhere(made, (copy, at) => {
      if (!at.startsWith("after it died")) return;
      expect(story.seen(copy), at).toEqual(story.approved);
      const { used, withheld, changes } = copy.rolloutState().guard ?? {};
      expect([used?.length, withheld, changes], at).toEqual([1, [], []]);
    });
  });
});

test("a change that is allowed is counted once, wherever the planner dies", { timeout: 120_000 }, async () => {
  const made = await worldOf(names(4), pace, web, all, { deletions: 2 });
  await made.rollOut();
  await made.plan();
  const without = { selector: { matchLabels: { ring: "all" } } };
  await made.addCluster("c003", "out");
  await made.setGroup(pace, web, without, { deletions: 2 });
  await dieEverywhere(made, (copy, at) => {
    const removed = (copy.rolloutState().guard?.changes ?? []).map((change) => change.removed);
    if (at.startsWith("after it died")) expect(removed, at).toEqual([1]);
  });
});
