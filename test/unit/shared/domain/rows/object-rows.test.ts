import { describe, expect, test } from "vitest";
import { sourceSpec } from "#shared/domain/kinds/source.ts";
import { later } from "#shared/domain/rows/due.ts";
import {
  type Act,
  type ClusterRow,
  givesTurns,
  identityOf,
  incarnationOf,
  isUnplanned,
  newestAct,
  nextResolve,
  type Operations,
  type SourceStatus,
  type SubjectRow,
  type SubjectState,
} from "#shared/domain/rows/object-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const act = (number: number, actAt = at): Act => ({ by: "maintainers", at: actAt, number });

describe("a Cluster's identity", () => {
  const accepted = (more: object): Operations => ({ accepted: { ...act(3), uid: "new", ...more } });
  const seen = { uid: "seen", conditions: [] };

  test.each<[string, Pick<ClusterRow, "operations" | "status">, string | undefined]>([
    ["what was seen first", { operations: {}, status: seen }, "seen"],
    ["what somebody accepted", { operations: accepted({}), status: seen }, "new"],
    ["nothing yet", { operations: {}, status: { conditions: [] } }, undefined],
  ])("is %s", (_name, row, expected) => {
    expect(identityOf(row)).toBe(expected);
  });

  test.each<[string, Operations, string]>([
    ["is the row's", {}, "u"],
    ["stays when the same is accepted", accepted({}), "u"],
    ["changes when what was assigned is forgotten", accepted({ forgotten: true }), "u#3"],
  ])("as the planner knows it %s", (_name, operations, expected) => {
    expect(incarnationOf({ uid: "u", operations })).toBe(expected);
  });
});

test.each<[SubjectState | undefined, boolean]>([
  [undefined, false],
  ["Complete", false],
  ["Degraded", false],
  ["Reconciling", false],
  ["NoClusters", false],
  ["ClusterNotFound", false],
  ["Rolling", true],
  ["Waiting", false],
  ["Halted", true],
  ["Suspended", false],
  ["Stalled", true],
  ["Deleting", true],
])("a subject that is %s gives turns: %s", (state, expected) => {
  const status = state === undefined ? { conditions: [] } : { state, conditions: [] };
  expect(givesTurns({ status } as unknown as SubjectRow)).toBe(expected);
});

test("no subject gives no turns", () => {
  expect(givesTurns(undefined)).toBe(false);
});

describe("the newest act", () => {
  test.each<[Operations, number | undefined]>([
    [{}, undefined],
    [{ suspended: act(2) }, 2],
    [{ suspended: { ...act(2), again: [act(3), act(5)] }, reconcile: act(4) }, 5],
    [{ reconcile: act(7), resumed: act(6) }, 7],
    [{ deletion: { ...act(9), cascade: "delete" }, reconcile: act(7) }, 9],
    [{ resumed: act(8), reconcile: act(7) }, 8],
    [{ accepted: { ...act(4), uid: "u" }, reconcile: act(1) }, 4],
    [{ reconcile: { by: "maintainers", at } as Act }, undefined],
  ])("of %j is %s", (operations, number) => {
    expect(newestAct(operations)).toBe(number);
  });
});

test.each([
  ["as it was seen", { generation: 2, seen: 2, acted: 5 }, false],
  ["of a newer spec", { generation: 3, seen: 2, acted: 5 }, true],
  ["of a newer act", { generation: 2, seen: 2, acted: 4 }, true],
])("a subject %s is unplanned: %s", (_name, { generation, seen, acted }, expected) => {
  const status = { observedGeneration: seen, observedOperation: acted, conditions: [] };
  expect(isUnplanned({ generation, operations: { resumed: act(5) }, status })).toBe(expected);
});

describe("a Source is resolved next", () => {
  const created = "2026-11-20T08:00:00.000Z";
  const next = (status: Partial<SourceStatus>, operations: Operations = {}, interval?: string) =>
    nextResolve({
      uid: "u",
      generation: 2,
      createdAt: created,
      operations,
      spec: sourceSpec.parse({
        git: { url: "https://git.example.com/app", ref: { branch: "main" } },
        ...(interval === undefined ? {} : { interval }),
      }),
      status: { conditions: [], ...status },
    });
  const resolved = { attemptedAt: at, observedGeneration: 2 };

  test.each<[string, string | undefined, string | undefined]>([
    ["never, while it is suspended", next({}, { suspended: act(1) }), undefined],
    ["at once, when it is new", next({}), created],
    ["at once, when its spec has changed", next({ attemptedAt: at, observedGeneration: 1 }), created],
    ["at once, when somebody asks", next(resolved, { reconcile: act(3, later(at, 9)) }), later(at, 9)],
    ["soon after a failure", next({ ...resolved, failures: 1 }), later(at, 5)],
    ["later after more of them", next({ ...resolved, failures: 3 }), later(at, 20)],
    ["after its interval, however often it failed", next({ ...resolved, failures: 50 }, {}, "1m"), later(at, 60)],
    [
      "as asked once, not again",
      next({ ...resolved, handledReconcile: 3, failures: 1 }, { reconcile: act(3) }),
      later(at, 5),
    ],
    [
      "by an act of before acts had numbers, not again",
      next({ ...resolved, failures: 1 }, { reconcile: { by: "maintainers", at } as Act }),
      later(at, 5),
    ],
  ])("%s", (_name, actual, expected) => {
    expect(actual).toBe(expected);
  });

  test.each([
    ["1h", 3600],
    [undefined, 300],
  ])("within 5 %% of its interval %s", (interval, seconds) => {
    const resolvedNext = next(resolved, {}, interval) ?? "";
    expect(resolvedNext >= later(at, seconds * 0.95) && resolvedNext <= later(at, seconds * 1.05)).toBe(true);
    expect(resolvedNext).toBe(next({ ...resolved, failures: 0 }, {}, interval));
  });

  test("not together with those that were resolved at the same time", () => {
    const times = Array.from({ length: 50 }, (_, index) => next({ ...resolved, attemptedAt: later(at, index) }));
    const waits = times.map((time, index) => Date.parse(time ?? "") - Date.parse(later(at, index)));
    expect(new Set(waits).size).toBeGreaterThan(40);
  });
});
