/** All states of a cluster, a Sync, a group and a rollout: an object is shown as good only if nothing is wrong with it. */

import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import {
  clusterObject,
  groupSyncObject,
  sourceObject,
  syncGroupObject,
  userSyncObject,
} from "#shared/fleet/api/objects.ts";
import { rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import { rolloutPhases } from "#shared/fleet/api/rollout-phase.ts";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { syncSpec } from "#shared/fleet/kinds/sync-template.ts";
import { ownerStatus, type StatusFacts } from "#shared/fleet/rollout/owner-status.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type {
  ClusterRow,
  Operations,
  OwnerState,
  SourceRow,
  SyncGroupRow,
  UserSyncRow,
} from "#shared/fleet/rows/object-rows.ts";
import type { StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import type { Desired, Phase, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { OutOfSync } from "#shared/fleet/sync/sync-state.ts";
import { objectState } from "#shared/words/object-state.ts";
import { isGood, needsSomebody, stateRank, stateWords } from "#shared/words/state-words.ts";
import {
  rolloutRow,
  rolloutStateRow,
  stageRecord,
  stageRunRow,
  syncRow,
} from "#test/unit/functions/api/row-fixture.ts";

const now = new Date("2026-11-20T08:01:00Z");
const common = {
  pk: "",
  sk: "",
  schema: 1,
  version: 1,
  uid: "uid",
  labels: {},
  annotations: {},
  generation: 1,
  createdAt: "2026-11-20T07:00:00.000Z",
  operations: {},
} as const;
const act = { by: "ana", at: "2026-11-20T07:30:00.000Z", number: 1 };

const group: SyncGroupRow = {
  ...common,
  type: "SyncGroup",
  namespace: "payments",
  name: "shop",
  spec: syncGroupSpec.parse({ clusters: { all: true }, templates: [{ name: "web", source: "app" }] }),
  status: { conditions: [] },
};
const sync: UserSyncRow = {
  ...common,
  type: "Sync",
  namespace: "payments",
  name: "own",
  spec: syncSpec.parse({ cluster: "c1", source: "app" }),
  status: { conditions: [] },
};

const phases = ["Applying", "Verifying", "Ready", "Retrying", "Failed", "Unreachable", "Reachable", "Gone"] as const;
const actions: readonly Desired["action"][] = ["apply", "delete", "orphan"];
const behind: OutOfSync = { revision: "main@sha1:new", rollout: 13, reason: "the rollout is halted" };
const ownerStates = [
  "Complete",
  "Degraded",
  "Reconciling",
  "NoClusters",
  "ClusterNotFound",
  "RollingBack",
  "Rolling",
  "Waiting",
  "Halted",
  "Suspended",
  "Stalled",
  "Deleting",
] as const satisfies readonly OwnerState[];

const held: readonly (readonly [string, Operations])[] = [
  ["free", {}],
  ["suspended", { suspended: act }],
  ["deleted", { deletion: { ...act, cascade: "delete" } }],
];

function rowIn(phase: Phase, action: Desired["action"], about: "newest" | "earlier"): SyncRow {
  const row = syncRow("c1", "shop.web", { phase });
  const attempt = row.desired.attempt + (about === "newest" ? 0 : 1);
  return { ...row, desired: { ...row.desired, action, attempt } };
}

/** A combination of facts, and the fault in the state that it is shown in. */
type Wrong = string;

function wordOf(
  said: { readonly word: string },
  desired: { readonly good: boolean; readonly legend: string },
): Wrong[] {
  if (isGood(said.word) !== desired.good) return [`${desired.legend}: ${said.word}`];
  return stateWords().includes(said.word) ? [] : [`${desired.legend}: nobody can ask for ${said.word}`];
}

test("a group's Sync is good if its newest attempt is ready and its cluster has the desired rollout", () => {
  const wrong: Wrong[] = [];
  for (const phase of phases) {
    for (const action of actions) {
      for (const about of ["newest", "earlier"] as const) {
        for (const late of [undefined, behind]) {
          const legend = `${action}, ${phase} in the ${about} attempt${late === undefined ? "" : ", and behind"}`;
          const said = objectState(groupSyncObject(rowIn(phase, action, about), group, late));
          const good = phase === "Ready" && action !== "orphan" && about === "newest" && late === undefined;
          wrong.push(...wordOf(said, { good, legend }));
          if (said.word === "OutOfSync") expect(said.remark).toContain("desired main@sha1:new: the rollout is halted");
        }
      }
    }
  }
  expect(wrong).toEqual([]);
});

test("a user's Sync is good if it is ready and its planner is not stalled", () => {
  const there = phases.map((phase) => rowIn(phase, "apply", "newest"));
  const rows = [undefined, ...there, rowIn("Ready", "orphan", "newest")];
  const stuck: readonly OwnerState[] = ["Halted", "Stalled", "Waiting"];
  const wrong: Wrong[] = [];
  for (const state of ownerStates) {
    for (const row of rows) {
      for (const [what, operations] of held) {
        const legend = `${what}, ${state}, ${row?.observed?.phase ?? "on no cluster"} (${row?.desired.action})`;
        const plan = { state, observedGeneration: 1, observedOperation: 1, conditions: [] };
        const said = objectState(userSyncObject({ ...sync, operations, status: plan }, row));
        const ready = row?.desired.action === "apply" && row.observed?.phase === "Ready";
        wrong.push(...wordOf(said, { good: what === "free" && ready && !stuck.includes(state), legend }));
      }
    }
  }
  expect(wrong).toEqual([]);
});

describe("a Sync whose attempt the planner has ended as failed", () => {
  const paused = { reason: "DeadlineExceeded", at: "2026-11-20T08:00:30.000Z" };
  const conditionsOf = (row: SyncRow) =>
    Object.fromEntries(
      groupSyncObject(row, group).status.conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]),
    );

  test("the Sync has failed since the planner ended its attempt, and not since its worker began to verify", () => {
    const verifying = { ...rowIn("Verifying", "apply", "newest"), paused };
    expect(objectState(groupSyncObject(verifying, group))).toMatchObject({ word: "Failed", since: paused.at });
  });

  test("a Sync that its worker found failed before has failed since then", () => {
    const failed = { ...rowIn("Failed", "apply", "newest"), paused };
    expect(objectState(groupSyncObject(failed, group))).toMatchObject({ since: "2026-11-20T07:51:00.000Z" });
  });

  test("a Sync whose rollout was rejected before its begin says by whom, and needs nobody", () => {
    const reason = "rollout 2 rejected by ana: INC-1";
    const rejected = { ...rowIn("Ready", "apply", "earlier"), paused: { ...paused, reason, rejected: true as const } };
    const state = objectState(groupSyncObject(rejected, group));
    expect(state).toMatchObject({ word: "Rejected", since: paused.at, remark: reason });
    expect(needsSomebody(state.word)).toBe(false);
  });

  test("a Sync whose zone is down says so since then, until a worker has reported about the cluster", () => {
    const reason = "ZoneDown: zone spoke: no worker has run since 2026-11-20T07:50:00.000Z";
    const away = { ...paused, reason, zone: "spoke" };
    for (const about of ["newest", "earlier"] as const)
      expect(
        objectState(groupSyncObject({ ...rowIn("Verifying", "apply", about), paused: away }, group)),
      ).toMatchObject({
        word: "Unreachable",
        since: paused.at,
        remark: reason,
      });
    const reported = { ...rowIn("Unreachable", "apply", "newest"), paused: away };
    const { since, remark } = objectState(groupSyncObject(reported, group));
    expect(since).not.toBe(paused.at);
    expect(remark).not.toContain("ZoneDown");
  });

  test("the conditions of a Sync whose zone is down name the zone, and it is not stalled", () => {
    const row = rowIn("Ready", "apply", "earlier");
    const conditions = (["Ready", "Reconciling", "Stalled"] as const).map((type) => ({
      type,
      status: type === "Stalled" ? ("False" as const) : ("True" as const),
      reason: "Ready",
      message: "",
      since: common.createdAt,
    }));
    const before = { ...row, ...defined({ observed: row.observed && { ...row.observed, conditions } }) };
    const reason = "ZoneDown: zone spoke: no worker has ever run";
    const sync = groupSyncObject({ ...before, paused: { ...paused, reason, zone: "spoke" } }, group);
    expect(sync.status.conditions).toEqual([
      {
        type: "Ready",
        status: "Unknown",
        reason: "ZoneDown",
        message: "zone spoke: no worker has ever run",
        since: paused.at,
      },
      { type: "Reconciling", status: "False", reason: "Settled", message: "", since: paused.at },
      conditions[2],
    ]);
  });

  test("the end of the attempt stays the time of the failure when the worker reports it later", () => {
    const row = rowIn("Failed", "apply", "newest");
    const reported = {
      ...row,
      paused,
      ...defined({ observed: row.observed && { ...row.observed, since: "2026-11-20T08:00:36.000Z" } }),
    };
    expect(objectState(groupSyncObject(reported, group))).toMatchObject({ since: paused.at });
  });

  test("the Sync is stalled and no longer reconciling, also before its worker reports that", () => {
    const row = rowIn("Verifying", "apply", "newest");
    const conditions = [
      { type: "Ready", status: "False", reason: "Verifying", message: "", since: common.createdAt },
      { type: "Reconciling", status: "True", reason: "Verifying", message: "", since: common.createdAt },
      { type: "Stalled", status: "False", reason: "Verifying", message: "", since: common.createdAt },
    ] as const;
    const verifying = { ...row, ...defined({ observed: row.observed && { ...row.observed, conditions } }) };
    expect(conditionsOf(verifying)).toEqual({
      Ready: "False Verifying",
      Reconciling: "True Verifying",
      Stalled: "False Verifying",
    });
    expect(conditionsOf({ ...verifying, paused })).toEqual({
      Ready: "False Verifying",
      Reconciling: "False Settled",
      Stalled: "True Paused",
    });
    expect(conditionsOf({ ...verifying, paused: { ...paused, freeze: "inc-1" } })).toEqual(conditionsOf(verifying));
  });
});

describe("the state of a group", () => {
  test("a group is in its state since the state began, also when it was not ready before", () => {
    const ready = { type: "Ready", status: "False", reason: "Halted", message: "", since: common.createdAt } as const;
    const since = "2026-11-20T08:00:59.000Z";
    const status = { state: "Halted", observedGeneration: 1, conditions: [ready] } as const;
    const sinceOf = (more: object) => objectState(syncGroupObject({ ...group, status: { ...status, ...more } })).since;
    expect([sinceOf({ stateSince: since }), sinceOf({})]).toEqual([since, common.createdAt]);
  });

  const counts = [
    { selected: 0, ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 },
    { selected: 2, ready: 2, changing: 0, failed: 0, unreachable: 0, waiting: 0 },
    { selected: 2, ready: 1, changing: 1, failed: 0, unreachable: 0, waiting: 0 },
    { selected: 2, ready: 1, changing: 0, failed: 1, unreachable: 0, waiting: 0 },
    { selected: 2, ready: 1, changing: 0, failed: 0, unreachable: 1, waiting: 0 },
    { selected: 2, ready: 1, changing: 0, failed: 0, unreachable: 0, waiting: 1 },
  ];
  const rollouts: readonly (StageRunPhase | undefined)[] = [
    undefined,
    "Updating",
    "Halted",
    "NothingVerified",
    "TooManyUnreachable",
    "Passed",
  ];

  function* everything() {
    for (const [what, operations] of held) {
      for (const rollout of rollouts) {
        for (const settled of [undefined, ...counts]) {
          for (const missing of [[], ["nobody"]]) {
            for (const answered of [undefined, false, true]) {
              for (const source of ["there", "missing"]) {
                yield { what, operations, rollout, settled, missing, answered, source };
              }
            }
          }
        }
      }
    }
  }

  function factsOf(about: ReturnType<typeof everything> extends Generator<infer One> ? One : never): StatusFacts {
    const { rollout, settled, missing, answered, source } = about;
    const { rolloutState, stageRuns } = openWith(rollout);
    return {
      now,
      desired:
        source === "there"
          ? { ok: true, plan: { templates: [], planHash: "sha256:1" } }
          : { ok: false, reason: "SourceNotFound", message: "no Source" },
      ...defined({ settled }),
      rolloutState: { ...rolloutState, missing, ...(answered === true ? { handledReconcile: 1 } : {}) },
      stageRuns,
    };
  }

  /** A rollout state with one stage, whose stage run is in this phase. */
  function openWith(phase: StageRunPhase | undefined): Pick<StatusFacts, "rolloutState" | "stageRuns"> {
    if (phase === undefined) return { rolloutState: rolloutStateRow([], { last: 12 }), stageRuns: new Map() };
    const stageRun = stageRunRow({ rollout: 12, stage: "all" }, ["Succeeded"], {
      phase,
      reason: phase,
      message: phase,
    });
    return {
      rolloutState: rolloutStateRow([stageRecord(stageRun)]),
      stageRuns: new Map([[stageRunKey(stageRun), stageRun]]),
    };
  }

  test("a group is good if all of its clusters are ready and nothing is left to do", () => {
    const wrong: Wrong[] = [];
    for (const about of everything()) {
      const { what, rollout, settled, missing, answered, source } = about;
      const operations = { ...about.operations, ...(answered === undefined ? {} : { reconcile: act }) };
      const row = { ...group, operations };
      const status = ownerStatus(row, factsOf(about));
      const isOpen = rollout !== undefined && rollout !== "Passed";
      const alone = what === "free" && !isOpen && missing.length === 0 && answered !== false;
      const good = alone && settled?.selected === 2 && settled.ready === 2 && source === "there";
      const legend = JSON.stringify(about);
      const [condition] = status.conditions;
      if ((status.state === "Complete") !== good) wrong.push(`${legend}: ${status.state}`);
      if (condition?.status !== (good ? "True" : "False")) wrong.push(`${legend}: Ready ${condition?.status}`);
      if (!good && condition?.message === "" && settled !== undefined) wrong.push(`${legend}: no reason`);
      wrong.push(...wordOf(objectState(syncGroupObject({ ...row, status })), { good, legend }));
      // The status is not about a spec or a request that the planner has not seen.
      const later = { ...operations, reconcile: { ...act, number: 9 } };
      for (const changed of [{ generation: 2 }, { operations: later }]) {
        const said = objectState(syncGroupObject({ ...row, status, ...changed }));
        wrong.push(...wordOf(said, { good: false, legend: `${legend}, and ${JSON.stringify(changed)}` }));
      }
    }
    expect(wrong).toEqual([]);
  });
});

test("a cluster is good if it answers, has the expected identity, and all of its Syncs are good", () => {
  const row: ClusterRow = { ...common, type: "Cluster", name: "c1", spec: {}, status: { conditions: [] } };
  const reachable = (status: "True" | "False", reason: string) => [
    { type: "Reachable", status, reason, message: "", since: common.createdAt },
  ];
  const contacts: readonly (readonly [string, ClusterRow["status"]])[] = [
    ["never asked", { conditions: [] }],
    ["away", { conditions: reachable("False", "Unreachable") }],
    ["another one", { mismatch: "other", conditions: reachable("False", "IdentityMismatch") }],
    ["there", { conditions: reachable("True", "Answers") }],
  ];
  const wrong: Wrong[] = [];
  for (const [what, status] of contacts) {
    for (const phase of [undefined, ...phases]) {
      for (const late of [undefined, behind]) {
        const ready = groupSyncObject(rowIn("Ready", "apply", "newest"), group);
        const other = phase === undefined ? [] : [groupSyncObject(rowIn(phase, "apply", "newest"), group, late)];
        const said = objectState(clusterObject({ ...row, status }, "starling", { syncs: [ready, ...other] }));
        const well = phase === undefined || (phase === "Ready" && late === undefined);
        const legend = `${what}, with ${phase ?? "nothing"}${late === undefined ? "" : ", behind"} beside what is ready`;
        wrong.push(...wordOf(said, { good: what === "there" && well, legend }));
        if (what === "there" && !well) expect(said.remark).toContain("payments/shop.web");
      }
    }
  }
  expect(wrong).toEqual([]);
});

test.each<[string, StageRunPhase, number, "plan" | "deletion", string, boolean]>([
  ["is updating", "Updating", 1, "plan", "Rolling", false],
  ["is halted", "Halted", 1, "plan", "Halted", false],
  ["has nothing verified", "NothingVerified", 1, "plan", "Stalled", false],
  ["has too many unreachable clusters", "TooManyUnreachable", 1, "plan", "Stalled", false],
  ["was superseded", "Superseded", 1, "plan", "Superseded", false],
  ["passed", "Passed", 1, "plan", "Complete", true],
  ["passed without a cluster", "Passed", 0, "plan", "NoClusters", false],
  ["deleted from no cluster", "Passed", 0, "deletion", "Complete", true],
])("the state of a rollout that %s", (_what, phase, size, trigger, expected, good) => {
  const stageRun = stageRunRow({ rollout: 12, stage: "all" }, [], { phase, size });
  const stage = stageRecord(stageRun);
  const { updatingTo: _moving, ...left } = stage;
  const stages = [phase === "Superseded" ? { ...left, current: 13 } : stage];
  const { word } = objectState(rolloutObject({ rollout: rolloutRow(12, { trigger }), stages, stageRuns: [stageRun] }));
  expect(word).toBe(expected);
  expect(isGood(word)).toBe(good);
  expect(stateWords()).toContain(word);
});

test("the remark of a rejected rollout says once that it was rejected", () => {
  const rejected = [{ rollout: 12, by: "ana", at: common.createdAt, reason: "payments fail" }];
  const object = rolloutObject({ rollout: rolloutRow(12, {}), stages: [], stageRuns: [], rejected });
  expect(objectState(object)).toMatchObject({ word: "Rejected", remark: "rejected by ana: payments fail" });
});

test.each(rolloutPhases)("a rollout's phase %s is one of the words that lists accept", (phase) => {
  expect(stateWords()).toContain(phase);
});

test.each<[string, Partial<SourceRow>, string]>([
  ["is ready", {}, "Ready"],
  ["has a spec that was not resolved yet", { generation: 2 }, "Reconciling"],
  ["was asked for a poll that did not happen yet", { operations: { reconcile: { ...act, number: 4 } } }, "Reconciling"],
  ["is suspended", { operations: { suspended: act } }, "Suspended"],
])("the state of a Source that %s", (_legend, more, word) => {
  const row: SourceRow = {
    ...common,
    type: "Source",
    namespace: "payments",
    name: "app",
    spec: { git: { url: "https://github.com/acme/app" }, paths: ["."], interval: "5m" },
    status: {
      observedGeneration: 1,
      handledReconcile: 3,
      conditions: [{ type: "Ready", status: "True", reason: "Succeeded", message: "", since: common.createdAt }],
    },
  };
  expect(objectState(sourceObject({ ...row, ...more })).word).toBe(word);
});

test("a suspended Source still shows what is wrong with it", () => {
  const row: SourceRow = {
    ...common,
    type: "Source",
    namespace: "payments",
    name: "app",
    operations: { suspended: act },
    spec: { git: { url: "https://github.com/acme/app" }, paths: ["."], interval: "5m" },
    status: {
      conditions: [
        { type: "Ready", status: "False", reason: "ArtifactLost", message: "resume it", since: common.createdAt },
      ],
    },
  };
  expect(objectState(sourceObject(row))).toMatchObject({
    word: "Suspended",
    remark: expect.stringMatching(/^by .*; ArtifactLost: resume it$/),
  });
});

test("states that need attention come first, and good states come last", () => {
  const ranks = [
    "Failed",
    "Halted",
    "ClusterNotFound",
    "Degraded",
    "OutOfSync",
    "NoClusters",
    "RollingBack",
    "Rolling",
    "Complete",
    "Ready",
  ];
  expect(ranks.toSorted((a, b) => stateRank(a) - stateRank(b))).toEqual(ranks);
});
