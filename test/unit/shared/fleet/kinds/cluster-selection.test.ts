import { describe, expect, test } from "vitest";
import {
  type ClusterSelection,
  type LabelSelector,
  matchesSelector,
  selects,
} from "#shared/fleet/kinds/cluster-selection.ts";

const labels = { ring: "canary", env: "prod", empty: "" };

const expressions = (...matchExpressions: NonNullable<LabelSelector["matchExpressions"]>) => ({ matchExpressions });

describe("a selector", () => {
  test.each<[string, LabelSelector, boolean]>([
    ["one label", { matchLabels: { ring: "canary" } }, true],
    ["another value", { matchLabels: { ring: "rest" } }, false],
    ["all labels", { matchLabels: { ring: "canary", env: "prod" } }, true],
    ["one of two labels", { matchLabels: { ring: "canary", env: "dev" } }, false],
    ["a label with no value", { matchLabels: { empty: "" } }, true],
    ["a label that is not there", { matchLabels: { none: "" } }, false],
    ["In", expressions({ key: "env", operator: "In", values: ["dev", "prod"] }), true],
    ["In, without the label", expressions({ key: "none", operator: "In", values: ["prod"] }), false],
    ["NotIn", expressions({ key: "env", operator: "NotIn", values: ["prod"] }), false],
    ["NotIn, without the label", expressions({ key: "none", operator: "NotIn", values: ["prod"] }), true],
    ["Exists", expressions({ key: "empty", operator: "Exists" }), true],
    ["Exists, without the label", expressions({ key: "none", operator: "Exists" }), false],
    ["DoesNotExist", expressions({ key: "empty", operator: "DoesNotExist" }), false],
    ["DoesNotExist, without the label", expressions({ key: "none", operator: "DoesNotExist" }), true],
    ["a JavaScript member as key", expressions({ key: "constructor", operator: "Exists" }), false],
    [
      "labels and expressions together",
      { matchLabels: { ring: "canary" }, ...expressions({ key: "env", operator: "NotIn", values: ["prod"] }) },
      false,
    ],
  ])("a selector with %s", (_name, selector, matches) => {
    expect(matchesSelector(selector, labels)).toBe(matches);
  });
});

describe("a selection", () => {
  test.each<[ClusterSelection, boolean]>([
    [{ all: true }, true],
    [{ all: true, notNames: ["c1"] }, false],
    [{ all: true, notNames: ["c2"] }, true],
    [{ names: ["c1", "c2"] }, true],
    [{ names: ["c2"] }, false],
    [{ names: ["c1"], notNames: ["c1"] }, false],
    [{ selector: { matchLabels: { ring: "canary" } } }, true],
    [{ selector: { matchLabels: { ring: "canary" } }, notNames: ["c1"] }, false],
  ])("the selection %j takes c1: %s", (selection, taken) => {
    expect(selects(selection, { name: "c1", labels })).toBe(taken);
  });
});
