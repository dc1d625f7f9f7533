import { describe, expect, test } from "vitest";
import { progressAfter, progressOf, unsettledIds } from "#functions/apply/steps/progress.ts";
import type { ApplySetResult } from "#shared/kube/engine/apply-set.ts";
import { emptyInventory, type Progress } from "#shared/kube/inventory.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const config = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
const definition = {
  group: "apiextensions.k8s.io",
  kind: "CustomResourceDefinition",
  namespace: "",
  name: "widgets.example.com",
};
const place = { group: "", kind: "Namespace", namespace: "", name: "shop" };

type Outcome = ApplySetResult["objects"][number];

function applied(id: typeof config, status: "Current" | "InProgress"): Outcome {
  const entry = { id, version: "v1", uid: id.name, resourceVersion: "1", generation: 0, ownedHash: "", valuesHash: "" };
  return { id, outcome: "created", entry, health: { status, message: "" }, warnings: [] };
}

const failed: Outcome = {
  id: config,
  outcome: "failed",
  failure: { class: "invalid", reason: "Invalid", message: "", retryable: false, outcomeUnknown: false },
};
const result = (...objects: readonly Outcome[]): ApplySetResult => {
  return { outcome: "applied", timeWasUp: true, objects, definitions: {} };
};
const none: Progress = { attempt: 1, renderDigest: "sha256:aaa", applied: [], settled: [] };
const keyOf = ({ group, kind, namespace, name }: typeof config) => [group, kind, namespace, name];

describe("the progress of an earlier run", () => {
  test.each<[string, Outcome, boolean]>([
    ["an object that was applied counts, whether it is ready or not", applied(config, "InProgress"), true],
    ["an object that failed does not count", failed, false],
    ["a definition counts when it is established", applied(definition, "Current"), true],
    [
      "a definition that is not established does not count, because objects of its kind need it",
      applied(definition, "InProgress"),
      false,
    ],
    ["a Namespace that does not exist yet does not count", applied(place, "InProgress"), false],
  ])("%s", (_what, object, counts) => {
    const { applied: keys } = progressAfter(none, { result: result(object) });
    expect(keys).toHaveLength(counts ? 1 : 0);
    for (const part of counts ? keyOf(object.id as typeof config) : []) expect(keys[0]).toContain(part);
  });

  test("progress is added to that of the runs before, each object once", () => {
    const first = progressAfter(none, { result: result(applied(config, "Current")), settled: [place] });
    const twice = progressAfter(first, { result: result(applied(config, "Current")), settled: [place, definition] });
    expect(twice).toMatchObject({ attempt: 1, renderDigest: "sha256:aaa" });
    expect(twice.applied).toHaveLength(1);
    expect(twice.settled).toHaveLength(2);
    expect(unsettledIds([config, place, definition], twice)).toEqual([config]);
  });

  test("progress is stored the same in whatever order it was made", () => {
    const [one, other] = [applied(config, "Current"), applied({ ...config, name: "a" }, "Current")];
    const forth = progressAfter(none, { result: result(one, other), settled: [place, definition] });
    const back = progressAfter(none, { result: result(other, one), settled: [definition, place] });
    expect(JSON.stringify(forth)).toBe(JSON.stringify(back));
  });

  test.each<[string, Partial<Progress>, boolean]>([
    ["the same attempt and rendering is continued", {}, true],
    ["another attempt is not continued", { attempt: 2 }, false],
    ["another rendering is not continued", { renderDigest: "sha256:bbb" }, false],
  ])("progress of %s", (_what, other, kept) => {
    const progress: Progress = { ...none, applied: ["x"], ...other };
    const row = syncRowOf("c1", { desired: { attempt: 1, renderDigest: "sha256:aaa" } });
    expect(progressOf({ ...emptyInventory("set"), progress }, row)).toEqual(kept ? progress : none);
  });
});
