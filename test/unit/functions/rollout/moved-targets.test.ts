/**
 * A cluster that changes stage, or leaves the group, during a stage run: it holds up no other cluster and verifies
 * nothing.
 */
import { describe, expect, test } from "vitest";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Outcome } from "#test/support/planner-model/model-workers.ts";
import { PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { web } from "#test/support/planner-story.ts";

type Stages = readonly { readonly name: string; readonly clusters?: RolloutStrategy["stages"][number]["clusters"] }[];

const by = (matchLabels: Record<string, string>) => ({ clusters: { selector: { matchLabels } } });
const stages: Stages = [{ name: "s0", ...by({ ring: "r0" }) }, { name: "s1", ...by({ ring: "r1" }) }, { name: "s2" }];
const odd = { flavour: "odd" };

/** The stages after the edit, where the cluster is in the stage with this index. */
const edits: Readonly<Record<string, (at: number) => Stages>> = {
  merged: (at) => (at === 2 ? [{ name: "s0", ...by({ ring: "r0" }) }, { name: "s1" }] : stages.toSpliced(at, 1)),
  split: (at) => stages.toSpliced(at, 0, { name: "own", ...by(odd) }),
  renamed: (at) => stages.map((stage, index) => (index === at ? { ...stage, name: "other" } : stage)),
  "selected differently": (at) =>
    at === 2
      ? stages.with(1, { name: "s1", ...by(odd) })
      : stages.with(at, { name: `s${at}`, ...by({ flavour: "even" }) }),
};
const moves = ["up", "down", "out", "unregistered", ...Object.keys(edits)] as const;
const states = [
  "Unreachable",
  "Unreachable, and reachable when it moves",
  "Failed",
  "Changing",
  "Changing, and then unreachable",
  "Changing, and then failed",
  "Pending",
] as const;

interface Cell {
  readonly move: (typeof moves)[number];
  readonly state: (typeof states)[number];
  readonly at: number;
  readonly maxConcurrent: 1 | "100%";
  /** Otherwise there is another cluster in its stage. */
  readonly isAlone: boolean;
}

/** Delivers messages until time has to pass. @param found - the outcome of the second attempt on `m`. */
async function deliver(model: PlannerModel, found: Outcome = "Ready"): Promise<void> {
  for (let count = 0; count < 500; count++) {
    const next = model.queue.find(({ from }) => from <= model.world.now.getTime())?.message;
    if (next === undefined) return;
    const isIts = next.to === "apply" && next.cluster === "m" && (await model.world.sync("m"))?.desired.attempt === 2;
    await model.deliver({ pick: 0, outcome: isIts ? found : "Ready", lands: "now", rendering: "done", planner: {} });
  }
  throw new Error("messages without end");
}

async function play({ move, state, at, maxConcurrent, isAlone }: Cell): Promise<void> {
  const model = new PlannerModel();
  const { world, workers } = model;
  const place = (name: string, ring: number, more = {}) =>
    model.setCluster(name, { ring: `r${ring}`, fleet: "web", flavour: "even", uid: name, ...more });
  await place("m", at, odd);
  const others = [0, 1, 2].filter((ring) => ring !== at || !isAlone);
  for (const ring of others) await place(`c${ring}`, ring);
  const pace = { maxConcurrent, maxFailures: 0, maxUnreachable: 0 };
  await model.revise("aaa", "aaa");
  await model.setGroup({ ...pace, stages } as Partial<RolloutStrategy>, web);
  expect(await model.calm()).toBe(true);
  expect(world.stages()).toEqual({ s0: "1", s1: "1", s2: "1" });

  const [isAway, isChanging] = [state.startsWith("Unreachable"), state.startsWith("Changing")];
  if (isAway) workers.away.add("m");
  if (state === "Pending") await model.freeze({ name: "own", labels: odd });
  await model.revise("bbb", "bbb");
  await deliver(model, state === "Failed" ? "Failed" : isChanging ? "Verifying" : "Ready");
  const { counts } = world.stageRun(`s${at}`);
  const as = isAway ? "Unreachable" : isChanging ? "Assigned" : state === "Failed" ? state : "Waiting";
  expect(counts[as], "it is there").toBeGreaterThan(0);

  if (state.endsWith("moves")) workers.away.delete("m");
  if (move === "up" || move === "down") await place("m", at + (move === "up" ? -1 : 1), odd);
  else if (move === "out") await place("m", at, { ...odd, fleet: "none" });
  else if (move === "unregistered") await model.unregister("m");
  else await model.setGroup({ ...pace, stages: edits[move]?.(at) } as Partial<RolloutStrategy>, web);
  if (isChanging && state !== "Changing") {
    // The planner knows of the move before the cluster's outcome.
    await model.plan({});
    if (state.endsWith("answer then")) workers.away.add("m");
    world.advanceClock(60);
    await model.tick("current");
    await deliver(model, state.endsWith("fails then") ? "Failed" : "Ready");
  }
  await deliver(model, "Ready");
  expect(await model.calm()).toBe(true);
  const isBarred = world.rolloutState().stages.some(({ bar }) => bar !== undefined);
  if (isBarred) {
    // The rollout had not passed the removed stage: the next rollout completes.
    expect(move).toBe("merged");
    await model.revise("ccc", "ccc");
    expect(await model.calm()).toBe(true);
  }
  const stalled = world.rolloutState().stages.find(({ updatingTo }) => updatingTo !== undefined);
  const isUnverified =
    stalled?.updatingTo !== undefined && world.stageRun(stalled.updatingTo.stage).phase === "NothingVerified";
  if (isUnverified) {
    // No cluster is left that could verify the rollout: no later stage gets it, and the next rollout completes.
    expect(isAlone).toBe(true);
    for (const ring of others.filter((one) => one > at))
      expect((await world.sync(`c${ring}`))?.desired.revision, `c${ring}`).toMatch(/aaa$/);
    if (stalled.name === world.rolloutState().stages[0]?.name) return;
    await model.revise("ccc", "ccc");
    expect(await model.calm()).toBe(true);
  } else if (stalled !== undefined) {
    // The cluster failed as a target of the stage that it is in.
    expect({ move, stages: world.stages() }).toMatchObject({ move: expect.stringMatching(/^(renamed|merged)$/) });
    expect(state).toMatch(/Failed|fails then/);
    await model.people.operate("reconcile");
    expect(await model.calm()).toBe(true);
  }

  const isGone = move === "out" || move === "unregistered";
  const { status } = await world.group();
  const syncs = world.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.action === "apply");
  const has = Object.fromEntries(
    syncs.map(({ cluster, observed }) => [cluster, observed?.applied?.revision.slice(-3)]),
  );
  const members = [...others.map((ring) => `c${ring}`), ...(isGone ? [] : ["m"])];
  expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });
  expect(world.isThrough(), JSON.stringify(world.stages())).toBe(true);
  expect(has).toEqual(Object.fromEntries(members.map((name) => [name, isUnverified || isBarred ? "ccc" : "bbb"])));
  expect(world.rolloutState().catchUps).toEqual({ waiting: 0, changing: 0, failed: 0 });
  expect(model.servers.excesses()).toEqual([]);
}

const cells = [0, 1, 2].flatMap(
  (at) =>
    [
      { at, maxConcurrent: 1, isAlone: false },
      { at, maxConcurrent: "100%", isAlone: false },
      { at, maxConcurrent: "100%", isAlone: true },
    ] as const,
);

describe.each(moves)("a target whose stage changes: %s", (move) => {
  test.each(states)("every other cluster gets its rollout when the target is %s", async (state) => {
    const faults: string[] = [];
    for (const cell of cells) {
      if ((move === "up" && cell.at === 0) || (move === "down" && cell.at === 2)) continue;
      await play({ move, state, ...cell }).catch((error: Error) =>
        faults.push(`${JSON.stringify(cell)}: ${error.message}`),
      );
    }
    expect(faults).toEqual([]);
  });
});
