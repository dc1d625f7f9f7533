import { describe, expect, test } from "vitest";
import { shapeNameOf, shapeProblem } from "#shared/adapters/kube/object-shape.ts";
import type { Json } from "#shared/base/json.ts";

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
