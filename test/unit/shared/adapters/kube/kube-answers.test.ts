import { describe, expect, test } from "vitest";
import { errorFrom, headerWarnings } from "#shared/adapters/kube/kube-answers.ts";

const summary = { method: "GET", path: "/api/v1/configmaps", secret: false };

function answer(rest: { readonly status?: number; readonly text?: string; readonly headers?: Record<string, string> }) {
  return { status: 500, text: "", headers: {}, ...rest };
}

describe("warnings in the header of an answer", () => {
  test.each<[string, readonly string[]]>([
    ['299 - "one"', ["one"]],
    ['299 kube-apiserver/1.36 "one, and more", 299 - "two"', ["one, and more", "two"]],
    ['299 - "a \\"b\\" \\\\ c"', ['a "b" \\ c']],
    ['299 - "same", 299 - "same"', ["same"]],
    ['299 - ""', [""]],
    ['199 - "of a proxy"', []],
    ["299 - unquoted", []],
    ["", []],
  ])("the header %j is parsed into its warnings", (warning, texts) => {
    expect(headerWarnings(answer({ headers: { warning } }))).toEqual(texts);
  });

  test("an answer without a warning header has no warnings", () => {
    expect(headerWarnings(answer({}))).toEqual([]);
  });
});

describe("an error of the API server", () => {
  test("an error has the reason, the message and the causes of the server's Status", () => {
    const cause = { reason: "FieldValueInvalid", field: "spec.x", message: "bad" };
    const text = JSON.stringify({ reason: "Invalid", message: "x is invalid", details: { causes: [cause, {}] } });
    const error = errorFrom(summary, answer({ status: 422, text }));
    expect(error).toMatchObject({ status: 422, reason: "Invalid", message: "x is invalid" });
    expect(error.causes).toEqual([cause, { reason: "", field: "", message: "" }]);
    expect(error.retryAfterSeconds).toBeUndefined();
  });

  test.each([
    ["a page", "<html>"],
    ["nothing", ""],
    ["a JSON text", '"text"'],
    ["a map of nothing", "{}"],
  ])("an error has only its HTTP status where the server sends %s", (_what, text) => {
    const error = errorFrom(summary, answer({ status: 503, text }));
    expect(error).toMatchObject({
      status: 503,
      reason: "ServiceUnavailable",
      message: "GET /api/v1/configmaps answered 503",
      causes: [],
    });
  });

  test.each<[string | undefined, number | undefined]>([
    ["5", 5],
    ["0.5", 0.5],
    ["0", undefined],
    ["-1", undefined],
    ["soon", undefined],
    ["Infinity", undefined],
    [undefined, undefined],
  ])("a Retry-After header of %s is read as seconds, or ignored", (after, seconds) => {
    const headers: Record<string, string> = after === undefined ? {} : { "retry-after": after };
    expect(errorFrom(summary, answer({ headers })).retryAfterSeconds).toBe(seconds);
  });
});
