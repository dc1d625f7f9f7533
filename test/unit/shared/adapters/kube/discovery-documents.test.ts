import { describe, expect, test } from "vitest";
import { readGroups, readResourceList } from "#shared/adapters/kube/discovery-documents.ts";
import type { Json } from "#shared/base/json.ts";

function resource(kind: string, plural: string): Json {
  return { resource: plural, responseKind: { kind }, scope: "Namespaced", verbs: ["list"] };
}

function aggregated(versions: Readonly<Record<string, readonly Json[]>>): Json {
  const all = Object.entries(versions).map(([version, resources]) => ({ version, resources: [...resources] }));
  return { kind: "APIGroupDiscoveryList", items: [{ metadata: { name: "example.com" }, versions: all }] };
}

function kinds(count: number, from = 0): readonly Json[] {
  return Array.from({ length: count }, (_, index) => resource(`Kind${from + index}`, `kinds${from + index}`));
}

describe("discovery documents", () => {
  test.each<[string, Json]>([
    ["aggregated", { kind: "APIGroupDiscoveryList", items: null }],
    ["of versions", { kind: "APIVersions", versions: null }],
    ["plain", { kind: "APIGroupList", groups: null }],
  ])("a %s document whose list is null has no groups", (_what, document) => {
    expect([...readGroups("/apis", document).values()].flat()).toEqual([]);
  });

  test.each<[Json, string]>([
    [{ kind: "APIGroupDiscoveryList" }, "items is missing, expected a list"],
    [{ kind: "APIVersions", versions: "v1" }, "versions is a text, expected a list"],
    [{ kind: "APIGroupList", groups: {} }, "groups is a map, expected a list"],
    [{ kind: "Status" }, "its kind is Status"],
    [{ kind: 5 }, "its kind is a number"],
  ])("the document %j is refused: %s", (document, problem) => {
    expect(() => readGroups("/apis", document)).toThrow(
      expect.objectContaining({ reason: "AnswerMalformed", message: expect.stringContaining(problem) }),
    );
  });

  test("a document may have ten thousand kinds in all versions together", () => {
    const most = aggregated({ v1: kinds(6_000), v2: kinds(4_000, 6_000) });
    expect(readGroups("/apis", most).get("example.com")).toHaveLength(2);
    const more = aggregated({ v1: kinds(6_000), v2: kinds(4_001, 6_000) });
    expect(() => readGroups("/apis", more)).toThrow(
      expect.objectContaining({
        reason: "AnswerTooLarge",
        message: expect.stringContaining("it has 1 groups with 10001 kinds"),
      }),
    );
  });

  test("a version with a resource whose name cannot be part of a path is refused with the reason, and other versions are read", () => {
    const versions = { v1: [resource("Widget", "widgets"), resource("Evil", "../secrets")], v2: kinds(1) };
    const [first, second] = readGroups("/apis", aggregated(versions)).get("example.com") ?? [];
    expect(first?.served).toEqual({
      problem: 'announces the resource "../secrets" of the kind "Evil", which cannot be a part of an address',
    });
    expect(second?.served?.kinds?.has("Kind0")).toBe(true);
  });
});

test("a list of resources yields its kinds without subresources, and says which kinds have a status", () => {
  const { kinds: served } = readResourceList("/apis/example.com/v1", {
    groupVersion: "example.com/v1",
    resources: [
      { name: "widgets", kind: "Widget", namespaced: true, verbs: ["list", "get"] },
      { name: "widgets/status", kind: "Widget", namespaced: true, verbs: ["get"] },
      { name: "parts", kind: "Part", namespaced: false, verbs: null },
      { name: 5, kind: "Odd" },
      "none",
    ],
  });
  expect([...(served?.values() ?? [])]).toEqual([
    {
      group: "example.com",
      version: "v1",
      kind: "Widget",
      plural: "widgets",
      namespaced: true,
      verbs: ["list", "get"],
      hasStatus: true,
    },
    {
      group: "example.com",
      version: "v1",
      kind: "Part",
      plural: "parts",
      namespaced: false,
      verbs: [],
      hasStatus: false,
    },
  ]);
});
