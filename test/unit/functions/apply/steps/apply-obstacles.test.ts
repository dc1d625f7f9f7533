import { expect, test } from "vitest";
import { type ApplyObstacles, obstaclesOf } from "#functions/apply/steps/apply-obstacles.ts";
import type { AppliedObject } from "#shared/kube/engine/apply-object.ts";
import { definiteFailure } from "#shared/kube/engine/object-failure.ts";

const id = (name: string) => ({ group: "", kind: "ConfigMap", namespace: "shop", name });
const fine: AppliedObject = {
  id: id("fine"),
  outcome: "unchanged",
  entry: {
    id: id("fine"),
    version: "v1",
    uid: "u",
    resourceVersion: "1",
    generation: 0,
    ownedHash: "",
    valuesHash: "",
  },
  health: { status: "Current", message: "" },
  warnings: [],
};
const failed = (name: string, retryable: boolean): AppliedObject => ({
  id: id(name),
  outcome: "failed",
  failure: { ...definiteFailure({ class: "invalid", reason: "Invalid", message: `no ${name}` }), retryable },
});
const waits = (name: string): AppliedObject => ({
  id: id(name),
  outcome: "waiting",
  reason: "Terminating",
  message: `${name} is still being deleted`,
});
const problems = (...names: readonly string[]) =>
  names.map((name) => ({ object: `ConfigMap shop/${name}`, reason: "Invalid" as const, message: `no ${name}` }));

test.each<[string, readonly AppliedObject[], ApplyObstacles]>([
  ["none where everything was applied", [fine], { problems: [], final: false }],
  ["not final where a failure may pass", [fine, failed("a", true)], { problems: problems("a"), final: false }],
  [
    "final where one failure is permanent",
    [failed("a", true), failed("b", false)],
    { problems: problems("a", "b"), final: true },
  ],
  [
    "the first object that waits",
    [fine, waits("a"), waits("b")],
    { problems: [], final: false, waiting: waits("a") as never },
  ],
])("the obstacles of an apply are %s", (_what, objects, expected) => {
  expect(obstaclesOf({ outcome: "failed", timeWasUp: false, objects, definitions: {} })).toEqual(expected);
});
