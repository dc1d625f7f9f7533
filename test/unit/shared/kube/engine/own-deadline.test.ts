import { expect, test } from "vitest";
import { isCutOff, isOutOfTime } from "#shared/kube/engine/own-deadline.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const end = 1_000_000;
const at = (ms: number) => ({ clock: { now: () => new Date(ms) }, deadline: new Date(end) });
const errorWith = (facts: object) =>
  new KubeError({ method: "PATCH", path: "/", secret: false }, { message: "", causes: [], ...facts });
const silence = errorWith({ code: "ETIMEDOUT" });

test("the time of a run is up at its deadline, and not a moment before", () => {
  expect(isOutOfTime(at(end - 1))).toBe(false);
  expect(isOutOfTime(at(end))).toBe(true);
});

test.each([
  ["no answer at the deadline", silence, end, true],
  ["no answer before the deadline", silence, end - 1, false],
  ["an answer of the API server, however late", errorWith({ status: 504 }), end, false],
  ["an error that does not come from the cluster", new TypeError("a defect"), end, false],
])("the own deadline cut off %s: %s", (_what, error, ms, expected) => {
  expect(isCutOff(error, at(ms))).toBe(expected);
});
