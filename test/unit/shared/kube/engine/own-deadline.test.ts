import { expect, test } from "vitest";
import { isCutOff, isOutOfTime } from "#shared/kube/engine/own-deadline.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const end = 1_000_000;
const at = (ms: number) => ({ clock: { now: () => new Date(ms) }, deadline: new Date(end) });
const told = (facts: object) =>
  new KubeError({ method: "PATCH", path: "/", secret: false }, { message: "", causes: [], ...facts });
const silence = told({ code: "ETIMEDOUT" });

test("time is up at its end, and not a moment before", () => {
  expect(isOutOfTime(at(end - 1))).toBe(false);
  expect(isOutOfTime(at(end))).toBe(true);
});

test.each([
  ["no answer at the end of our time", silence, end, true],
  ["no answer before the end", silence, end - 1, false],
  ["what the API server answered, however late", told({ status: 504 }), end, false],
  ["what is no word of the cluster", new TypeError("a mistake of ours"), end, false],
])("%s: whether our own deadline cut it off", (_what, error, ms, expected) => {
  expect(isCutOff(error, at(ms))).toBe(expected);
});
