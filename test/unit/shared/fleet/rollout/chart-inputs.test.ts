import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { syncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import { buildOptionsOf } from "#shared/fleet/rollout/cluster-inputs.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { Plan, PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

type Helm = Readonly<Record<string, unknown>>;

function planned(helm: Helm, more: Readonly<Record<string, unknown>> = {}): PlannedTemplate {
  const { render, ...template } = syncTemplate.parse({
    name: "shop",
    source: "app",
    path: "charts/shop",
    render: { helm },
    apply: { defaultNamespace: "web" },
    ...more,
  });
  if (render === undefined) throw new Error("it has options");
  return { ...template, render, revision: "main@sha1:a", artifactDigest: "sha256:a" };
}

interface Of {
  readonly labels?: Readonly<Record<string, string>>;
  readonly values?: FleetRow["values"];
}

/** The input in the snapshot of a cluster's target, and the chart options of its rendering. */
function inputOf(template: PlannedTemplate, { labels = {}, values = {} }: Of = {}) {
  const plan: Plan = { templates: [template], planHash: "sha256:c" };
  const [input] = snapshotTarget({ cluster: "one", uid: "u", labels, values }, plan).inputs;
  if (input === undefined || "disabled" in input) throw new Error("it is not disabled");
  if ("problem" in input) return { problem: input.problem };
  return { digest: input.digest, bound: input.bound, helm: buildOptionsOf(template, input.bound)?.helm };
}

describe("the input of a chart", () => {
  test("a chart is rendered with the template's name as release, in its namespace", () => {
    expect(inputOf(planned({})).helm).toEqual({
      releaseName: "shop",
      namespace: "web",
      crds: "CreateReplace",
      lookup: "Refuse",
      hooks: "Honor",
    });
    expect(inputOf(planned({ releaseName: "other", crds: "Skip" })).helm).toMatchObject({
      releaseName: "other",
      crds: "Skip",
    });
  });

  test("a file of values may have the name of a JavaScript member", () => {
    const { helm } = inputOf(
      planned({ valuesFrom: [{ path: "constructor" }, { path: "__proto__" }, { path: "toString" }] }),
    );
    expect(helm?.valuesFrom?.map(({ path }) => path)).toEqual(["constructor", "__proto__", "toString"]);
  });

  test("an expression that is a whole value is replaced by the cluster's value", () => {
    const values = {
      host: "{{ cluster.values.domain }}",
      tier: "{{cluster.values.tier | default(std)}}",
      list: [{ name: "{{ cluster.name }}" }, "x {{ cluster.name }}", "{{ $labels.pod }}", "{{ .Values.a }}", 3, null],
    };
    const { helm, bound } = inputOf(planned({ values }), { values: { domain: 'a"\n{{ now }}' } });
    expect(JSON.parse(helm?.values ?? "")).toEqual({
      host: 'a"\n{{ now }}',
      tier: "std",
      list: [{ name: "one" }, "x {{ cluster.name }}", "{{ $labels.pod }}", "{{ .Values.a }}", 3, null],
    });
    expect(bound).toEqual({
      texts: {
        "{{ cluster.values.domain }}": 'a"\n{{ now }}',
        "{{cluster.values.tier | default(std)}}": "std",
        "{{ cluster.name }}": "one",
      },
    });
  });

  test("a value from a cluster keeps its type", () => {
    const values = { replicas: 3, spot: false, hosts: ["a", { b: "{{ now }}" }], zone: { name: "{{ cluster.name }}" } };
    const names = ["replicas", "spot", "hosts", "zone"];
    const desired = Object.fromEntries(names.map((name) => [name, `{{ cluster.values.${name} }}`]));
    const { helm } = inputOf(planned({ values: { ...desired, text: "{{ cluster.values.none | default(3) }}" } }), {
      values,
    });
    expect(JSON.parse(helm?.values ?? "")).toEqual({ ...values, text: "3" });
  });

  test("parameters in values are evaluated once", () => {
    const parameters = { HOST: "shop.{{ cluster.values.domain }}", unused: "{{ cluster.values.none }}" };
    const template = planned(
      { values: { host: "{{ params.HOST }}" }, valuesFrom: [{ path: "env/{{ params.HOST }}.yaml" }] },
      { parameters },
    );
    const { helm } = inputOf(template, { values: { domain: "{{ cluster.name }}" } });
    expect(helm).toMatchObject({
      values: '{"host":"shop.{{ cluster.name }}"}',
      valuesFrom: [{ path: "env/shop.{{ cluster.name }}.yaml" }],
    });
  });

  test("the paths of values files may depend on the cluster", () => {
    const valuesFrom = [{ path: "all.yaml" }, { path: "env/{{ cluster.labels.env }}.yaml", optional: true }];
    expect(inputOf(planned({ valuesFrom }), { labels: { env: "prod" } }).helm?.valuesFrom).toEqual([
      { path: "all.yaml", optional: false },
      { path: "env/prod.yaml", optional: true },
    ]);
  });

  test.each([
    ["is the version of the cluster", {}, { "starling.dev/version": "1.34" }, "1.34"],
    ["is the version of the template", { kubeVersion: "1.31" }, { "starling.dev/version": "1.34" }, "1.31"],
    ["is none if nothing is known", {}, {}, undefined],
    ["is none if the label is not a version", {}, { "starling.dev/version": "newest" }, undefined],
  ])("the Kubernetes version for a chart %s", (_legend, helm, labels, expected) => {
    expect(inputOf(planned(helm), { labels }).helm?.kubeVersion).toBe(expected);
  });
});

describe("the digest of an input", () => {
  const template = planned({ values: { host: "{{ cluster.values.domain }}" } });

  test("clusters with the same values for everything that is used share an input", () => {
    const { digest } = inputOf(template, { values: { domain: "a", other: "1" }, labels: { ring: "canary" } });
    expect(inputOf(template, { values: { domain: "a", other: "2" }, labels: { ring: "rest" } }).digest).toBe(digest);
    expect(
      inputOf(planned({ values: { host: "{{ cluster.values.domain }}" } }), { values: { domain: "a" } }).digest,
    ).toBe(digest);
  });

  test("everything that a chart sees changes its input", () => {
    const of = { values: { domain: "a" }, labels: { "starling.dev/version": "1.34" } };
    const host = { values: { host: "{{ cluster.values.domain }}" } };
    const all = [
      inputOf(template, of),
      inputOf(template, { ...of, values: { domain: "b" } }),
      inputOf(template, { ...of, labels: { "starling.dev/version": "1.35" } }),
      inputOf(planned({ ...host, releaseName: "x" }), of),
      inputOf(planned({ ...host, crds: "Skip" }), of),
      inputOf(planned({ ...host, lookup: "Empty" }), of),
      inputOf(planned({ ...host, hooks: "Omit" }), of),
      inputOf(planned({ ...host, apiVersions: ["a.example.com/v1"] }), of),
      inputOf(planned({ ...host, valuesFrom: [{ path: "a.yaml" }] }), of),
      inputOf(planned({ values: { host: "a" } }), of),
      inputOf(planned(host, { apply: { defaultNamespace: "other" } }), of),
      inputOf(planned(host, { name: "other" }), of),
    ];
    expect(new Set(all.map(({ digest }) => digest)).size).toBe(all.length);
  });

  test("an input changes with an artifact that its values come from, and not with other artifacts", () => {
    const valuesFrom = [{ path: "a.yaml" }, { source: "fleet", path: "env/{{ cluster.labels.env }}.yaml" }];
    const pins = (digest: string, revision = "main@sha1:b") => [
      { source: "fleet", revision, artifactDigest: digest },
      { source: "unused", revision, artifactDigest: `of ${digest}` },
    ];
    const overrides = [{ clusters: { names: ["two"] }, render: { helm: { valuesFrom: [{ path: "a.yaml" }] } } }];
    const of = { labels: { env: "prod" } };
    const seen = (besides: PlannedTemplate["besides"], name = "one") => {
      const plan: Plan = { templates: [{ ...planned({ valuesFrom }, { overrides }), besides }], planHash: "c" };
      const [input] = snapshotTarget({ cluster: name, uid: "u", values: {}, ...of }, plan).inputs;
      if (input === undefined || !("digest" in input)) throw new Error("it is rendered");
      return input.digest;
    };
    const first = seen(pins("sha256:b"));
    expect(seen(pins("sha256:c"))).not.toBe(first);
    expect(seen(pins("sha256:b", "main@sha1:other"))).toBe(first);
    expect(seen([...pins("sha256:b").slice(0, 1)])).toBe(first);
    // A cluster whose override has no such file keeps its input.
    expect(seen(pins("sha256:c"), "two")).toBe(seen(pins("sha256:b"), "two"));
    expect(inputOf({ ...planned({ valuesFrom }), besides: pins("sha256:b") }, of).helm?.valuesFrom).toEqual([
      { path: "a.yaml", optional: false },
      { path: "env/prod.yaml", optional: false, from: { source: "fleet", artifactDigest: "sha256:b" } },
    ]);
  });

  test("the input of plain manifests does not depend on the version of the cluster", () => {
    const { render: _render, ...plain } = template;
    expect(inputOf(plain, { labels: { "starling.dev/version": "1.34" } })).toEqual(inputOf(plain));
  });
});

test.each([
  [
    "a value",
    { values: { host: "{{ cluster.values.domain }}" } },
    {},
    "render.helm.values: cluster one has no cluster.values.domain; set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery); or add | default(text)",
  ],
  [
    "a label of a path",
    { valuesFrom: [{ path: "{{ cluster.labels.env }}.yaml" }] },
    {},
    "render.helm.valuesFrom[0].path: cluster one has no cluster.labels.env; set the label on the Cluster (metadata.labels), or take it from a tag (spec.labels.fromTags of its ClusterDiscovery); or add | default(text)",
  ],
  [
    "a path inside the artifact",
    { valuesFrom: [{ path: "{{ cluster.values.a }}/b.yaml" }] },
    { values: { a: ".." } },
    'render.helm.valuesFrom[0].path: "../b.yaml" for cluster one leads out of the artifact; correct its values',
  ],
])("a cluster without %s has a problem that names it", (_legend, helm, of, problem) => {
  expect(inputOf(planned(helm), of)).toEqual({ problem });
});

test.each(propertySeeds)(
  "no value of a cluster becomes structure, another expression or another value (seed %d)",
  (seed) => {
    const values = {
      host: "{{ cluster.values.a }}",
      list: [{ x: "{{ cluster.values.b }}" }],
      kept: "{{ $labels.pod }}",
    };
    const template = planned({ values });
    const text = fc.oneof(
      fc.string(),
      fc.constantFrom(
        "{{ cluster.values.b }}",
        "{{ cluster.name }}",
        '"}, {"',
        "__proto__",
        "\n---\n",
        "{{ now }}",
        "null",
      ),
    );
    fc.assert(
      fc.property(text, text, (a, b) => {
        const { helm } = inputOf(template, { values: { a, b } });
        expect(JSON.parse(helm?.values ?? "")).toEqual({ host: a, list: [{ x: b }], kept: "{{ $labels.pod }}" });
      }),
      { seed, numRuns: propertyRuns(200) },
    );
  },
);

test("a chart without a namespace has a problem that names the field", () => {
  expect(inputOf(planned({}, { apply: {} })).problem).toMatch(/^apply\.defaultNamespace: is required for a Helm chart/);
});
