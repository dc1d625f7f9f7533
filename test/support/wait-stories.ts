/** How each wait that people see begins, and the commands that are printed with it. */
import { expect } from "vitest";
import type { RolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import type { AlarmsRow, SlotRow } from "#shared/fleet/rows/rollout-rows.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Wait, WaitReason } from "#shared/fleet/waits/wait.ts";
import { ana, begin, ownPaths, register, revise, rings, web, worldOf } from "#test/support/planner-story.ts";
import { type OperationsInput, owner, type PlannerWorld } from "#test/support/planner-world.ts";
import { apiFixture } from "#test/unit/functions/api/api-fixture.ts";

export interface Story {
  readonly on: WaitReason;
  readonly when: string;
  readonly pace?: Partial<RolloutStrategy>;
  readonly templates?: readonly unknown[];
  readonly make: (made: PlannerWorld) => Promise<unknown>;
  /** The commands as they are printed. A wait without commands ends by itself as soon as all clusters have gone on. */
  readonly clear: readonly string[];
  /** The only event that can end the wait; the wait names it. */
  readonly end?: (made: PlannerWorld) => Promise<unknown>;
}

type Said = "Ready" | "Failed" | "Unreachable";
const sync = keys.sync("c1", "shop", "web.app");
export const group = "/v1/namespaces/shop/syncgroups/web";
const slotOf = (slot?: SlotRow) => keys.slot(owner, slot?.cluster ?? "");
const all = { maxConcurrent: "100%" } as const;
const lax = { ...all, maxFailures: "100%", maxUnreachable: "100%" } as const;
const baked: Partial<RolloutStrategy> = { ...all, stages: [{ name: "rest", after: [{ bake: "1s" }] }] };
const errors = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors";
const alarmed: Partial<RolloutStrategy> = {
  ...all,
  stages: [{ name: "rest", after: [{ bake: "1s" }, { alarm: { arn: errors, missing: "fail" } }] }],
};
const checked: Partial<RolloutStrategy> = {
  ...all,
  stages: [{ name: "rest", after: [{ check: { principal: "arn:aws:iam::111122223333:role/sre", expires: "60s" } }] }],
};
const approved: Partial<RolloutStrategy> = {
  ...all,
  stages: [{ name: "rest", before: [{ approval: { by: ["arn:aws:iam::*:role/sre"], count: 1, expires: "60s" } }] }],
};
const emptyFirst = (gates: Pick<RolloutStrategy["stages"][number], "before"> = {}): Partial<RolloutStrategy> => ({
  ...all,
  stages: [{ name: "dev", clusters: { selector: { matchLabels: { ring: "dev" } } }, ...gates }, { name: "rest" }],
});
const two: Partial<RolloutStrategy> = { ...all, stages: [{ name: "rest", maxConcurrent: 1 }] };

const act = async (made: PlannerWorld, operations: object) =>
  made.operate({ ...(await made.group()).operations, ...operations } as OperationsInput);
/** Reports for the slots in the order of their names; the last report holds for all other slots. */
const say = async (made: PlannerWorld, ...said: readonly Said[]) => {
  await begin(made);
  for (const [index, { cluster }] of made.slots().entries())
    await made.finish(cluster, said[Math.min(index, said.length - 1)]);
  await made.plan();
};
/** Writes the facts about the alarm of the bake, as the tick does. */
const alarmSays = async (made: PlannerWorld, found: Pick<AlarmsRow, "alarms" | "unread">) => {
  const stageRun = made.stageRun("rest");
  if (stageRun.bake === undefined) return;
  const set = { type: "Alarms", schema: rowSchema, from: stageRun.bake.from, ...found };
  await made.table.update({
    update: keys.alarms(owner, stageRun),
    set,
    ...(found.unread === undefined ? { remove: ["unread"] } : {}),
    add: { version: 1 },
  });
};
const after =
  (...said: readonly Said[]) =>
  (made: PlannerWorld) =>
    say(made, ...said);
const deleted =
  (...said: readonly Said[]) =>
  async (made: PlannerWorld) => {
    await made.rollOut();
    await act(made, { deletion: { ...ana(made.now), cascade: "delete" } });
    await say(made, ...said);
  };
const suspended = (before: (made: PlannerWorld) => Promise<unknown>) => async (made: PlannerWorld) => {
  await before(made);
  await act(made, { suspended: ana(made.now) });
  await made.plan();
};
const freeze = async (made: PlannerWorld, ring?: string) => {
  const clusters = ring === undefined ? {} : { clusters: { text: ring, selector: { matchLabels: { ring } } } };
  await made.setFreezes({
    freezes: [{ name: "inc", by: "ana", at: made.now.toISOString(), reason: "INC-1", ...clusters }],
  });
  await begin(made);
};
/** The cluster is cordoned before the next rollout. */
const cordonBefore = async (made: PlannerWorld, cluster: string) => {
  await made.rollOut();
  await register(made, cluster);
  await call(made, "POST", `/v1/clusters/${cluster}/cordon`, { reason: "INC-1" });
  await made.setSource("bbb");
  await begin(made);
};
/** No change may start for an hour. */
const window = async (made: PlannerWorld, from: Date) => {
  const [start, end] = [from, new Date(from.getTime() + 3_600_000)].map((at) => at.toISOString());
  const spec = { clusters: { all: true }, deny: [{ start, end }] };
  const document = { apiVersion: "starling.dev/v1alpha1", kind: "Window", metadata: { name: "busy" }, spec };
  await call(made, "POST", "/v1/apply", { documents: [document], reason: "INC-1" });
  await begin(made);
};
const joined =
  (...said: readonly Said[]) =>
  async (made: PlannerWorld) => {
    await made.rollOut();
    for (const name of ["j1", "j2", "j3"]) await made.addCluster(name, "rest");
    await begin(made);
    if (said.length > 0) await say(made, ...said);
  };

/** The clusters that joined report this, and then the group is deleted. */
export const goneAfter =
  (...said: readonly Said[]) =>
  async (made: PlannerWorld) => {
    await joined(...said)(made);
    await act(made, { deletion: { ...ana(made.now), cascade: "delete" } });
    await begin(made);
  };

export const stories: readonly Story[] = [
  { on: "suspended", when: "a stage run is in progress", make: suspended(begin), clear: ["resume"] },
  {
    on: "held",
    when: "a hold keeps a newer rollout back",
    make: async (made) => {
      await made.rollOut();
      await act(made, { hold: { ...ana(made.now), reason: "INC-1" } });
      await made.setSource("bbb");
      await begin(made);
    },
    clear: ["release"],
  },
  {
    on: "rejected",
    when: "the rollout in progress is rejected",
    make: async (made) => {
      await made.rollOut();
      await made.setSource("bbb");
      await begin(made);
      await call(made, "POST", `${group}/reject`, { rollout: 2, reason: "INC-1" });
      await begin(made);
    },
    clear: ["rollback 1", "unreject 2"],
  },
  {
    on: "guard",
    when: "a guard withholds a cluster that joined",
    make: async (made) => {
      await made.setGroup({}, web, { all: true }, { additions: 0 });
      await made.rollOut();
      await made.addCluster("joined", "rest");
      await begin(made);
    },
    clear: ["approveGuard 60841f2cd1b25733"],
  },
  {
    on: "cordoned",
    when: "the only canary is cordoned",
    pace: rings,
    make: (made) => cordonBefore(made, "canary"),
    clear: ["uncordon canary"],
  },
  {
    on: "cordoned",
    when: "a cluster is to catch up that its stage passed without",
    pace: all,
    make: async (made) => {
      await cordonBefore(made, "other");
      await say(made, "Ready");
      await begin(made);
    },
    clear: ["uncordon other"],
  },
  {
    on: "guard",
    when: "a guard withholds the prune of a cluster",
    make: async (made) => {
      await made.setGroup({}, web, { all: true }, {});
      await made.rollOut();
      await revise(made, "bbb");
      const guardedPrune = { count: 8, members: 12, allowed: 6, hash: "1f8a90c2d4e5f607" };
      for (const { cluster } of made.slots()) await made.observe(cluster, "Failed", { guardedPrune });
      await made.plan();
    },
    clear: ["approveGuard 1f8a90c2d4e5f607"],
  },
  {
    on: "skipped",
    when: "a cluster of a rollout in progress was skipped",
    pace: { ...all, maxFailures: 0 },
    make: async (made) => {
      await after("Ready", "Failed", "Failed")(made);
      const failed = made.stageRun("all").failures[0]?.cluster;
      await call(made, "POST", `${group}/skip`, { cluster: failed, reason: "INC-1" });
      await begin(made);
    },
    clear: ["retry canary"],
  },
  {
    on: "skipped",
    when: "a stage passed without a cluster",
    pace: all,
    make: async (made) => {
      await begin(made);
      await call(made, "POST", `${group}/skip`, { cluster: "rest", reason: "INC-1" });
      await say(made, "Ready");
      await begin(made);
    },
    clear: ["retry rest"],
  },
  { on: "frozen", when: "every cluster is frozen", make: (made) => freeze(made), clear: ["thaw inc"] },
  {
    on: "frozen",
    when: "the clusters of one stage are frozen",
    pace: rings,
    make: (made) => freeze(made, "canary"),
    clear: ["thaw inc"],
  },
  {
    on: "frozen",
    when: "a cluster that joined is frozen",
    make: async (made) => {
      await made.rollOut();
      await freeze(made, "rest");
      await made.addCluster("j1", "rest");
      await begin(made);
    },
    clear: ["thaw inc"],
  },
  {
    on: "window",
    when: "the window of the clusters is closed",
    make: (made) => window(made, made.now),
    clear: ["exempt"],
    end: async (made) => made.advanceClock(3600),
  },
  {
    on: "window",
    when: "a cluster that joined has a closed window",
    make: async (made) => {
      await made.rollOut();
      await window(made, made.now);
      await made.addCluster("j1", "rest");
      await begin(made);
    },
    clear: ["exempt"],
    end: async (made) => made.advanceClock(3600),
  },
  {
    on: "newer",
    when: "the row of a Sync is unreadable",
    make: async (made) => {
      await made.rollOut();
      await made.table.write([{ update: sync, set: { schema: newestRowSchema + 1 } }]);
      await made.setSource("bbb");
      await begin(made);
    },
    clear: [],
    end: (made) => made.table.write([{ update: sync, set: { schema: rowSchema } }]),
  },
  {
    on: "newer",
    when: "the row of a slot is unreadable",
    make: async (made) => {
      await begin(made);
      const [slot] = made.slots();
      await made.table.write([{ update: slotOf(slot), set: { schema: newestRowSchema + 1 } }]);
      await made.plan();
    },
    clear: [],
    end: async (made) => {
      for (const { schema, pk, sk } of made.table.all())
        if (schema > newestRowSchema) await made.table.write([{ update: { pk, sk }, set: { schema: rowSchema } }]);
    },
  },
  {
    on: "asked",
    when: "the planner has not handled a refresh",
    make: async (made) => {
      await made.rollOut();
      await act(made, { refresh: ana(made.now) });
    },
    clear: [],
  },
  {
    on: "budget",
    when: "some clusters fail",
    pace: all,
    make: after("Ready", "Failed"),
    clear: ["retry", "refresh", "pace maxFailures"],
  },
  {
    on: "budget",
    when: "one cluster fails, and the others are ready",
    pace: all,
    make: after("Failed", "Ready"),
    clear: ["retry", "skip c1", "refresh", "pace maxFailures"],
  },
  {
    on: "budget",
    when: "one cluster fails with a newer rollout",
    pace: all,
    make: async (made) => {
      await made.rollOut();
      await made.setSource("bbb");
      await say(made, "Failed", "Ready");
    },
    clear: ["rollback 1", "retry", "skip c1", "refresh", "pace maxFailures"],
  },
  {
    on: "budget",
    when: "the first clusters fail",
    pace: { maxConcurrent: 2 },
    make: after("Failed"),
    clear: ["retry", "skip c1 2", "skip canary 2", "refresh", "pace maxFailures"],
  },
  {
    on: "budget",
    when: "all clusters fail",
    pace: all,
    make: after("Failed"),
    clear: ["retry", "refresh"],
  },
  {
    on: "budget",
    when: "nothing can be rendered",
    pace: all,
    make: async (made) => {
      await made.plan();
      await made.renderAll("no kind");
      await made.plan();
    },
    clear: ["retry"],
  },
  {
    on: "budget",
    when: "the group is also suspended",
    pace: all,
    make: suspended(after("Failed")),
    clear: [],
    end: async (made) => {
      for (const verb of ["resume", "reconcile"]) await call(made, "POST", `${group}/${verb}`);
    },
  },
  { on: "budget", when: "deletions fail", pace: all, make: deleted("Failed"), clear: ["reconcile", "orphan"] },
  {
    on: "budget",
    when: "deletions fail, and clusters that joined had failed",
    pace: all,
    make: async (made) => {
      await goneAfter("Failed")(made);
      await say(made, "Failed");
    },
    clear: ["reconcile", "orphan"],
  },
  {
    on: "evidence",
    when: "all clusters fail within the budget",
    pace: lax,
    make: after("Failed"),
    clear: ["retry", "refresh", "promote all 1"],
  },
  {
    on: "evidence",
    when: "all clusters are unreachable within the budget",
    pace: lax,
    make: after("Unreachable"),
    clear: ["refresh", "promote all 1"],
  },
  {
    on: "evidence",
    when: "the first stage has no cluster",
    pace: emptyFirst(),
    make: begin,
    clear: ["promote dev 1", "optional dev"],
  },
  {
    on: "evidence",
    when: "the first stage has no cluster, and needs an approval",
    pace: emptyFirst({ before: [{ approval: { by: ["arn:aws:iam::*:role/sre"], count: 1, expires: "60s" } }] }),
    make: begin,
    clear: ["optional dev"],
  },
  {
    on: "unreachable",
    when: "most clusters are unreachable",
    pace: all,
    make: after("Ready", "Unreachable"),
    clear: ["pace maxUnreachable", "refresh", "promote all 1"],
  },
  {
    on: "unreachable",
    when: "all clusters are unreachable",
    pace: all,
    make: after("Unreachable"),
    clear: ["refresh", "promote all 1"],
  },
  {
    on: "unreachable",
    when: "other clusters failed",
    pace: { ...all, maxFailures: "100%" },
    make: after("Ready", "Failed", "Unreachable", "Unreachable"),
    clear: ["pace maxUnreachable", "refresh", "promote all 1"],
  },
  {
    on: "unreachable",
    when: "a deletion waits for an unreachable cluster",
    pace: all,
    make: deleted("Ready", "Ready", "Ready", "Unreachable"),
    clear: ["unregister rest", "orphan"],
  },
  {
    on: "unreachable",
    when: "a deletion waits for two unreachable clusters",
    pace: all,
    make: deleted("Ready", "Ready", "Unreachable", "Unreachable"),
    clear: ["unregister other 2", "unregister rest 2", "orphan"],
  },
  {
    on: "gate",
    when: "a cluster fails during the bake",
    pace: baked,
    make: async (made) => {
      await say(made, "Ready");
      await made.observe("c1", "Failed");
      await made.plan(made.table, ["c1"]);
    },
    clear: ["retry", "promote rest 1", "reject 1", "pace maxFailures"],
  },
  {
    on: "gate",
    when: "an alarm has ended the bake",
    pace: alarmed,
    make: async (made) => {
      await say(made, "Ready");
      const at = made.now.toISOString();
      await alarmSays(made, { alarms: { [errors]: { readTo: at, seen: { ALARM: at } } } });
      await made.plan();
    },
    clear: ["retry", "promote rest 1", "reject 1"],
  },
  {
    on: "gate",
    when: "an alarm has ended the bake of a newer rollout",
    pace: alarmed,
    make: async (made) => {
      await say(made, "Ready");
      await goOn(made);
      await made.setSource("bbb");
      await say(made, "Ready");
      const at = made.now.toISOString();
      await alarmSays(made, { alarms: { [errors]: { readTo: at, seen: { ALARM: at } } } });
      await made.plan();
    },
    clear: ["rollback 1", "retry", "promote rest 2", "reject 2"],
  },
  {
    on: "gate",
    when: "the program of a check did not answer in time",
    pace: checked,
    make: async (made) => {
      await say(made, "Ready");
      made.advanceClock(60);
      await made.plan();
    },
    clear: ["retry", "promote rest 1", "reject 1"],
  },
  {
    on: "approval",
    when: "a program has to answer",
    pace: checked,
    make: after("Ready"),
    clear: ["approve", "promote rest 1"],
  },
  {
    on: "gate",
    when: "nobody has approved in time",
    pace: approved,
    make: async (made) => {
      await begin(made);
      made.advanceClock(60);
      await made.plan();
    },
    clear: ["refresh"],
  },
  {
    on: "approval",
    when: "nobody has approved",
    pace: approved,
    make: begin,
    clear: ["approve"],
  },
  {
    on: "approval",
    when: "a rollout is on its way to a stage that asks people",
    pace: { ...rings, stages: [...rings.stages.slice(0, 1), ...(approved.stages ?? [])] },
    make: begin,
    clear: ["approve"],
  },
  {
    on: "catchUps",
    when: "failed catch-ups stop other clusters",
    make: async (made) => {
      await joined("Failed")(made);
      await say(made, "Failed");
    },
    clear: ["reconcile", "pace maxFailures"],
  },
  {
    on: "catchUps",
    when: "failed catch-ups stop no other cluster",
    pace: lax,
    make: joined("Failed"),
    clear: ["reconcile"],
  },
  { on: "slots", when: "all slots are in use", make: begin, clear: ["pace maxConcurrent"] },
  { on: "slots", when: "all slots of a stage are in use", pace: two, make: begin, clear: ["pace maxConcurrent"] },
  { on: "slots", when: "clusters that joined wait", make: joined(), clear: ["pace maxConcurrent"] },
  {
    on: "slots",
    when: "clusters that joined wait for slots of their stage",
    pace: two,
    make: joined(),
    clear: ["pace maxConcurrent"],
  },
  {
    on: "worker",
    when: "no worker begins",
    make: async (made) => {
      await begin(made);
      made.advanceClock(61);
    },
    clear: [],
  },
  { on: "rendering", when: "a rendering is not done", templates: ownPaths, make: (made) => made.plan(), clear: [] },
  {
    on: "reconcile",
    when: "not every cluster has been checked",
    make: async (made) => {
      await made.rollOut();
      await act(made, { reconcile: ana(made.now) });
      await made.plan();
    },
    clear: [],
  },
  {
    on: "source",
    when: "the Source does not exist",
    make: async (made) => {
      await made.rollOut();
      await made.setGroup({}, [{ name: "app", source: "other" }]);
      await begin(made);
    },
    clear: [],
    end: (made) => made.setSource("aaa", "aaa", "other"),
  },
  {
    on: "bake",
    when: "an alarm cannot be read",
    pace: alarmed,
    make: async (made) => {
      await say(made, "Ready");
      const unread = { arn: errors, since: made.now.toISOString(), message: "it does not exist" };
      await alarmSays(made, { alarms: {}, unread });
      await made.plan();
    },
    clear: ["promote rest 1"],
  },
  { on: "bake", when: "all clusters are done", pace: baked, make: after("Ready"), clear: ["promote rest 1"] },
  { on: "stage", when: "the stage before is still updating", pace: rings, make: begin, clear: [] },
];

export async function waitsOf(made: PlannerWorld): Promise<readonly Wait[]> {
  if (made.rows("SyncGroup").length === 0) return [];
  const body = await call(made, "GET", `${group}/rollout`);
  // No test here polls Sources.
  return body.status.waits.filter(({ blocker }: Wait) => !blocker?.startsWith("source/"));
}

export async function call(made: PlannerWorld, method: string, path: string, body: object = {}) {
  const api = apiFixture(made.table, made.table, made.blobs);
  api.setNow(made.now.toISOString());
  const answer = await api.call(method, path, method === "GET" ? undefined : body);
  expect(answer.status, path).toBe(200);
  return answer.body;
}

export async function beginning({ pace = {}, templates = web, make }: Story): Promise<PlannerWorld> {
  const made = await worldOf({ c1: "rest", canary: "canary", other: "rest", rest: "rest" }, pace, templates);
  await make(made);
  return made;
}

/** Every cluster is healthy, and goes on until nothing changes any more. */
export async function goOn(made: PlannerWorld): Promise<void> {
  for (let round = 0; round < 12 && made.rows("SyncGroup").length > 0; round++) {
    await begin(made);
    for (const { cluster } of made.slots()) await made.finish(cluster);
    const kept = made.rows<SyncRow>("SyncOnCluster").filter(({ desired }) => desired.action === "apply");
    for (const { cluster } of kept) await made.observe(cluster, "Ready");
    // For the end of a bake.
    made.advanceClock(1);
    const [group] = made.rows<SyncGroupRow>("SyncGroup");
    if (JSON.stringify(group?.spec.rollout ?? {}).includes(errors))
      await alarmSays(made, { alarms: { [errors]: { readTo: made.now.toISOString(), seen: {} } } });
  }
}
