import { describe, expect, test } from "vitest";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { mostAssignments } from "#shared/fleet/rollout/assignments.ts";
import {
  assignedAtOnce,
  type Candidate,
  decide,
  digestsOf,
  requestOf,
  type Step,
} from "#shared/fleet/rollout/decide.ts";
import type { ClusterRows, Known } from "#shared/fleet/rollout/facts.ts";
import { stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow, RolloutRow, SlotRow, StageRecord, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { rolloutStateOf, stageRecordOf, stageRunInState } from "#test/support/rollout-state-rows.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";
import { groupRow } from "#test/unit/cli/format/overview-fixture.ts";

const owner: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };
const at = "2026-11-21T08:00:00.000Z";
const now = new Date(at);
const row = groupRow({
  namespace: "shop",
  name: "web",
  spec: syncGroupSpec.parse({
    clusters: { selector: { matchLabels: { env: "prod" } } },
    templates: ["app", "db"].map((name) => ({ name, source: "app" })),
    rollout: {
      stages: [{ name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } }, { name: "rest" }],
    },
  }),
});
const fleet: FleetRow = {
  ...keys.fleet("c"),
  type: "Fleet",
  schema: 1,
  version: 1,
  name: "c",
  uid: "c1",
  labels: { env: "prod", ring: "rest" },
  values: {},
};
const rollout: RolloutRow = {
  ...keys.rollout(owner, 2),
  type: "Rollout",
  schema: 1,
  version: 1,
  owner,
  number: 2,
  identity: "2",
  plan: {
    templates: ["app", "db"].map((name) => ({
      name,
      source: "app",
      revision: "r2",
      artifactDigest: "sha256:artifact",
      path: ".",
      apply: applyOptions.parse({}),
    })),
    planHash: "",
  },
  revision: "r2",
  trigger: "plan",
  createdAt: at,
};
const deletion: RolloutRow = { ...rollout, plan: { templates: [], planHash: "", deletion: "delete" } };

const inputs: readonly TargetInput[] = ["app", "db"].map((name) => ({ digest: `i-${name}`, path: "." }));
const done = (name: string): [string, RenderingRow] => [
  `i-${name}`,
  {
    ...keys.rendering(`i-${name}`),
    type: "Rendering",
    schema: 1,
    version: 1,
    input: `i-${name}`,
    artifactDigest: "sha256:artifact",
    path: ".",
    engine: "e",
    state: "Done",
    digest: `sha256:${name}`,
    doneAt: at,
    requestedAt: at,
    tries: 0,
  },
];
const rendered = new Map([done("app"), done("db")]);

const stageRun = stageRunInState({ rollout: 2, stage: "rest", snapshot: 1 });
const older = stageRunInState({ rollout: 1, stage: "rest", snapshot: 0 });
/** Rollout 1, and what rollout 2 gives. */
const had = (template: string) => syncRowOf("c", { template, observed: {} });
const has = (template: string) =>
  syncRowOf("c", { template, desired: { rollout: 2, renderDigest: `sha256:${template}` }, observed: {} });
const busy = (template: string) => syncRowOf("c", { template, observed: { phase: "Applying", reason: "Applying" } });
const slotOf = (attempts: SlotRow["attempts"], more: Partial<SlotRow> = {}): SlotRow => ({
  ...keys.slot(owner, "c"),
  type: "Slot",
  schema: 1,
  version: 1,
  cluster: "c",
  stage: "rest",
  rollout: 1,
  attempts,
  since: at,
  ...more,
});

interface Case {
  readonly candidate?: Partial<Candidate>;
  readonly inputs?: readonly TargetInput[];
  readonly rows?: Partial<ClusterRows>;
  readonly renderings?: ReadonlyMap<string, RenderingRow>;
  readonly newer?: ReadonlyMap<string, string>;
  readonly stages?: readonly StageRecord[];
  readonly freezes?: readonly string[];
  readonly operations?: (typeof row)["operations"];
}

/** The decision about a target of rollout 2, whose cluster has rollout 1. */
function decided(change: Case = {}): Step {
  const stages = change.stages ?? [stageRecordOf("canary", { current: 1 }), stageRecordOf("rest", { current: 1 })];
  const freezes = (change.freezes ?? []).map((name) => ({ name, by: "ana", at, reason: "r" }));
  const known = {
    owner,
    row: { ...row, operations: change.operations ?? {} },
    guarded: { ...row, operations: change.operations ?? {} },
    rolloutState: rolloutStateOf(stages, { last: 2 }),
    freezeState: { freezes, lifted: [] },
    windows: [],
    cordons: [],
    stageRuns: new Map([[stageRunKey(stageRun), stageRun]]),
  } as unknown as Known;
  const syncs = [had("app"), had("db")];
  const candidate: Candidate = {
    target: { cluster: "c", uid: "c1", inputs: change.inputs ?? inputs },
    rows: { cluster: "c", fleet, catchUps: [], syncs, targets: [], left: [], ...change.rows },
    rollout,
    stage: "rest",
    stageRun,
    ...change.candidate,
  };
  const renderings = { rows: change.renderings ?? rendered, newer: change.newer ?? new Map() };
  return decide(candidate, renderings, { known, now });
}

const catchUp: Partial<Candidate> = { stageRun: undefined as never };
const assigned = (step: Step) => (step.do === "assign" ? step.assignments.map(({ name }) => name) : step.do);

describe("a target whose turn has come", () => {
  test("the target is assigned the Syncs whose renderings it lacks", () => {
    expect(assigned(decided())).toEqual(["web.app", "web.db"]);
    expect(assigned(decided({ rows: { syncs: [has("app"), had("db")] } }))).toEqual(["web.db"]);
  });

  const unhealthy = syncRowOf("c", { template: "app", observed: { phase: "Failed", reason: "Failed" } });

  /** Legend: the case, and the decision without its lists. */
  test.each<[string, Case, Partial<Step>]>([
    [
      "whose rows only a newer version can read is left",
      { rows: { newer: "row x" } },
      { do: "away", reason: "NewerRow: row x" },
    ],
    [
      "whose rendering only a newer version can read is left",
      { newer: new Map([["i-db", "rendering y"]]) },
      { do: "away", reason: "NewerRow: rendering y" },
    ],
    [
      "that is no longer registered is skipped",
      { rows: { fleet: undefined } },
      { do: "skip", reason: "no longer registered; its objects stay" },
    ],
    [
      "that was registered anew is skipped",
      { rows: { fleet: { ...fleet, uid: "c2" } } },
      { do: "skip", reason: "registered anew" },
    ],
    [
      "that is no longer selected is skipped",
      { rows: { fleet: { ...fleet, labels: { ring: "rest" } } } },
      { do: "skip", reason: "no longer selected; its objects stay" },
    ],
    [
      "that moved to another stage is skipped",
      { rows: { fleet: { ...fleet, labels: { env: "prod", ring: "canary" } } } },
      { do: "skip", reason: "moved to stage canary" },
    ],
    [
      "that has everything is unchanged",
      { rows: { syncs: [has("app"), has("db")] } },
      { do: "unchanged", reason: "already runs this rendering" },
    ],
    [
      "that failed to render fails",
      { inputs: [{ problem: "no label x" }] },
      { do: "fail", reason: "RenderFailed: no label x" },
    ],
    [
      "that is frozen is held back by the freeze",
      { freezes: ["inc"] },
      { do: "hold", cause: "freeze", name: "inc", requests: [] },
    ],
    [
      "that is frozen and has everything is unchanged",
      { freezes: ["inc"], rows: { syncs: [has("app"), has("db")] } },
      { do: "unchanged" },
    ],
    [
      "that only loses templates keeps their objects",
      { inputs: [{ disabled: true }, { disabled: true }] as never },
      { do: "leave", reason: "is not given web.app, web.db any more; the objects stay" },
    ],
  ])("a target %s", (_what, change, step) => {
    expect(decided(change)).toMatchObject(step);
  });

  test("a target whose renderings are missing is held back, and requests those that nobody has requested", () => {
    const step = decided({ renderings: new Map([done("app")]) });
    expect(step).toMatchObject({
      do: "hold",
      cause: "rendering",
      requests: [{ input: "i-db", source: "app", revision: "r2" }],
    });
    expect(step.do === "hold" && step.requests).toHaveLength(1);
  });

  test("a target with something newer that another stage has passed keeps it, and a catch-up or a deletion does not", () => {
    const stages = [stageRecordOf("canary", { current: 3 }), stageRecordOf("rest", { current: 1 })];
    const newest = syncRowOf("c", { template: "app", desired: { rollout: 3 }, observed: {} });
    const rows = { syncs: [newest, had("db")] };
    expect(decided({ stages, rows })).toMatchObject({
      do: "unchanged",
      reason: "keeps rollout 3, which another stage has passed",
    });
    expect(decided({ stages, rows, candidate: catchUp }).do).toBe("assign");
    const operations = { deletion: { by: "ana", at, number: 1, cascade: "delete" as const } };
    expect(decided({ stages, rows, operations, candidate: { rollout: deletion }, inputs: [] }).do).toBe("assign");
    expect(decided({ rows }).do).toBe("assign");
  });

  test("a failure from before counts as preexisting by the current rollout of the target's own stage", () => {
    const preexisting = (change: Case) => {
      const step = decided(change);
      return step.do === "assign" ? step.assignments.map(({ desired }) => desired.preexisting) : step.do;
    };
    const rows = { syncs: [unhealthy, had("db")] };
    expect(preexisting({ rows })).toEqual([true, true]);
    expect(preexisting({})).toEqual([undefined, undefined]);
    const behind = [stageRecordOf("canary", { current: 1 }), stageRecordOf("rest")];
    expect(preexisting({ rows, stages: behind })).toEqual([undefined, undefined]);
    const first = [stageRecordOf("canary"), stageRecordOf("rest", { current: 1 })];
    expect(preexisting({ rows, stages: first })).toEqual([true, true]);
  });

  test("a target gets only what it lost when the candidate names it, and loses nothing", () => {
    expect(assigned(decided({ candidate: { only: new Set(["web.db"]) } }))).toEqual(["web.db"]);
    const disabled = [inputs[0], { disabled: true }] as never;
    const step = decided({ inputs: disabled });
    expect(step.do === "assign" && step.leaving.map(({ name }) => name)).toEqual(["web.db"]);
    const lost = decided({ inputs: disabled, candidate: { only: new Set(["web.app"]) } });
    expect(lost.do === "assign" && lost.leaving).toEqual([]);
  });

  test("templates of the present spec are not deleted by an older rollout, unless the owner is deleted", () => {
    const plan = { ...rollout.plan, templates: rollout.plan.templates.slice(0, 1) };
    const change: Case = { candidate: { rollout: { ...rollout, plan } }, inputs: inputs.slice(0, 1) };
    expect(assigned(decided(change))).toEqual(["web.app"]);
    const operations = { deletion: { by: "ana", at, number: 1, cascade: "delete" as const } };
    expect(assigned(decided({ ...change, operations }))).toEqual(["web.app", "web.db"]);
  });
});

describe("a deletion of the owner", () => {
  const candidate = { rollout: deletion };

  test("a cluster that is gone is forgotten, so many Syncs at a time", () => {
    expect(decided({ candidate, inputs: [], rows: { fleet: undefined } })).toMatchObject({
      do: "forget",
      reason: "no longer registered; its objects stay",
    });
    const syncs = Array.from({ length: mostAssignments + 5 }, (_, index) => had(`t${index}`));
    const step = decided({ candidate, inputs: [], rows: { fleet: undefined, syncs } });
    expect(step.do === "forget" && step.syncs).toHaveLength(mostAssignments);
  });

  test("a cluster that is no longer selected is deleted from as well", () => {
    const moved = { ...fleet, labels: {} };
    expect(decided({ candidate, inputs: [], rows: { fleet: moved } }).do).not.toBe("skip");
  });
});

describe("a target whose cluster has a slot", () => {
  const both = { "web.app": 1, "web.db": 1 };
  const whole = [has("app"), has("db")];

  /** Legend: the slot, the Syncs, more of the case, and what is decided. */
  test.each<[string, SlotRow, ClusterRows["syncs"], Case, Partial<Step>]>([
    [
      "that is given up waits for its worker",
      slotOf(both, { releasing: { fence: 1 } }),
      whole,
      {},
      { do: "hold", cause: "worker" },
    ],
    ["for this rollout is adopted", slotOf(both), whole, {}, { do: "adopt", slot: slotOf(both) }],
    [
      "for another rollout that may be replaced is assigned",
      slotOf(both),
      [had("app"), had("db")],
      {},
      { do: "assign" },
    ],
    [
      "for another rollout whose worker is busy waits",
      slotOf(both),
      [busy("app"), had("db")],
      {},
      { do: "hold", cause: "worker" },
    ],
    [
      "for another template than the busy one is assigned",
      slotOf({ "web.db": 1 }),
      [busy("app"), had("db")],
      {},
      { do: "assign" },
    ],
    [
      "that is busy and frozen waits for the freeze",
      slotOf(both),
      [busy("app"), had("db")],
      { freezes: ["inc"] },
      { do: "hold", cause: "freeze", name: "inc" },
    ],
    [
      "of a stage run in progress stays with it",
      slotOf(both, { stageRun: { rollout: 2, stage: "rest", snapshot: 1 } }),
      whole,
      {},
      { do: "hold", cause: "worker" },
    ],
    [
      "of a stage run that is over is adopted",
      slotOf(both, { stageRun: { rollout: older.rollout, stage: "rest", snapshot: 0 } }),
      whole,
      {},
      { do: "adopt" },
    ],
    ["is left to it by a catch-up", slotOf(both), whole, { candidate: catchUp }, { do: "hold", cause: "worker" }],
  ])("a target with a slot %s", (_what, slot, syncs, change, step) => {
    expect(decided({ ...change, rows: { slot, syncs } })).toMatchObject(step);
  });
});

test("the digests of a target are those of its rendered inputs", () => {
  const target = { cluster: "c", uid: "c1", inputs: [...inputs, { problem: "p" }] };
  expect(digestsOf(target)).toEqual(["i-app", "i-db"]);
});

test("a request names the sources of the values that the build reads, and only those", () => {
  const [template] = rollout.plan.templates;
  if (template === undefined) throw new Error("there is a template");
  const target = { cluster: "c", uid: "c1", inputs };
  const besides = [{ name: "values", revision: "v1", artifactDigest: "sha256:values" }] as never;
  const plan = { ...rollout.plan, templates: [{ ...template, besides }] };
  expect(requestOf({ rollout: { ...rollout, plan }, target }, 0)).toMatchObject([
    { input: "i-app", source: "app", revision: "r2", besides: [] },
  ]);
  expect(requestOf({ rollout, target }, 9)).toEqual([]);
  expect(requestOf({ rollout, target: { ...target, inputs: [{ problem: "p" }] } }, 0)).toEqual([]);
});

test("the rows that a step writes at once are its assignments, paused attempts and leaving Syncs", () => {
  const rows: ClusterRows = {
    cluster: "c",
    fleet,
    catchUps: [],
    syncs: [had("app"), had("db")],
    targets: [],
    left: [],
  };
  const step = decided({ inputs: [inputs[0], { disabled: true }] as never });
  expect(assignedAtOnce(step, rows)).toBe(2);
  expect(assignedAtOnce({ do: "forget", syncs: rows.syncs, reason: "r" }, rows)).toBe(2);
  expect(assignedAtOnce({ do: "leave", leaving: rows.syncs.slice(1), reason: "r" }, rows)).toBe(1);
  expect(assignedAtOnce({ do: "skip", reason: "r" }, rows)).toBe(0);
});
