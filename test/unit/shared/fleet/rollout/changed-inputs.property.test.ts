/** A change makes another input for exactly the clusters that use the changed value or artifact. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { desiredPlan, type PlannedOwner, snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

/** The values and Sources that a template uses, or its override for the clusters in ring `b`. */
interface Uses {
  /** Values of the cluster: in a value of the chart, a parameter, a path of a file. */
  readonly value: "x" | "y" | "z" | undefined;
  readonly parameter: "x" | "y" | "z" | undefined;
  readonly path: "x" | "y" | "z" | undefined;
  /** The Sources of its values files. */
  readonly sources: readonly ("fleet" | "more")[];
}

type Cluster = Readonly<Record<"x" | "y" | "z", string>> & { readonly ring: "a" | "b" };
type Change = { readonly what: "x" | "y" | "z"; readonly of: number } | { readonly what: "app" | "fleet" | "more" };

const key = fc.constantFrom("x" as const, "y" as const, "z" as const);
const maybe = fc.option(key, { nil: undefined });
const uses = fc.record({
  value: maybe,
  parameter: maybe,
  path: maybe,
  sources: fc.uniqueArray(fc.constantFrom("fleet" as const, "more" as const)),
});
const text = fc.constantFrom("", "1", "a b", "{{ cluster.name }}");
const cluster = fc.record({ x: text, y: text, z: text, ring: fc.constantFrom("a" as const, "b" as const) });
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ what: key, of: fc.nat(4) }),
  fc.record({ what: fc.constantFrom("app" as const, "fleet" as const, "more" as const) }),
);

function fieldsOf({ value, parameter, path, sources }: Uses) {
  const of = (name: string | undefined) => (name === undefined ? "none" : `{{ cluster.values.${name} }}`);
  const file = `env/${path === undefined ? "all" : `{{ cluster.values.${path} }}`}.yaml`;
  const own = { path: file, optional: true };
  return {
    parameters: { P: of(parameter) },
    substitute: true,
    render: {
      helm: { values: { v: of(value) }, valuesFrom: [own, ...sources.map((source) => ({ source, ...own }))] },
    },
  };
}

function digestsOf(
  ways: readonly [Uses, Uses],
  clusters: readonly Cluster[],
  artifacts: Readonly<Record<"app" | "fleet" | "more", string>>,
): readonly string[] {
  const [template, override] = ways;
  const ring = { selector: { matchLabels: { ring: "b" } } };
  const spec = syncGroupSpec.parse({
    clusters: { all: true },
    templates: [
      {
        name: "t",
        source: "app",
        apply: { defaultNamespace: "shop" },
        ...fieldsOf(template),
        overrides: [{ clusters: ring, ...fieldsOf(override) }],
      },
    ],
  });
  const owner: PlannedOwner = { type: "SyncGroup", namespace: "shop", name: "web", spec, operations: {} };
  const sources = Object.entries(artifacts).map(
    ([name, digest]) => [name, { status: { artifact: { revision: `main@${digest}`, digest } } }] as const,
  );
  const desired = desiredPlan(owner, new Map(sources));
  if (!desired.ok) throw new Error(desired.message);
  return clusters.map(({ ring, ...values }, index) => {
    const member = { cluster: `c${index}`, uid: "u", labels: { ring }, values };
    const [input] = snapshotTarget(member, desired.plan).inputs;
    if (input === undefined || !("digest" in input)) throw new Error(`it has no input: ${JSON.stringify(input)}`);
    return input.digest;
  });
}

function isUsed({ value, parameter, path, sources }: Uses, what: Change["what"]): boolean {
  if (what === "app") return true;
  if (what === "fleet" || what === "more") return sources.includes(what);
  return [value, parameter, path].includes(what);
}

test.each(propertySeeds)("a change makes another input for exactly the clusters that use it (seed %d)", (seed) => {
  const artifacts = { app: "a", fleet: "f", more: "m" };
  fc.assert(
    fc.property(fc.tuple(uses, uses), fc.array(cluster, { minLength: 1, maxLength: 5 }), change, (ways, fleet, one) => {
      const before = digestsOf(ways, fleet, artifacts);
      const changed = fleet.map((member, index) =>
        "of" in one && one.of % fleet.length === index
          ? { ...member, [one.what]: `${member[one.what]} changed` }
          : member,
      );
      const after = digestsOf(ways, changed, "of" in one ? artifacts : { ...artifacts, [one.what]: "another" });
      const expected = fleet.map(({ ring }, index) => {
        const isTouched = !("of" in one) || one.of % fleet.length === index;
        return isTouched && isUsed(ways[ring === "a" ? 0 : 1], one.what);
      });
      expect(after.map((digest, index) => digest !== before[index])).toEqual(expected);
      // Clusters with the same values for everything that is used have the same input.
      const alike = new Map<string, string>();
      for (const [index, { ring, ...values }] of changed.entries()) {
        const way = ways[ring === "a" ? 0 : 1];
        const used = [way.value, way.parameter, way.path].map((name) => name && values[name]);
        const known = JSON.stringify([way, used]);
        expect(alike.get(known) ?? after[index]).toBe(after[index]);
        alike.set(known, after[index] ?? "");
      }
    }),
    { seed, numRuns: propertyRuns(200) },
  );
});
