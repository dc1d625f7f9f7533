/**
 * Mistakes that people make in their first folder: each is reported with its file or field, the problem, and what to
 * do.
 */
import { expect, test } from "vitest";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type RenderRequest, renderObjects } from "#shared/adapters/render/render-objects.ts";

const searchPath = process.env.PATH ?? "";
const renderers = {
  kustomize: new KubectlKustomize({ kubectl: () => locateKubectl(searchPath) }),
  helm: new HelmTemplate({ helm: () => locateHelm(searchPath) }),
};

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { replicas: 1 }\n";
const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
const elsewhere =
  /read as manifests: move the file, choose a path without it, or list the manifests in a kustomization\.yaml$/;

type Files = Readonly<Record<string, string | Uint8Array>>;

function rendered(files: Files, path: string, rest: Partial<RenderRequest> = {}) {
  const encoder = new TextEncoder();
  const tree = Object.entries(files).map(([name, text]) => ({
    path: name,
    content: typeof text === "string" ? encoder.encode(text) : text,
    executable: false,
  }));
  return renderObjects({ files: tree, path, ...rest }, renderers);
}

/** Legend: the mistake, the files, the path, the message. */
const mistakes: readonly (readonly [string, Files, string, RegExp])[] = [
  [
    "a values file of a chart among manifests",
    { "k/a.yaml": settings, "k/values.yaml": "replicas: 3\n" },
    "k",
    /^k\/values\.yaml:1, document 1: is not a Kubernetes object \(it has neither apiVersion nor kind, and begins with "replicas"\)/,
  ],
  ["a Compose file", { "k/docker-compose.yaml": "services: { a: { image: b } }\n" }, "k", elsewhere],
  [
    "an empty map",
    { "k/a.json": "{}" },
    "k",
    /^k\/a\.json:1, document 1: is not a Kubernetes object \(.*, and is empty\)/,
  ],
  [
    "a document of Starling's own",
    { "k/group.yaml": "apiVersion: starling.dev/v1alpha1\nkind: SyncGroup\nmetadata: { name: a }\n" },
    "k",
    /^k\/group\.yaml:1, document 1, SyncGroup.*: is an object of Starling, which no cluster knows; run `starling apply -f k\/group\.yaml`, and move the file out of the path$/,
  ],
  [
    "the path of a file instead of a folder",
    { "k/deep/a.yaml": settings },
    "k/deep/a.yaml",
    /^k\/deep\/a\.yaml: is a file; set the path of a folder, such as k\/deep$/,
  ],
  [
    "the path of a missing folder",
    { "deploy/a.yaml": settings, "charts/x/a.yaml": settings, "README.md": "" },
    "manifests",
    /^manifests: is not a folder of the artifact, which has charts, deploy; /,
  ],
  [
    "the path of a folder with several overlays",
    {
      "k/base/kustomization.yaml": "resources: [a.yaml]\n",
      "k/base/a.yaml": settings,
      "k/dev/kustomization.yaml": "resources: [../base]\n",
    },
    "k",
    /^k\/dev \(as built by kustomize\).*ConfigMap a: is also in k\/base \(as built.*; each kustomization below the path is built: set the path to one of them, such as k\/dev$/,
  ],
  [
    "a Component alone, without objects",
    { "k/kustomization.yaml": `${component}images: [{ name: x, newTag: v1 }]\n` },
    "k",
    /^k: contains no objects; it is a Component, which kustomize only includes in other kustomizations; name it in the template's spec.components/,
  ],
  [
    "a Component alone, with a patch",
    { "k/kustomization.yaml": `${component}patches: [{ path: p.yaml }]\n`, "k/p.yaml": web },
    "k",
    /^k: kustomize: no resource matches .*; it is a Component, which kustomize only includes in other kustomizations; name it in the template's spec.components/,
  ],
  [
    "a patch of a missing object, after a warning",
    {
      "k/kustomization.yaml": "commonLabels: { a: b }\nresources: [a.yaml]\npatches: [{ path: p.yaml }]\n",
      "k/a.yaml": web,
      "k/p.yaml": web.replace("web", "wbe"),
    },
    "k",
    /^k: kustomize: no resource matches .*Deployment\.v1\.apps\/wbe.*; correct the patch's kind, name or namespace, or leave it out$/,
  ],
  [
    "a JSON patch without quotes",
    {
      "k/kustomization.yaml":
        "resources: [a.yaml]\npatches: [{ target: { kind: Deployment }, patch: '[{op: replace, path: /spec/replicas, value: 3}]' }]\n",
      "k/a.yaml": web,
    },
    "k",
    /^k: kustomize: .*unable to parse SM or JSON patch; kustomize reads a patch that begins with \[ as JSON, so that it needs names and texts in double quotes/,
  ],
  [
    "a file in another folder",
    { "k/kustomization.yaml": "resources: [../b/a.yaml]\n", "b/a.yaml": settings },
    "k",
    /^k: kustomize: .*security; file .*; a kustomization may only name files in its own folder and below: add a kustomization\.yaml to the other folder, and name that folder$/,
  ],
  [
    "an unknown field",
    { "k/kustomization.yaml": "resource: [a.yaml]\n", "k/a.yaml": settings },
    "k",
    /^k: kustomize: .*unknown field "resource"/,
  ],
  [
    "a folder without a kustomization as a resource",
    { "k/kustomization.yaml": "resources: [sub]\n", "k/sub/a.yaml": settings },
    "k",
    /^k\/kustomization\.yaml, resources\[0\]: "sub" has no kustomization\.yaml; add one, or name the folder's files$/,
  ],
  [
    "a file with an excluded extension",
    { "k/kustomization.yaml": "configMapGenerator: [{ name: a, files: [data.tar.gz] }]\n" },
    "k",
    /^k\/kustomization\.yaml, configMapGenerator\[0\]\.files\[0\]: "data\.tar\.gz" is never part of an artifact, because of its name or extension; rename it$/,
  ],
  [
    "a template expression of a chart as a value",
    { "k/a.yaml": `${settings}data:\n  x: {{ .Values.x }}\n` },
    "k",
    /^k\/a\.yaml:1:1: \{\{ in line 5 begins a map inside a map; put a text that contains \{\{ in quotes, or move the template of a chart into a chart \(/,
  ],
  [
    "a template condition of a chart around an object",
    { "k/a.yaml": `{{- if .Values.x }}\n${settings}{{- end }}\n` },
    "k",
    /^k\/a\.yaml:1:3: \{\{ in line 1 begins a map inside a map; put a text/,
  ],
  [
    "a template expression in the middle of a text",
    { "k/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.x }}-a\n" },
    "k",
    /^k\/a\.yaml:4:[0-9]+: \{\{ in line 4 begins a map inside a map; put a text/,
  ],
  [
    "a file in UTF-16",
    { "k/a.yaml": Uint8Array.from([0xff, 0xfe, 0x61, 0, 0x3a, 0, 0x20, 0, 0x62, 0]) },
    "k",
    /^k\/a\.yaml: is not UTF-8; save it as UTF-8$/,
  ],
];

test.each(mistakes)("%s is an error with the place and the next step", async (_what, files, path, message) => {
  await expect(rendered(files, path)).rejects.toThrow(message);
});

const chart = { "c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/templates/a.yaml": settings };
const helm = { render: { helm: { releaseName: "c", namespace: "default", crds: "CreateReplace" } } };

const ofCharts: readonly (readonly [string, Files, RegExp])[] = [
  [
    "without a version",
    { ...chart, "c/Chart.yaml": "apiVersion: v2\nname: c\n" },
    /^c\/Chart\.yaml, version: is missing; give the chart a version, such as 1\.0\.0$/,
  ],
  [
    "whose values are a list",
    { ...chart, "c/values.yaml": "- a\n" },
    /^c\/values\.yaml:1: values must be a map, such as `replicas: 2`$/,
  ],
  [
    "whose template reads a member of a missing value",
    { ...chart, "c/templates/b.yaml": `${settings}data: { tag: {{ .Values.image.tag }} }\n` },
    /^c\/templates\/b\.yaml:4:[0-9]+: at <\.Values\.image\.tag>: nil pointer evaluating interface \{\}\.tag; the value before \.tag is not set: set it in render\.helm\.values or in a file of render\.helm\.valuesFrom$/,
  ],
];

test.each(ofCharts)("a chart %s is an error with the place and the next step", async (_what, files, message) => {
  await expect(rendered(files, "c", helm as Partial<RenderRequest>)).rejects.toThrow(message);
});

test("a hook with generateName gets a name before kustomize runs, because kustomize requires one", async () => {
  const hook =
    "apiVersion: batch/v1\nkind: Job\nmetadata: { generateName: before-, annotations: { argocd.argoproj.io/hook: PreSync } }\n";
  const specialise = { namespace: "shop", edits: {} };
  const { objects } = await rendered({ "k/a.yaml": settings, "k/b.yaml": hook }, "k", { specialise });
  expect(objects.map(({ kind, metadata }) => [kind, metadata.namespace, metadata.name])).toEqual([
    ["ConfigMap", "shop", "a"],
    ["Job", "shop", expect.stringMatching(/^before-[0-9a-f]{7}$/)],
  ]);
});
