import { describe, expect, test } from "vitest";
import { rolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { applyOptions, syncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import {
  type Assigning,
  assignmentsFor,
  isGiven,
  type RenderingClock,
  takenBack,
  targetRenderings,
} from "#shared/fleet/rollout/assignments.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const owner: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };
const at = "2026-11-21T08:00:00.000Z";
const now = new Date(at);
const apply = applyOptions.parse({});

function rendering(input: string, more: Partial<RenderingRow>): [string, RenderingRow] {
  const row: RenderingRow = {
    ...keys.rendering(input),
    type: "Rendering",
    schema: 1,
    version: 1,
    input,
    artifactDigest: "sha256:a",
    path: ".",
    engine: "e",
    state: "Pending",
    requestedAt: at,
    tries: 0,
    ...more,
  };
  return [input, row];
}

const done = (input: string, doneAt = at) => rendering(input, { state: "Done", digest: `sha256:of-${input}`, doneAt });
const failure = { code: "RenderFailed", message: "no kind", permanent: true };

describe("the renderings of a target", () => {
  const clock: RenderingClock = { owner, now, progressSeconds: 600 };
  const of = (...inputs: readonly string[]) => inputs.map((digest) => ({ digest, path: "." }));
  const waiting = [owner];

  test.each<[string, readonly string[], readonly [string, RenderingRow][], Partial<RenderingClock>, object]>([
    [
      "that all exist",
      ["a", "b"],
      [done("a"), done("b")],
      {},
      { kind: "ready", digests: ["sha256:of-a", "sha256:of-b"] },
    ],
    ["of no template", [], [], {}, { kind: "ready", digests: [] }],
    [
      "with a left-out object",
      ["a", "b"],
      [done("a"), rendering("b", { state: "Done", digest: "sha256:b", doneAt: at, leftOut: ["Pod t"] })],
      {},
      { kind: "ready", digests: ["sha256:of-a", "sha256:b"], leftOut: new Map([["sha256:b", ["Pod t"]]]) },
    ],
    ["that were not requested", ["a", "b"], [done("a")], {}, { kind: "pending", unasked: [1] }],
    ["that were requested", ["a"], [rendering("a", { waiting })], {}, { kind: "pending", unasked: [] }],
    ["that another owner requested", ["a"], [rendering("a", {})], {}, { kind: "pending", unasked: [0] }],
    [
      "that failed",
      ["a"],
      [rendering("a", { state: "Failed", failure })],
      {},
      { kind: "failed", reason: "RenderFailed: no kind" },
    ],
    [
      "of which one failed",
      ["a", "b"],
      [done("a"), rendering("b", { state: "Failed", failure })],
      {},
      { kind: "failed" },
    ],
    [
      "that are tried again later",
      ["a"],
      [rendering("a", { state: "Failed", failure, retryAt: later(at, 300) })],
      {},
      { kind: "failed", reason: "RenderFailed: no kind" },
    ],
    [
      "that were to be tried again later, before a reconcile",
      ["a"],
      [rendering("a", { state: "Failed", failure, retryAt: later(at, 300) })],
      { retriedAt: later(at, 1) },
      { kind: "pending", unasked: [0] },
    ],
    [
      "that failed permanently before a reconcile",
      ["a"],
      [rendering("a", { state: "Failed", failure })],
      { retriedAt: later(at, 1) },
      { kind: "pending", unasked: [0] },
    ],
    [
      "that failed permanently after a reconcile",
      ["a"],
      [rendering("a", { state: "Failed", failure })],
      { retriedAt: at },
      { kind: "failed" },
    ],
    [
      "that no worker starts",
      ["a"],
      [rendering("a", { waiting })],
      { now: new Date(later(at, 90_000)) },
      { kind: "pending" },
    ],
    [
      "that were started in time",
      ["a"],
      [rendering("a", { waiting, begunAt: later(at, 500) })],
      { now: new Date(later(at, 1099)) },
      { kind: "pending" },
    ],
    [
      "that were started and did not end in time",
      ["a"],
      [rendering("a", { waiting, begunAt: later(at, 500) })],
      { now: new Date(later(at, 1100)) },
      { kind: "failed", reason: `RenderFailed: not rendered since ${later(at, 500)}` },
    ],
    [
      "that were started and failed to end in time",
      ["a"],
      [rendering("a", { waiting, begunAt: at, failure })],
      { now: new Date(later(at, 1000)) },
      { kind: "failed", reason: `RenderFailed: not rendered since ${at}: no kind` },
    ],
    [
      "that were started long ago, and are done",
      ["a"],
      [rendering("a", { state: "Done", digest: "sha256:x", begunAt: at, doneAt: later(at, 80_000) })],
      { now: new Date(later(at, 90_000)) },
      { kind: "ready" },
    ],
    ["that were done within a day", ["a"], [done("a")], { now: new Date(later(at, 86_399)) }, { kind: "ready" }],
    [
      "that were done longer ago",
      ["a", "b"],
      [done("a", later(at, 10)), done("b")],
      { now: new Date(later(at, 86_400)) },
      { kind: "pending", unasked: [1] },
    ],
    [
      "that were done longer ago, and renewed within a day",
      ["a"],
      [rendering("a", { state: "Done", digest: "sha256:x", doneAt: at, keptAt: later(at, 86_400) })],
      { now: new Date(later(at, 90_000)) },
      { kind: "ready", digests: ["sha256:x"] },
    ],
    [
      "whose end was not recorded",
      ["a"],
      [rendering("a", { state: "Done", digest: "sha256:x", begunAt: at })],
      { now: new Date(later(at, 1100)) },
      { kind: "pending", unasked: [0] },
    ],
  ])("the state of the renderings %s", (_name, inputs, rows, more, expected) => {
    expect(targetRenderings(of(...inputs), new Map(rows), { ...clock, ...more })).toMatchObject(expected);
  });

  test("renderings of which one has no valid input have failed", () => {
    const inputs = [{ problem: "path: cluster a has no label x" }];
    const reason = "RenderFailed: path: cluster a has no label x";
    expect(targetRenderings(inputs, new Map(), clock)).toEqual({ kind: "failed", reason });
  });
});

const template = (name: string) => ({ ...syncTemplate.parse({ name, source: "app" }) });

function rollout(number: number, ...templates: readonly string[]): RolloutRow {
  return {
    ...keys.rollout(owner, number),
    type: "Rollout",
    schema: 1,
    version: 1,
    owner,
    number,
    identity: `${number}`,
    plan: {
      templates: templates.map((name) => ({
        name,
        source: "app",
        revision: `r${number}`,
        artifactDigest: "sha256:a",
        path: ".",
        apply,
      })),
      planHash: "",
    },
    revision: `r${number}`,
    trigger: "plan",
    createdAt: at,
  };
}

const relation = (...templates: readonly string[]) => ({
  templates: templates.map(template),
  rollout: rolloutStrategy.parse({}),
});

/** Rollout 2 with the desired templates, rendered as `sha256:new`; the cluster has the given Syncs. */
function assigning(
  { desired, has }: { readonly desired: readonly string[]; readonly has: Assigning["syncs"] },
  more: Partial<Assigning> = {},
): Assigning {
  return {
    owner,
    cluster: "c1",
    rollout: rollout(2, ...desired),
    relation: relation(...desired),
    inputs: desired.map((name) => ({ digest: `in-${name}`, path: "." })),
    digests: desired.map(() => "sha256:new"),
    syncs: has,
    now,
    ...more,
  };
}

const has = (name: string, renderDigest: string, phase: "Ready" | "Failed" | "Gone" = "Ready") =>
  syncRowOf("c1", { template: name, desired: { renderDigest, attempt: 4 }, observed: { phase } });

/** The name of each Sync, and what the assignment does to it. */
const given = (of: Assigning) =>
  assignmentsFor(of).map(({ name, desired }) => `${desired.action} ${name} ${desired.attempt}`);

describe("the assignments of a cluster", () => {
  test.each<[string, Assigning, readonly string[]]>([
    [
      "are everything if it has nothing",
      assigning({ desired: ["app", "db"], has: [] }),
      ["apply web.app 1", "apply web.db 1"],
    ],
    ["leave out what it has", assigning({ desired: ["app"], has: [has("app", "sha256:new")] }), []],
    [
      "replace another rendering",
      assigning({ desired: ["app"], has: [has("app", "sha256:old")] }),
      ["apply web.app 5"],
    ],
    [
      "repeat a rendering that is not ready",
      assigning({ desired: ["app"], has: [has("app", "sha256:new", "Failed")] }),
      ["apply web.app 5"],
    ],
    [
      "remove a Sync that is no longer desired",
      assigning({ desired: ["app"], has: [has("app", "sha256:new"), has("old", "x")] }),
      ["delete web.old 5"],
    ],
    [
      "keep a Sync that an older rollout lacks and the spec has by now",
      assigning(
        { desired: ["app"], has: [has("app", "sha256:new"), has("db", "x")] },
        { relation: relation("app", "db") },
      ),
      [],
    ],
    [
      "include a template of an older rollout, although the spec has dropped it",
      assigning({ desired: ["app"], has: [] }, { relation: relation() }),
      ["apply web.app 1"],
    ],
    [
      "leave out a forgotten Sync",
      assigning({ desired: [], has: [syncRowOf("c1", { template: "old", desired: { action: "orphan" } })] }),
      [],
    ],
    [
      "remove everything when the owner is deleted, whatever the spec says",
      assigning({ desired: [], has: [has("app", "sha256:new")] }, { relation: undefined }),
      ["delete web.app 5"],
    ],
  ])("the assignments of a cluster %s", (_name, of, expected) => {
    expect(given(of)).toEqual(expected);
  });

  test("an assignment names the revision, the input and the Source of its rendering", () => {
    const [first] = assignmentsFor(assigning({ desired: ["app"], has: [] }));
    expect(first).toEqual({
      cluster: "c1",
      name: "web.app",
      desired: {
        action: "apply",
        attempt: 1,
        revision: "r2",
        renderDigest: "sha256:new",
        input: "in-app",
        source: "app",
        apply,
        rollout: 2,
        assignedAt: at,
      },
    });
  });

  test("an assignment names the first few objects that were left out", () => {
    const texts = Array.from({ length: 8 }, (_, index) => `Pod t${index}`);
    const leftOutOf = (leftOut: readonly string[]) =>
      assignmentsFor(assigning({ desired: ["app"], has: [] }, { leftOut: new Map([["sha256:new", leftOut]]) }))[0]
        ?.desired.leftOut;
    expect(leftOutOf(["Pod t"])).toEqual(["Pod t"]);
    expect(leftOutOf(texts)).toEqual(["Pod t0", "Pod t1", "Pod t2", "Pod t3", "Pod t4", "and 3 more"]);
  });

  test("an assignment starts at a time of its own within the jitter, and always at the same time", () => {
    const jitter = { ...relation("app"), rollout: rolloutStrategy.parse({ jitter: "15m" }) };
    const starts = Array.from({ length: 200 }, (_, index) => {
      const of = { ...assigning({ desired: ["app"], has: [] }, { relation: jitter }), cluster: `c${index}` };
      const [once, twice] = [assignmentsFor(of)[0], assignmentsFor(of)[0]];
      expect(once?.desired.startAt).toBe(twice?.desired.startAt);
      return once?.desired.startAt ?? "";
    });
    expect(starts.every((start) => start > at && start <= later(at, 900))).toBe(true);
    expect(new Set(starts).size).toBeGreaterThan(100);
  });

  test("an assignment without jitter has no start time", () => {
    expect(assignmentsFor(assigning({ desired: ["app"], has: [] }))[0]?.desired).not.toHaveProperty("startAt");
  });
});

describe("the removal of a Sync", () => {
  const removed = (from = has("old", "sha256:old")) => {
    const [removal] = assignmentsFor(assigning({ desired: [], has: [from] }));
    if (removal === undefined) throw new Error("nothing is removed");
    return { ...from, desired: { ...from.desired, ...removal.desired } };
  };

  test("a removal remembers the former rendering, and can be withdrawn to it", () => {
    const row = removed();
    expect(row.desired).toMatchObject({ action: "delete", instead: { renderDigest: "sha256:old", rollout: 1 } });
    const back = takenBack(row, new Date(later(at, 5)));
    expect(back).toMatchObject({
      action: "apply",
      renderDigest: "sha256:old",
      rollout: 1,
      attempt: 6,
      assignedAt: later(at, 5),
      apply,
    });
    expect(back).not.toHaveProperty("instead");
  });

  test("a removal that is assigned once more remembers the same rendering", () => {
    const { renderDigest: _digest, ...desired } = removed().desired;
    const again = removed({ ...removed(), desired });
    expect(again.desired.instead).toMatchObject({ renderDigest: "sha256:old", rollout: 1 });
    expect(takenBack(again, now)?.renderDigest).toBe("sha256:old");
  });

  test("an assignment that is not a removal cannot be withdrawn", () => {
    expect(takenBack(has("app", "sha256:new"), now)).toBeUndefined();
  });
});

test.each<[string, Assigning, boolean]>([
  [
    "that has its rendering, even if that failed",
    assigning({ desired: ["app"], has: [has("app", "sha256:new", "Failed")] }),
    true,
  ],
  ["that has another rendering", assigning({ desired: ["app"], has: [has("app", "sha256:old")] }), false],
  ["that has nothing", assigning({ desired: ["app"], has: [] }), false],
  ["that has one of two Syncs", assigning({ desired: ["app", "db"], has: [has("app", "sha256:new")] }), false],
  [
    "that has one Sync too many",
    assigning({ desired: ["app"], has: [has("app", "sha256:new"), has("old", "x")] }),
    false,
  ],
  [
    "whose surplus Sync is to be deleted",
    assigning({
      desired: ["app"],
      has: [has("app", "sha256:new"), syncRowOf("c1", { template: "old", desired: { action: "delete" } })],
    }),
    true,
  ],
])("a cluster %s was given the rollout: %s", (_name, of, expected) => {
  expect(isGiven(of)).toBe(expected);
});
