/**
 * Every wait that people see has an end: each command that is printed with it ends it, and a wait without commands ends
 * by itself.
 */
import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { type Clearing, waitReasons } from "#shared/fleet/waits/wait.ts";
import { begin, web } from "#test/support/planner-story.ts";
import type { PlannerWorld } from "#test/support/planner-world.ts";
import { beginning, call, goneAfter, goOn, group, type Story, stories, waitsOf } from "#test/support/wait-stories.ts";

/** Does what a person does who reads the wait. */
async function clear(made: PlannerWorld, clearing: Clearing, { pace = {}, templates = web }: Story): Promise<void> {
  made.advanceClock(5);
  if (clearing.verb === "pace") {
    const { stages, ...others } = pace;
    const paced = { ...others, [clearing.field]: "100%" };
    const named = stages?.map((stage) => ({ ...stage, ...(clearing.field === "maxConcurrent" ? paced : {}) }));
    return made.setGroup({ ...paced, ...(named === undefined ? {} : { stages: named }) }, templates);
  }
  if (clearing.verb === "optional") {
    const stages = pace.stages?.map((stage) => (stage.name === clearing.stage ? { ...stage, optional: true } : stage));
    return made.setGroup({ ...pace, ...defined({ stages }) }, templates);
  }
  if (clearing.verb === "promote") {
    const { status } = await call(made, "GET", `${group}/rollout`);
    const { snapshot } = status.stages.find(({ name }: { name: string }) => name === clearing.stage).updatingTo;
    const { stage, rollout } = clearing;
    await call(made, "POST", `${group}/promote`, { stage, rollout, snapshot, reason: "INC-1" });
    return;
  }
  if (clearing.verb === "approveGuard")
    return call(made, "POST", `${group}/approve-guard`, { hash: clearing.hash, reason: "reviewed" });
  if (clearing.verb === "approve") {
    const { stage, plan } = clearing;
    await call(made, "POST", `${group}/approve`, { stage, plan, reason: "INC-1" });
    return;
  }
  if (clearing.verb === "exempt") {
    const until = new Date(made.now.getTime() + 1_800_000).toISOString();
    return call(made, "POST", `${group}/exempt`, { until, reason: "INC-1" });
  }
  if (clearing.verb === "rollback")
    return call(made, "POST", `${group}/rollback`, { to: clearing.to, reason: "INC-1" });
  if (clearing.verb === "uncordon") return call(made, "POST", `/v1/clusters/${clearing.cluster}/uncordon`);
  const [method, path] =
    clearing.verb === "thaw"
      ? (["DELETE", `/v1/freezes/${clearing.freeze}`] as const)
      : clearing.verb === "unregister"
        ? (["DELETE", `/v1/clusters/${clearing.cluster}?cascade=orphan&confirm=true`] as const)
        : clearing.verb === "orphan"
          ? (["DELETE", `${group}?cascade=orphan&confirm=true`] as const)
          : (["POST", `${group}/${clearing.verb}`] as const);
  const { verb: _verb, of: _of, ...about } = { of: 1, ...clearing };
  await call(
    made,
    method,
    path,
    ["reject", "unreject", "retry", "skip"].includes(clearing.verb) ? { ...about, reason: "INC-1" } : {},
  );
}

const textOf = (clearing: Clearing) => {
  const { verb, ...more } = clearing;
  return [verb, ...Object.values(verb === "approve" ? {} : more)].join(" ");
};
/** The commands of the wait that are needed as well. */
function togetherWith(clearing: Clearing, all: readonly Clearing[]): readonly Clearing[] {
  const isNeeded = (one: Clearing) => one === clearing || ("of" in clearing && one.verb === clearing.verb);
  return all.filter(isNeeded);
}

const waitsOn = (made: PlannerWorld, { on }: Pick<Story, "on">) =>
  waitsOf(made).then((waits) => waits.filter((wait) => wait.reason === on));

/** Facts without a time: a row, a Source or a freeze that somebody has to repair. */
const timeless = new Set(["newer", "source", "slots"]);

describe.each(stories)("the wait for $on, where $when", (story) => {
  test("the rollout reports the wait with the commands that end it", async () => {
    const [wait] = await waitsOn(await beginning(story), story);
    expect(wait?.clear.map(textOf)).toEqual(story.clear);
    if (!timeless.has(story.on)) expect(wait).toHaveProperty("since");
  });

  test.each(story.clear)("the printed command ends the wait: %s", async (verb) => {
    const made = await beginning(story);
    const [wait] = await waitsOn(made, story);
    const clearing = wait?.clear.find((one) => textOf(one) === verb);
    if (clearing === undefined) throw new Error(`no command of the wait is ${verb}`);
    for (const one of togetherWith(clearing, wait?.clear ?? [])) await clear(made, one, story);
    await begin(made);
    // No cluster is any healthier than before.
    expect((await waitsOn(made, story)).filter(({ stage }) => stage === wait?.stage)).toEqual([]);
    await goOn(made);
    // A cluster that no longer stops others may still have failed, and what was taken back is held and rejected.
    for (let turn = 0; turn < 3; turn++) {
      for (const {
        clear: [next],
      } of await waitsOf(made))
        if (next !== undefined) await clear(made, next, story);
      await goOn(made);
    }
    expect(await waitsOf(made)).toEqual([]);
  });

  test.each(story.clear.length === 0 ? ["by itself, or by what it names"] : [])(
    "a wait without commands ends %s",
    async () => {
      const made = await beginning(story);
      expect(await waitsOn(made, story)).not.toEqual([]);
      await story.end?.(made);
      await goOn(made);
      expect(await waitsOf(made)).toEqual([]);
    },
  );
});

test.each([
  ["failed", ["Failed"], { maxConcurrent: "100%" }],
  ["wait", [], { maxConcurrent: 1 }],
] as const)(
  "no wait is reported for catch-ups that %s in a group in deletion, because no command is about them",
  async (_what, said, pace) => {
    const made = await beginning({ on: "catchUps", when: "", pace, make: goneAfter(...said), clear: [] });
    expect(made.rolloutState().catchUps.failed + made.rolloutState().catchUps.waiting).toBeGreaterThan(0);
    const waits = await waitsOf(made);
    expect(
      waits.filter(({ reason, stage }) => reason === "catchUps" || (reason === "slots" && stage === undefined)),
    ).toEqual([]);
  },
);

test("a bake whose alarm cannot be read names no end, because it has none", async () => {
  const story = stories.find(({ when }) => when === "an alarm cannot be read");
  if (story === undefined) throw new Error("the story is gone");
  const [wait] = await waitsOn(await beginning(story), story);
  expect(wait?.message).toMatch(/cannot be read since .*: it does not exist; the bake does not end before it is read$/);
  expect(wait).not.toHaveProperty("until");
});

test("these stories include every kind of wait", () => {
  expect(new Set(stories.map(({ on }) => on))).toEqual(new Set(waitReasons));
});
