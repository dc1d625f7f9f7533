import { describe, expect, test } from "vitest";
import { errorFrom, headerWarnings, shapeNameOf, shapeProblem } from "#shared/adapters/kube/kube-answers.ts";
import type { Json } from "#shared/base/json.ts";

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

const long = "x".repeat(1_025);

describe("metadata", () => {
  test.each<[string, Readonly<Record<string, Json>>]>([
    ["of a name alone", {}],
    ["of texts, as long as they may be", { uid: "x".repeat(1_024), namespace: "shop", resourceVersion: "1" }],
    [
      "of nothing, as Go writes it",
      { uid: null, labels: null, annotations: null, finalizers: null, ownerReferences: null, managedFields: null },
    ],
    ["of maps and lists", { labels: { a: "b" }, finalizers: ["x"], ownerReferences: [{}] }],
    ["of writers", { managedFields: [{ manager: "m", time: null, fieldsV1: {} }, { fieldsV1: null }] }],
  ])("metadata %s is accepted", (_what, metadata) => {
    expect(shapeProblem({ metadata: { name: "a", ...metadata } })).toBeUndefined();
  });

  test.each<[Json, string]>([
    [null, "metadata is null, expected a map"],
    [[], "metadata is a list, expected a map"],
    [{}, "metadata.name is missing, expected a name"],
    [{ name: "" }, "metadata.name is a text, expected a name"],
    [{ name: 5n }, "metadata.name is a number, expected a name"],
    [{ name: long }, "metadata.name has 1025 characters, more than the limit of 1024"],
    [{ name: "a", uid: 5 }, "metadata.uid is a number, expected a text"],
    [{ name: "a", uid: true }, "metadata.uid is a boolean, expected a text"],
    [{ name: "a", namespace: long }, "metadata.namespace has 1025 characters, more than the limit of 1024"],
    [{ name: "a", labels: [] }, "metadata.labels is a list, expected a map"],
    [{ name: "a", annotations: "b" }, "metadata.annotations is a text, expected a map"],
    [{ name: "a", finalizers: ["x", 5] }, "metadata.finalizers is not a list of strings"],
    [{ name: "a", finalizers: {} }, "metadata.finalizers is not a list of strings"],
    [{ name: "a", ownerReferences: ["x"] }, "metadata.ownerReferences is not a list of maps"],
    [{ name: "a", managedFields: ["x"] }, "metadata.managedFields is not a list of entries"],
    [{ name: "a", managedFields: [{ fieldsV1: "x" }] }, "metadata.managedFields is not a list of entries"],
    [{ name: "a", managedFields: [{ manager: 5 }] }, "metadata.managedFields is not a list of entries"],
  ])("invalid metadata is refused: $1", (metadata, problem) => {
    expect(shapeProblem({ metadata })).toBe(problem);
  });
});

test.each<[Json | undefined, string]>([
  [undefined, "missing"],
  [null, "null"],
  [[], "a list"],
  [{}, "a map"],
  ["x", "a text"],
  [1, "a number"],
  [1n, "a number"],
  [false, "a boolean"],
])("the shape of %s is called %s", (value, name) => {
  expect(shapeNameOf(value)).toBe(name);
});
