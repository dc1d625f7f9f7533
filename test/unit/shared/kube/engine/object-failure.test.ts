import { describe, expect, test } from "vitest";
import { StarlingError } from "#shared/base/errors.ts";
import { definiteFailure, endsTheCheck, endsTheRun, failureOf } from "#shared/kube/engine/object-failure.ts";

const failure = (rest: Partial<Parameters<typeof definiteFailure>[0]>) =>
  definiteFailure({ class: "invalid", reason: "Invalid", message: "", ...rest });

describe("a failure", () => {
  test.each<[string, ReturnType<typeof failure>, { readonly run: boolean; readonly check: boolean }]>([
    ["of one object ends nothing", failure({}), { run: false, check: false }],
    ["to reach the cluster ends all", failure({ class: "unreachable" }), { run: true, check: true }],
    ["to be let in ends all", failure({ class: "auth" }), { run: true, check: true }],
    ...(["AnswerMalformed", "AnswerTooLarge", "AnswersTooLarge", "ListTooLong"] as const).map(
      (reason): [string, ReturnType<typeof failure>, { readonly run: boolean; readonly check: boolean }] => [
        `to take an answer (${reason}) ends the look`,
        failure({ class: "malformed", reason }),
        { run: false, check: true },
      ],
    ),
  ])("%s", (_what, given, { run, check }) => {
    expect({ run: endsTheRun(given), check: endsTheCheck(given) }).toEqual({ run, check });
  });

  test.each(["transient", "permanent"] as const)("of a credential may pass, if it is %s", (retry) => {
    const error = new StarlingError("the secret is not there", { code: "SecretNotFound", retry });
    expect(failureOf(error)).toEqual({
      class: "auth",
      reason: "SecretNotFound",
      message: "the secret is not there",
      retryable: retry === "transient",
      outcomeUnknown: false,
    });
  });

  test("of what has the credentials is ours, and ends the run", () => {
    const error = new StarlingError("it is busy", { code: "SecretsUnavailable", retry: "transient" });
    expect(failureOf(error)).toMatchObject({ class: "ours", reason: "SecretsUnavailable", retryable: true });
    expect([endsTheRun(failureOf(error)), endsTheCheck(failureOf(error))]).toEqual([true, true]);
  });

  test("of ours is none of an object's", () => {
    const defect = new TypeError("x is not a function");
    expect(() => failureOf(defect)).toThrow(defect);
  });

  test("of ours is none of an object's, whatever an adapter calls it", () => {
    const cause = Object.assign(new Error("connect EMFILE"), { code: "EMFILE" });
    const away = new StarlingError("STS was not asked", { code: "StsUnavailable", retry: "transient", cause });
    expect(() => failureOf(away)).toThrow(away);
  });
});
