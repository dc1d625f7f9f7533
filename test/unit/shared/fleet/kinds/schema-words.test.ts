import { expect, test } from "vitest";
import { parseDocument } from "#shared/fleet/kinds/document.ts";

const apiVersion = "starling.dev/v1alpha1";
const metadata = { name: "web", namespace: "shop" };
const git = { url: "https://git.example/app" };
const source = (more: object, spec: object = { git }) => ({ apiVersion, kind: "Source", metadata, spec, ...more });
const group = (spec: object) => ({
  ...{ apiVersion, kind: "SyncGroup", metadata },
  spec: { clusters: { all: true }, templates: [{ name: "app", source: "app" }], ...spec },
});

test.each<[string, unknown, string]>([
  [
    "a number for a text",
    source({ metadata: { ...metadata, name: 7 } }),
    "metadata.name must be a text: put it in quotes (got 7)",
  ],
  [
    "a truth value for a text",
    source({ metadata: { ...metadata, labels: { on: true } } }),
    "metadata.labels.on must be a text: put it in quotes (got true)",
  ],
  [
    "a text for a list",
    source({}, { git, paths: "deploy" }),
    'spec.paths must be a list such as [a, b] (got "deploy")',
  ],
  ["a list for a map", source({}, { git: [] }), "spec.git must be a map of fields (got [])"],
  ["no text", source({}, { git: {} }), "spec.git.url is required: the address, such as https://github.com/acme/shop"],
  [
    "no map",
    { apiVersion, kind: "Cluster", metadata: { name: "eu" }, spec: { endpoint: { server: "https://10.0.0.1" } } },
    "spec.endpoint.token is required: a map of fields",
  ],
  ["no origin", source({}, {}), "spec needs exactly one of git, helm, oci, s3, archive or external (got {})"],
  [
    "an empty list",
    group({ clusters: { names: [] } }),
    "spec.clusters.names must have at least 1 item: write one, or leave the field out (got [])",
  ],
  [
    "an unknown operator",
    group({ clusters: { selector: { matchExpressions: [{ key: "a", operator: "in", values: ["b"] }] } } }),
    'spec.clusters.selector.matchExpressions[0].operator must be one of In, NotIn, Exists, DoesNotExist (got "in")',
  ],
])("the problem of %s names the field, the value and the remedy in Starling's words", (_, document, expected) => {
  const parsed = parseDocument(document);
  expect(parsed.ok ? [] : parsed.problems.map(({ field, message }) => `${field} ${message}`)).toContain(expected);
});

test("a text with several problems has the first one only, because the remedy is another text", () => {
  const problemsOf = (document: unknown) => {
    const parsed = parseDocument(document);
    return parsed.ok ? [] : parsed.problems.map(({ field, message }) => `${field} ${message}`);
  };
  const template = { name: "app", source: "app", revision: "^1.2" };
  expect(problemsOf(group({ templates: [template] }))).toEqual([
    'spec.templates[0].revision is a range or a list of versions; a template stays at one revision; to follow a branch or a range, set it in the ref of a Source (got "^1.2")',
  ]);
  expect(problemsOf(source({}, { git: { ...git, ref: { tag: "" } } }))).toEqual([
    'spec.git.ref.tag must not be empty (got "")',
  ]);
  // A map has all of its problems: each has a remedy of its own.
  expect(problemsOf(source({}, { git: { ...git, ref: { brnach: "main" } } }))).toHaveLength(2);
});

test.each([
  ["Flux's secretRef", { git: { url: "https://git.example/app", secretRef: {} } }, "spec.git.secretRef", "credentials"],
  [
    "the version of a chart",
    { helm: { url: "oci://r.example/a", chart: "b", version: "1" } },
    "spec.helm.version",
    "ref",
  ],
  [
    "Argo CD's revision",
    { git: { url: "https://git.example/app", targetRevision: "x" } },
    "spec.git.targetRevision",
    "ref",
  ],
])("%s leads to the field that means the same", (_, spec, field, meant) => {
  const parsed = parseDocument(source({}, spec));
  const problems = parsed.ok ? [] : parsed.problems;
  expect(problems).toContainEqual({
    field,
    message: `is not a field Starling knows (did you mean ${meant}?); remove it`,
  });
});
