import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { effectiveValues, inOrder, valueOrigins } from "#shared/fleet/effective-values.ts";
import type { ClusterSelection } from "#shared/fleet/kinds/cluster-selection.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";

const cluster = {
  name: "eu-1",
  labels: { env: "prod" },
  values: { domain: "eu1.example.com", tier: "gold", zone: "a" },
  // Two values come from tags; the Cluster has the rest.
  discoveredValues: ["domain", "zone"],
};
const all: ClusterSelection = { all: true };

function layer(name: string, values: Values, more: { priority?: number; clusters?: ClusterSelection } = {}) {
  return { name, spec: { clusters: all, priority: 0, values, ...more } };
}

describe("the effective values of a cluster", () => {
  test("the Cluster's own values take precedence over a ClusterValues, and those over discovered values", () => {
    const rows = [layer("base", { domain: "base.example.com", tier: "silver", size: 3 })];
    expect(effectiveValues(cluster, rows)).toEqual({
      domain: "base.example.com",
      tier: "gold",
      zone: "a",
      size: 3,
    });
    expect(valueOrigins(cluster, rows, "apps")).toEqual({
      domain: { value: "base.example.com", from: { kind: "ClusterValues", name: "base" } },
      size: { value: 3, from: { kind: "ClusterValues", name: "base" } },
      tier: { value: "gold", from: { kind: "Cluster", name: "eu-1" } },
      zone: { value: "a", from: { kind: "ClusterDiscovery", name: "apps" } },
    });
  });

  test("I01: the higher priority wins, and of equal ones the later name, in whatever order they are read", () => {
    const rows = [
      layer("b", { one: "b", two: "b", three: "b" }),
      layer("a", { one: "a", two: "a", three: "a" }, { priority: 10 }),
      layer("c", { two: "c" }, { priority: 10 }),
      layer("d", { three: "d" }, { priority: 9 }),
    ];
    fc.assert(
      fc.property(fc.shuffledSubarray(rows, { minLength: rows.length }), (shuffled) => {
        const { one, two, three } = effectiveValues(cluster, inOrder(shuffled));
        expect([one, two, three]).toEqual(["a", "c", "a"]);
      }),
    );
  });

  test("only a ClusterValues that selects the cluster counts, and its map replaces another map", () => {
    const rows = inOrder([
      layer("maps", { check: { color: "red", size: 1 } }),
      layer(
        "more",
        { check: { color: "blue" } },
        { priority: 1, clusters: { selector: { matchLabels: { env: "prod" } } } },
      ),
      layer("others", { check: "none" }, { priority: 2, clusters: { names: ["eu-2"] } }),
      layer("without", { check: "none" }, { priority: 3, clusters: { all: true, notNames: ["eu-1"] } }),
    ]);
    expect(effectiveValues(cluster, rows).check).toEqual({ color: "blue" });
  });
});

describe("a ClusterValues", () => {
  const parse = (spec: object) =>
    parseDocument({ apiVersion: ourApiVersion, kind: "ClusterValues", metadata: { name: "eu" }, spec });
  const problemsOf = (spec: object) => {
    const parsed = parse(spec);
    return parsed.ok ? [] : parsed.problems.map(({ field, message }) => `${field}: ${message}`);
  };
  let deep: unknown = "end";
  for (let level = 0; level < 9; level++) deep = [deep];

  test("a ClusterValues may have texts, numbers, booleans, lists and maps", () => {
    const values = { a: "x", b: 1.5, c: false, d: ["x", { e: 0 }], _f: {} };
    expect(parse({ clusters: all, values })).toMatchObject({ ok: true, document: { spec: { priority: 0, values } } });
  });

  test.each<readonly [string, object, readonly string[]]>([
    ["nothing as a value", { values: { a: null } }, ["spec.values.a: is nothing; leave it out (got null)"]],
    [
      "nothing in a list",
      { values: { a: { b: ["x", null] } } },
      ["spec.values.a.b[1]: is nothing; leave it out (got null)"],
    ],
    [
      "a number that JavaScript cannot hold",
      { values: { a: 12345678901234567890n } },
      ["spec.values.a: is a number that cannot be kept as it is; write it in quotes (got 12345678901234567890)"],
    ],
    [
      "a name that no expression has",
      { values: { "a-b": "x" } },
      ["spec.values.a-b: has the wrong key: it must be an identifier: at most 63 characters of A-Z, a-z, 0-9 and _"],
    ],
    [
      "a value that is too long",
      { values: { a: "x".repeat(16_377) } },
      ["spec.values: must have at most 16384 bytes as JSON, all values together; keep what is larger in files"],
    ],
    [
      "too many",
      { values: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`v${at}`, true])) },
      [expect.stringMatching(/^spec\.values: must have at most 100 members \(got the fields /)],
    ],
    [
      "no clusters",
      { clusters: {}, values: {} },
      [
        "spec.clusters: needs exactly one of selector, names or all: true (notNames may be added to any of them) (got {})",
      ],
    ],
    [
      "a priority that is none",
      { values: {}, priority: 1.5 },
      ["spec.priority: must be a whole number from 0 to 1000 (got 1.5)"],
    ],
    [
      "one that is too high",
      { values: {}, priority: 1001 },
      ["spec.priority: must be a whole number from 0 to 1000 (got 1001)"],
    ],
  ])("a ClusterValues with %s is refused", (_, spec, problems) => {
    expect(problemsOf({ clusters: all, ...spec })).toEqual(problems);
  });

  test("a ClusterValues may be up to eight lists and maps deep, and up to its size limit", () => {
    expect(problemsOf({ clusters: all, values: { a: (deep as unknown[])[0] } })).toEqual([]);
    expect(problemsOf({ clusters: all, values: { a: deep } })[0]).toContain("is nested deeper than 8 lists and maps");
    expect(problemsOf({ clusters: all, values: { a: "x".repeat(16_376) } })).toEqual([]);
  });
});
