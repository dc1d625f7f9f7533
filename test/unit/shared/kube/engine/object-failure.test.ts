import { describe, expect, test } from "vitest";
import { StarlingError } from "#shared/base/errors.ts";
import { definiteFailure, endsTheCheck, endsTheRun, failureOf } from "#shared/kube/engine/object-failure.ts";

const failure = (rest: Partial<Parameters<typeof definiteFailure>[0]>) =>
  definiteFailure({ class: "invalid", reason: "Invalid", message: "", ...rest });

describe("the scope of a failure", () => {
  test.each<[string, ReturnType<typeof failure>, { readonly run: boolean; readonly check: boolean }]>([
    ["of one object ends neither the run nor the check", failure({}), { run: false, check: false }],
    ["to reach the cluster ends both", failure({ class: "unreachable" }), { run: true, check: true }],
    ["to log in ends both", failure({ class: "auth" }), { run: true, check: true }],
    ...(["AnswerMalformed", "AnswerTooLarge", "AnswersTooLarge", "ListTooLong"] as const).map(
      (reason): [string, ReturnType<typeof failure>, { readonly run: boolean; readonly check: boolean }] => [
        `to read an answer (${reason}) ends the check`,
        failure({ class: "malformed", reason }),
        { run: false, check: true },
      ],
    ),
  ])("a failure %s", (_what, given, { run, check }) => {
    expect({ run: endsTheRun(given), check: endsTheCheck(given) }).toEqual({ run, check });
  });

  test.each(["transient", "permanent"] as const)(
    "a %s failure of a credential is retried only if it is transient",
    (retry) => {
      const error = new StarlingError("the secret is not there", { code: "SecretNotFound", retry });
      expect(failureOf(error)).toEqual({
        class: "auth",
        reason: "SecretNotFound",
        message: "the secret is not there",
        retryable: retry === "transient",
        outcomeUnknown: false,
      });
    },
  );

  test("a failure of the store of credentials is Starling's own, and ends the run", () => {
    const error = new StarlingError("it is busy", { code: "SecretsUnavailable", retry: "transient" });
    expect(failureOf(error)).toMatchObject({ class: "ours", reason: "SecretsUnavailable", retryable: true });
    expect([endsTheRun(failureOf(error)), endsTheCheck(failureOf(error))]).toEqual([true, true]);
  });

  test("a defect of Starling is not a failure of an object", () => {
    const defect = new TypeError("x is not a function");
    expect(() => failureOf(defect)).toThrow(defect);
  });

  test("a lack of resources in Starling is not a failure of an object, whatever an adapter calls it", () => {
    const cause = Object.assign(new Error("connect EMFILE"), { code: "EMFILE" });
    const away = new StarlingError("STS was not asked", { code: "StsUnavailable", retry: "transient", cause });
    expect(() => failureOf(away)).toThrow(away);
  });
});
