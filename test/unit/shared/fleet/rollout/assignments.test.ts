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

describe("renderings of a target", () => {
  const clock: RenderingClock = { owner, now, progressSeconds: 600 };
  const of = (...inputs: readonly string[]) => inputs.map((digest) => ({ digest, path: "." }));
  const waiting = [owner];

  test.each<[string, readonly string[], readonly [string, RenderingRow][], Partial<RenderingClock>, object]>([
    ["all there", ["a", "b"], [done("a"), done("b")], {}, { kind: "ready", digests: ["sha256:of-a", "sha256:of-b"] }],
    ["of no template", [], [], {}, { kind: "ready", digests: [] }],
    [
      "of which something was left out",
      ["a", "b"],
      [done("a"), rendering("b", { state: "Done", digest: "sha256:b", doneAt: at, leftOut: ["Pod t"] })],
      {},
      { kind: "ready", digests: ["sha256:of-a", "sha256:b"], leftOut: new Map([["sha256:b", ["Pod t"]]]) },
    ],
    ["nobody asked for", ["a", "b"], [done("a")], {}, { kind: "pending", unasked: [1] }],
    ["asked for", ["a"], [rendering("a", { waiting })], {}, { kind: "pending", unasked: [] }],
    ["that another subject asked for", ["a"], [rendering("a", {})], {}, { kind: "pending", unasked: [0] }],
    [
      "that failed",
      ["a"],
      [rendering("a", { state: "Failed", failure })],
      {},
      { kind: "failed", reason: "RenderFailed: no kind" },
    ],
    [
      "one of which failed",
      ["a", "b"],
      [done("a"), rendering("b", { state: "Failed", failure })],
      {},
      { kind: "failed" },
    ],
    [
      "that rest",
      ["a"],
      [rendering("a", { state: "Failed", failure, retryAt: later(at, 300) })],
      {},
      { kind: "failed", reason: "RenderFailed: no kind" },
    ],
    [
      "that rest since before a reconcile",
      ["a"],
      [rendering("a", { state: "Failed", failure, retryAt: later(at, 300) })],
      { retriedAt: later(at, 1) },
      { kind: "pending", unasked: [0] },
    ],
    [
      "that failed for good before a reconcile",
      ["a"],
      [rendering("a", { state: "Failed", failure })],
      { retriedAt: later(at, 1) },
      { kind: "pending", unasked: [0] },
    ],
    [
      "that failed for good when a reconcile had asked",
      ["a"],
      [rendering("a", { state: "Failed", failure })],
      { retriedAt: at },
      { kind: "failed" },
    ],
    [
      "that nobody begins",
      ["a"],
      [rendering("a", { waiting })],
      { now: new Date(later(at, 90_000)) },
      { kind: "pending" },
    ],
    [
      "begun in time",
      ["a"],
      [rendering("a", { waiting, begunAt: later(at, 500) })],
      { now: new Date(later(at, 1099)) },
      { kind: "pending" },
    ],
    [
      "begun and not through in time",
      ["a"],
      [rendering("a", { waiting, begunAt: later(at, 500) })],
      { now: new Date(later(at, 1100)) },
      { kind: "failed", reason: `RenderFailed: not rendered since ${later(at, 500)}` },
    ],
    [
      "begun and not through in time, and why",
      ["a"],
      [rendering("a", { waiting, begunAt: at, failure })],
      { now: new Date(later(at, 1000)) },
      { kind: "failed", reason: `RenderFailed: not rendered since ${at}: no kind` },
    ],
    [
      "begun long ago, and done",
      ["a"],
      [rendering("a", { state: "Done", digest: "sha256:x", begunAt: at, doneAt: later(at, 80_000) })],
      { now: new Date(later(at, 90_000)) },
      { kind: "ready" },
    ],
    ["done within a day", ["a"], [done("a")], { now: new Date(later(at, 86_399)) }, { kind: "ready" }],
    [
      "done longer ago",
      ["a", "b"],
      [done("a", later(at, 10)), done("b")],
      { now: new Date(later(at, 86_400)) },
      { kind: "pending", unasked: [1] },
    ],
    [
      "done longer ago, and kept within a day",
      ["a"],
      [rendering("a", { state: "Done", digest: "sha256:x", doneAt: at, keptAt: later(at, 86_400) })],
      { now: new Date(later(at, 90_000)) },
      { kind: "ready", digests: ["sha256:x"] },
    ],
    [
      "done before it was noted when",
      ["a"],
      [rendering("a", { state: "Done", digest: "sha256:x", begunAt: at })],
      { now: new Date(later(at, 1100)) },
      { kind: "pending", unasked: [0] },
    ],
  ])("%s", (_name, inputs, rows, more, expected) => {
    expect(targetRenderings(of(...inputs), new Map(rows), { ...clock, ...more })).toMatchObject(expected);
  });

  test("of which one cannot even be named have failed", () => {
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

/** Content 2 of the templates that are wanted, rendered as `sha256:new`; the cluster has what is said. */
function assigning(
  { wants, has }: { readonly wants: readonly string[]; readonly has: Assigning["syncs"] },
  more: Partial<Assigning> = {},
): Assigning {
  return {
    owner,
    cluster: "c1",
    rollout: rollout(2, ...wants),
    relation: relation(...wants),
    inputs: wants.map((name) => ({ digest: `in-${name}`, path: "." })),
    digests: wants.map(() => "sha256:new"),
    syncs: has,
    now,
    ...more,
  };
}

const has = (name: string, renderDigest: string, phase: "Ready" | "Failed" | "Gone" = "Ready") =>
  syncRowOf("c1", { template: name, desired: { renderDigest, attempt: 4 }, observed: { phase } });

/** Name -> what is to become of it. */
const given = (of: Assigning) =>
  assignmentsFor(of).map(({ name, desired }) => `${desired.action} ${name} ${desired.attempt}`);

describe("what a cluster is given", () => {
  test.each<[string, Assigning, readonly string[]]>([
    [
      "everything, when it has nothing",
      assigning({ wants: ["app", "db"], has: [] }),
      ["apply web.app 1", "apply web.db 1"],
    ],
    ["nothing that it has", assigning({ wants: ["app"], has: [has("app", "sha256:new")] }), []],
    ["what it has otherwise", assigning({ wants: ["app"], has: [has("app", "sha256:old")] }), ["apply web.app 5"]],
    [
      "what it has and is not ready with",
      assigning({ wants: ["app"], has: [has("app", "sha256:new", "Failed")] }),
      ["apply web.app 5"],
    ],
    [
      "the removal of what is wanted no more",
      assigning({ wants: ["app"], has: [has("app", "sha256:new"), has("old", "x")] }),
      ["delete web.old 5"],
    ],
    [
      "no removal of what an older content has not and the spec wants by now",
      assigning(
        { wants: ["app"], has: [has("app", "sha256:new"), has("db", "x")] },
        { relation: relation("app", "db") },
      ),
      [],
    ],
    [
      "what an older content has, although the spec does not want it any more",
      assigning({ wants: ["app"], has: [] }, { relation: relation() }),
      ["apply web.app 1"],
    ],
    [
      "nothing of what was forgotten",
      assigning({ wants: [], has: [syncRowOf("c1", { template: "old", desired: { action: "orphan" } })] }),
      [],
    ],
    [
      "every removal once the subject itself goes, whatever the spec says",
      assigning({ wants: [], has: [has("app", "sha256:new")] }, { relation: undefined }),
      ["delete web.app 5"],
    ],
  ])("%s", (_name, of, expected) => {
    expect(given(of)).toEqual(expected);
  });

  test("says of what it is, and what it was rendered from", () => {
    const [first] = assignmentsFor(assigning({ wants: ["app"], has: [] }));
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

  test("says what was left out, the first few by name", () => {
    const texts = Array.from({ length: 8 }, (_, index) => `Pod t${index}`);
    const told = (leftOut: readonly string[]) =>
      assignmentsFor(assigning({ wants: ["app"], has: [] }, { leftOut: new Map([["sha256:new", leftOut]]) }))[0]
        ?.desired.leftOut;
    expect(told(["Pod t"])).toEqual(["Pod t"]);
    expect(told(texts)).toEqual(["Pod t0", "Pod t1", "Pod t2", "Pod t3", "Pod t4", "and 3 more"]);
  });

  test("is to be begun at a time of its own within the jitter, always the same", () => {
    const jitter = { ...relation("app"), rollout: rolloutStrategy.parse({ jitter: "15m" }) };
    const starts = Array.from({ length: 200 }, (_, index) => {
      const of = { ...assigning({ wants: ["app"], has: [] }, { relation: jitter }), cluster: `c${index}` };
      const [once, twice] = [assignmentsFor(of)[0], assignmentsFor(of)[0]];
      expect(once?.desired.startAt).toBe(twice?.desired.startAt);
      return once?.desired.startAt ?? "";
    });
    expect(starts.every((start) => start > at && start <= later(at, 900))).toBe(true);
    expect(new Set(starts).size).toBeGreaterThan(100);
  });

  test("has no time of its own without", () => {
    expect(assignmentsFor(assigning({ wants: ["app"], has: [] }))[0]?.desired).not.toHaveProperty("startAt");
  });
});

describe("a removal", () => {
  const removed = (from = has("old", "sha256:old")) => {
    const [removal] = assignmentsFor(assigning({ wants: [], has: [from] }));
    if (removal === undefined) throw new Error("nothing is removed");
    return { ...from, desired: { ...from.desired, ...removal.desired } };
  };

  test("remembers what was there, and is taken back to it", () => {
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

  test("that is assigned once more remembers the same", () => {
    const { renderDigest: _digest, ...desired } = removed().desired;
    const again = removed({ ...removed(), desired });
    expect(again.desired.instead).toMatchObject({ renderDigest: "sha256:old", rollout: 1 });
    expect(takenBack(again, now)?.renderDigest).toBe("sha256:old");
  });

  test("is nothing to take back where something else is wanted", () => {
    expect(takenBack(has("app", "sha256:new"), now)).toBeUndefined();
  });
});

test.each<[string, Assigning, boolean]>([
  ["it has it, whatever became of it", assigning({ wants: ["app"], has: [has("app", "sha256:new", "Failed")] }), true],
  ["it has another", assigning({ wants: ["app"], has: [has("app", "sha256:old")] }), false],
  ["it has nothing", assigning({ wants: ["app"], has: [] }), false],
  ["it has one of two", assigning({ wants: ["app", "db"], has: [has("app", "sha256:new")] }), false],
  ["it has one too many", assigning({ wants: ["app"], has: [has("app", "sha256:new"), has("old", "x")] }), false],
  [
    "the one too many is to go",
    assigning({
      wants: ["app"],
      has: [has("app", "sha256:new"), syncRowOf("c1", { template: "old", desired: { action: "delete" } })],
    }),
    true,
  ],
])("a cluster was given a content when %s: that is %s", (_name, of, expected) => {
  expect(isGiven(of)).toBe(expected);
});
