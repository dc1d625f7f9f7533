import { describe, expect, test } from "vitest";
import {
  type Act,
  type ClusterRow,
  clusterIdentity,
  incarnationOf,
  isUnplanned,
  newestAct,
  type Operations,
} from "#shared/fleet/rows/object-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const act = (number: number, actAt = at): Act => ({ by: "maintainers", at: actAt, number });

describe("a Cluster's identity", () => {
  const accepted = (more: object): Operations => ({ accepted: { ...act(3), uid: "new", ...more } });
  const seen = { uid: "seen", conditions: [] };

  test.each<[string, Pick<ClusterRow, "operations" | "status">, string | undefined]>([
    ["the uid that was seen first", { operations: {}, status: seen }, "seen"],
    ["the uid that a user accepted", { operations: accepted({}), status: seen }, "new"],
    ["unknown before any contact", { operations: {}, status: { conditions: [] } }, undefined],
  ])("the identity of a Cluster is %s", (_name, row, expected) => {
    expect(clusterIdentity(row)).toBe(expected);
  });

  test.each<[string, Operations, string]>([
    ["is the uid of its row", {}, "u"],
    ["stays when a user accepts the same cluster", accepted({}), "u"],
    ["changes when a user accepts the cluster and forgets its assignments", accepted({ forgotten: true }), "u#3"],
  ])("the planner's identity of a Cluster %s", (_name, operations, expected) => {
    expect(incarnationOf({ uid: "u", operations })).toBe(expected);
  });
});

describe("the newest operation of an object", () => {
  test.each<[Operations, number | undefined]>([
    [{}, undefined],
    [{ suspended: act(2) }, 2],
    [{ suspended: { ...act(2), again: [act(3), act(5)] }, reconcile: act(4) }, 5],
    [{ reconcile: act(7), resumed: act(6) }, 7],
    [{ deletion: { ...act(9), cascade: "delete" }, reconcile: act(7) }, 9],
    [{ resumed: act(8), reconcile: act(7) }, 8],
    [{ accepted: { ...act(4), uid: "u" }, reconcile: act(1) }, 4],
    [{ reconcile: { by: "maintainers", at } as Act }, undefined],
  ])("the newest operation of %j has the number %s", (operations, number) => {
    expect(newestAct(operations)).toBe(number);
  });
});

test.each([
  ["that the planner has seen completely", { generation: 2, seen: 2, acted: 5 }, false],
  ["with a newer spec", { generation: 3, seen: 2, acted: 5 }, true],
  ["with a newer operation", { generation: 2, seen: 2, acted: 4 }, true],
])("an owner %s is unplanned: %s", (_name, { generation, seen, acted }, expected) => {
  const status = { observedGeneration: seen, observedOperation: acted, conditions: [] };
  expect(isUnplanned({ generation, operations: { resumed: act(5) }, status })).toBe(expected);
});
