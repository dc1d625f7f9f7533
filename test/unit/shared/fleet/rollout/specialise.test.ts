// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { syncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import { overridden, specialisationOf } from "#shared/fleet/rollout/cluster-inputs.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import type { Plan, PlannedTemplate, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

function planned(fields: Readonly<Record<string, unknown>> = {}): PlannedTemplate {
  const { render: _none, ...template } = syncTemplate.parse({ name: "app", source: "app", path: "deploy", ...fields });
  return { ...template, revision: "main@sha1:a", artifactDigest: "sha256:a" };
}

interface Of {
  readonly cluster?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, string>>;
}

function snapshot(template: PlannedTemplate, { cluster = "one", labels = {}, values = {} }: Of = {}): TargetInput {
  const plan: Plan = { templates: [template], planHash: "sha256:c" };
  const [input] = snapshotTarget({ cluster, uid: "u", labels, values }, plan).inputs;
  if (input === undefined) throw new Error("a template without an input");
  return input;
}

function digestOf(template: PlannedTemplate, of: Of): string {
  const input = snapshot(template, of);
  if (!("digest" in input)) throw new Error(JSON.stringify(input));
  return input.digest;
}

/** The variables of a rendering, from the target's snapshot. */
function variablesOf(template: PlannedTemplate, of: Of) {
  const input = snapshot(template, of);
  return "digest" in input ? specialisationOf(overridden(template, input.overrides), input.bound)?.variables : input;
}

describe("the inputs of a template", () => {
  test("the inputs of a template without these fields do not change with the version of Starling", () => {
    // An earlier version computed this digest: an upgrade does not render a fleet again.
    const before = "sha256:441d71e6d29efce0d74a68ff423483ac385ca9deed0627d997a16ae7f92ed9b9";
    expect(snapshot(planned())).toEqual({ digest: before, path: "deploy" });
    expect(snapshot(planned({ substitute: false }))).toEqual({ digest: before, path: "deploy" });
  });

  test("the inputs contain the parameters with their values on the cluster", () => {
    const template = planned({
      parameters: {
        DOMAIN: "app.{{ cluster.values.domain }}",
        REGION: "{{cluster.labels.region | default(eu)}}",
        TIER: "std",
      },
      substitute: true,
    });
    const of = { labels: { region: "us" }, values: { domain: "x.example" } };
    expect(variablesOf(template, of)).toEqual({ DOMAIN: "app.x.example", REGION: "us", TIER: "std" });
    // The snapshot has only the parameters that depend on the cluster; the plan has the others.
    expect(snapshot(template, of)).toMatchObject({ bound: { parameters: { DOMAIN: "app.x.example", REGION: "us" } } });
  });

  test("the problem of a missing key names the key, the cluster, and where to set it", () => {
    const template = planned({ parameters: { DOMAIN: "{{ cluster.values.domain }}" }, substitute: true });
    expect(snapshot(template, { cluster: "prod-1" })).toEqual({
      problem:
        "parameters.DOMAIN: cluster prod-1 has no cluster.values.domain; set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery); or add | default(text)",
    });
  });

  test("the inputs contain the edits and the namespace with its value on the cluster", () => {
    const images = [{ name: "web", newTag: "2" }];
    const template = planned({ images, targetNamespace: "shop-{{ cluster.labels.tier }}" });
    const of = { labels: { tier: "gold" } };
    const input = snapshot(template, of);
    expect(input).toMatchObject({ bound: { namespace: "shop-gold" } });
    expect("digest" in input && specialisationOf(template, input.bound)).toEqual({
      edits: { images },
      namespace: "shop-gold",
    });
    expect(digestOf(template, of)).not.toBe(digestOf(template, { labels: { tier: "std" } }));
    const other = planned({ images: [{ name: "web", newTag: "3" }], targetNamespace: template.targetNamespace });
    expect(digestOf(template, of)).not.toBe(digestOf(other, of));
    expect(snapshot(template, { labels: { tier: "a/b" } })).toEqual({
      problem:
        'targetNamespace is not a valid name for cluster one: "shop-a/b"; use 1 to 63 characters of a-z, 0-9 and -',
    });
  });

  test("a parameter that is not used may be missing", () => {
    const overrides = [{ clusters: { all: true }, substitute: false }];
    const template = planned({ parameters: { A: "{{ cluster.values.a }}" }, substitute: true, overrides });
    const without = snapshot(planned());
    expect(snapshot(template)).toEqual({ ...without, overrides: [0] });
  });

  test("a value that looks like an expression stays data", () => {
    const template = planned({ parameters: { A: "{{ cluster.values.a }}", B: "${A}" }, substitute: true });
    const a = "{{ cluster.name }} ${B} {{ cluster.values.secret }}";
    expect(variablesOf(template, { values: { a, secret: "s" } })).toEqual({ A: a, B: "${A}" });
  });

  test.each(propertySeeds)("a changed value changes the renderings that use it, and no others (seed %i)", (seed) => {
    const keys = ["a", "b", "c"];
    const used = fc.subarray(keys);
    const fleet = fc.array(fc.dictionary(fc.constantFrom(...keys), fc.constantFrom("1", "2", "{{ x }}", "")), {
      minLength: 1,
      maxLength: 8,
    });
    const change = fc.record({ key: fc.constantFrom(...keys), to: fc.constantFrom("1", "2", "3") });
    fc.assert(
      fc.property(used, used, fleet, change, fc.nat(), (asValues, asLabels, values, { key, to }, chosen) => {
        const parameters = Object.fromEntries([
          ...asValues.map((name) => [`V_${name}`, `{{ cluster.values.${name} | default(none) }}`]),
          ...asLabels.map((name) => [`L_${name}`, `{{ cluster.labels.${name} | default(none) }}`]),
        ]);
        const template = planned({ parameters, substitute: true });
        const at = chosen % values.length;
        const before = values.map((mine) => digestOf(template, { values: mine, labels: mine }));
        const after = values.map((mine, index) =>
          digestOf(template, { values: index === at ? { ...mine, [key]: to } : mine, labels: mine }),
        );
        const isOther = asValues.includes(key) && (values[at]?.[key] ?? "none") !== to;
        expect(after.map((digest, index) => digest !== before[index])).toEqual(
          values.map((_, index) => index === at && isOther),
        );
        // Clusters with the same values for everything that is used share one rendering.
        const desired = new Set(
          values.map((mine) => JSON.stringify([...asValues, "", ...asLabels].map((name) => mine[name] ?? "none"))),
        );
        expect(new Set(before).size).toBe(desired.size);
      }),
      { seed, numRuns: propertyRuns(200) },
    );
  });
});
