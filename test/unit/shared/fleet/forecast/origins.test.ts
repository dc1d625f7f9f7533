import { expect, test } from "vitest";
import { maskedOrigins } from "#shared/fleet/forecast/masked-origins.ts";
import { originsOf } from "#shared/fleet/forecast/origins.ts";
import { syncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import { helmOptions } from "#shared/source/helm/helm-options.ts";

const parsed = syncTemplate.parse({
  name: "app",
  source: "app",
  path: "apps/{{ cluster.labels.tier }}",
  targetNamespace: "shop",
  substitute: true,
  parameters: {
    DOMAIN: "{{ cluster.values.domain }}",
    ZONE: "{{ cluster.values.zone | default(a) }}",
    SIZE: "1",
    OWN: "{{ cluster.values.own }}/{{ cluster.name }}",
    FOUND: "{{ cluster.values.found }}",
  },
  overrides: [
    { clusters: { all: true }, parameters: { SIZE: "2" } },
    { clusters: { names: ["other"] }, parameters: { SIZE: "9" } },
    { clusters: { names: ["one"] }, parameters: { SIZE: "3" }, targetNamespace: "own" },
  ],
});
const { render: _render, ...template } = parsed;
const planned = { ...template, revision: "main@sha1:a", artifactDigest: "sha256:a" };

test("each input of a rendering has its origin", () => {
  const cluster = {
    name: "one",
    labels: { tier: "gold" },
    values: { own: "me", found: "tag", domain: "of a tag" },
    discoveredValues: ["found", "domain"],
  };
  const layer = (name: string, domain: string) => ({
    name,
    spec: { clusters: { all: true as const }, priority: 1, values: { domain } },
  });
  const origins = originsOf(planned, {
    cluster,
    layers: [layer("low", "low.example"), layer("high", "high.example")],
  });
  expect(origins).toEqual([
    { field: "path", value: "apps/gold", from: ["template", "cluster.labels.tier"] },
    { field: "targetNamespace", value: "own", from: ["overrides[2]"] },
    {
      field: "parameters.DOMAIN",
      value: "high.example",
      from: ["template", "cluster.values.domain: clustervalues/high"],
    },
    { field: "parameters.ZONE", value: "a", from: ["template", "cluster.values.zone: default"] },
    { field: "parameters.SIZE", value: "3", from: ["overrides[2]"] },
    { field: "parameters.OWN", value: "me/one", from: ["template", "cluster.values.own: cluster/one", "cluster.name"] },
    { field: "parameters.FOUND", value: "tag", from: ["template", "cluster.values.found: clusterdiscovery"] },
    { field: "substitute", value: "true", from: ["template"] },
  ]);
});

const chart = {
  ...planned,
  targetNamespace: undefined,
  parameters: {},
  substitute: undefined,
  path: "charts/shop",
  render: {
    helm: helmOptions.parse({
      values: { replicas: 2, "odd.key": [1], db: { host: "{{ cluster.values.host }}", port: 1 } },
      valuesFrom: [{ path: "env/all.yaml" }, { path: "env/{{ cluster.labels.tier }}.yaml", optional: true }],
    }),
  },
  overrides: [
    { clusters: { names: ["one"] }, namePrefix: "x-", images: [{ name: "web", newTag: "2" }] },
    { clusters: { names: ["other"] }, namePrefix: "y-" },
  ],
};

test("each value of a chart names the file or the template that set it last", () => {
  const cluster = { name: "one", labels: { tier: "gold" }, values: { host: "db.example" } };
  const files = new Map<number, unknown>([
    [0, { replicas: 1, colour: "red", db: { host: "localhost", user: "app" }, flat: { a: 1 }, whole: 1 }],
    [1, { colour: "green", flat: 2, whole: { b: 1 } }],
  ]);
  const lines = originsOf(chart, { cluster, layers: [], files }).map(
    ({ field, value, from }) => `${field} = ${value} (${from.join(" <- ")})`,
  );
  expect(lines).toEqual([
    "path = charts/shop (template)",
    "namePrefix = x- (overrides[0])",
    'images = [{"name":"web","newTag":"2"}] (overrides[0])',
    "render.helm.valuesFrom[0] = env/all.yaml (template)",
    "render.helm.valuesFrom[1] = env/gold.yaml (template <- cluster.labels.tier)",
    "render.helm.values.db.user = app (template <- valuesFrom[0]: env/all.yaml)",
    "render.helm.values.colour = green (template <- valuesFrom[1]: env/gold.yaml)",
    "render.helm.values.flat = 2 (template <- valuesFrom[1]: env/gold.yaml)",
    "render.helm.values.whole.b = 1 (template <- valuesFrom[1]: env/gold.yaml)",
    "render.helm.values.replicas = 2 (template)",
    'render.helm.values["odd.key"] = [1] (template)',
    "render.helm.values.db.host = db.example (template <- cluster.values.host: cluster/one)",
    "render.helm.values.db.port = 1 (template)",
  ]);
});

test("a value that is in a Secret is masked, whatever set it", () => {
  const origin = (field: string, value: string) => ({ field, value, from: ["template"] });
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    data: { a: Buffer.from("hunter2").toString("base64"), d: "7" },
    stringData: { dsn: "postgres://u:swordfish@db" },
  };
  const origins = [
    origin("parameters.PASSWORD", "hunter2"),
    origin("parameters.PART", "swordfish"),
    origin("patches", '[{"patch":"stringData: {dsn: \\"postgres://u:swordfish@db\\"}"}]'),
    origin("patches", '[{"patch":"x","target":{"name":"hunter2"}}]'),
    origin("parameters.DIGIT", "7"),
    origin("parameters.TIER", "gold"),
    origin("parameters.NONE", ""),
  ];
  const plan = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "gold" } };
  expect(maskedOrigins(origins, [secret, plan]).map(({ value }) => value)).toEqual([
    "***",
    "***",
    "***",
    "***",
    "***",
    "gold",
    "",
  ]);
  expect(maskedOrigins(origins, [{ ...secret, kind: "ConfigMap" }])).toEqual(origins);
  const { stringData, data: _data, ...rest } = secret;
  const [, part] = origins;
  expect(maskedOrigins(part === undefined ? [] : [part], [{ ...rest, stringdata: stringData }])[0]?.value).toBe("***");
});

test.each([
  {
    how: "indented",
    value: "-----BEGIN\nabcdefgh\n-----END\n",
    text: "key: |\n  -----BEGIN\n  abcdefgh\n  -----END\n",
  },
  { how: "quoted", value: 'hun"ter2', text: '{"password":"hun\\"ter2"}' },
  { how: "in an address", value: "hunt/er2", text: "postgres://u:hunt%2Fer2@db" },
  {
    how: "in the login of a registry",
    value: "hunter2",
    text: `{"auth":"${Buffer.from("u:hunter2").toString("base64")}"}`,
  },
])("a value that is in a Secret in another notation is masked: $how", ({ value, text }) => {
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { text, none: "" } };
  const plan = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "gold plan" } };
  const origins = [value, "gold plan", " "].map((each) => ({ field: "parameters.A", value: each, from: ["template"] }));
  expect(maskedOrigins(origins, [secret, plan]).map((origin) => origin.value)).toEqual(["***", "gold plan", " "]);
});

test("values that a template may have put into a Secret or into a left-out object are masked", () => {
  const origin = (field: string, value: string) => ({ field, value, from: ["template"] });
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    stringData: { p: "HUNTER2", q: "b1b3773a" },
  };
  const open = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "m" },
    data: { plan: "the gold plan", port: 8443 },
  };
  const origins = [
    origin("parameters.PASSWORD", "hunter2"),
    origin("render.helm.values.pin", "1234567"),
    origin("render.helm.values.list", '["gold","swordfish"]'),
    origin("render.helm.values.plan", "gold plan"),
    origin("render.helm.values.port", "8443"),
    origin("render.helm.values.enabled", "true"),
    origin("path", "charts/shop"),
  ];
  const hidden = ["***", "***", "***", "gold plan", "8443", "true", "charts/shop"];
  expect(maskedOrigins(origins, [secret, open] as never).map(({ value }) => value)).toEqual(hidden);
  expect(maskedOrigins(origins, [open] as never, "something").map(({ value }) => value)).toEqual(hidden);
  expect(maskedOrigins(origins, [open] as never)).toEqual(origins);
});
