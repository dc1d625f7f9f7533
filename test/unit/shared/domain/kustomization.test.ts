import { describe, expect, test } from "vitest";
import { checkKustomization } from "#shared/domain/kustomization.ts";
import { ManifestError } from "#shared/domain/manifest-error.ts";

function filesOf(contents: Readonly<Record<string, string>>) {
  return new Map(
    Object.entries(contents).map(([path, text]) => [
      path,
      { path, executable: false, content: new TextEncoder().encode(text) },
    ]),
  );
}

const artifact = {
  "base/kustomization.yaml": "resources: [a.yaml]",
  "base/a.yaml": "kind: A",
  "component/Kustomization": "kind: Component\npatches: [{path: p.yaml}]",
  "component/p.yaml": "kind: A",
  "plain/a.yaml": "kind: A",
  "app/a.yaml": "kind: A",
  "app/values.env": "A=b",
  "app/schema.json": "{}",
  "app/prefix.yaml":
    "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: x-\nfieldSpecs: [{path: metadata/name}]",
  "app/exec.yaml":
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p, annotations: {config.kubernetes.io/function: 'exec: {path: x}'}}",
  "app/function.yaml":
    "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p, annotations: {config.kubernetes.io/function: 'container: {image: x}'}}",
  "app/chart.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: p}",
  "app/remote-patch.yaml":
    "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: http://127.0.0.1/x.yaml",
};

function check(kustomization: string): void {
  checkKustomization(filesOf({ ...artifact, "app/kustomization.yaml": kustomization }), "app");
}

const allowed: readonly (readonly [legend: string, kustomization: string])[] = [
  ["files and folders", "resources: [a.yaml, ../base, ./a.yaml, ../base/]\ncomponents: [../component]"],
  ["the old name for folders", "bases: [../base]"],
  [
    "patches in files and in place",
    "patches:\n- path: a.yaml\n- target: {kind: A}\n  patch: |\n    - op: add\n      path: /a\n      value: https://example.com",
  ],
  [
    "merge patches in files and in place",
    "patchesStrategicMerge:\n- a.yaml\n- |\n  kind: A\n  url: https://example.com",
  ],
  ["JSON patches", "patchesJson6902: [{target: {kind: A}, path: a.yaml}]"],
  ["replacements", "replacements:\n- path: a.yaml\n- source: {kind: A}\n  targets: [{fieldPaths: [spec.x]}]"],
  [
    "generators of ConfigMaps and Secrets",
    "configMapGenerator: [{name: a, files: [a.yaml, k=a.yaml], envs: [values.env], literals: [URL=https://example.com]}]\nsecretGenerator: [{name: a, env: values.env}]",
  ],
  ["a schema", "openapi: {path: schema.json}"],
  [
    "plugins that are built in",
    "transformers:\n- prefix.yaml\n- |\n  apiVersion: builtin\n  kind: LabelTransformer\n  metadata: {name: l}\n  fieldSpecs: [{path: metadata/labels, create: true}]",
  ],
  ["URLs where they are text", "commonAnnotations: {docs: https://example.com}\nimages: [{name: a, newName: https}]"],
  ["no charts", "helmCharts: []"],
];

const refused: readonly (readonly [legend: string, kustomization: string, message: string])[] = [
  [
    "an http resource",
    "resources: [http://127.0.0.1/x.yaml]",
    'app/kustomization.yaml, resources[0]: "http://127.0.0.1/x.yaml" is remote',
  ],
  ["an https resource", "resources: [a.yaml, https://example.com/x.yaml]", "resources[1]"],
  ["a resource under a name in other letters", "Resources: [http://127.0.0.1/x.yaml]", "is remote"],
  ["a resource under a name that folds to it", "re\u017fources: [http://127.0.0.1/x.yaml]", "is remote"],
  ["a git base", "resources: ['github.com/acme/base?ref=main']", "is not in the artifact"],
  ["a git base over ssh", "bases: ['git@github.com:acme/base']", "is remote"],
  ["a git base with a prefix", "resources: ['git::https://github.com/acme/base']", "is remote"],
  ["a file scheme", "resources: ['file:///etc/passwd']", "is remote"],
  ["a remote component", "components: [https://github.com/acme/c]", "components[0]"],
  ["a remote CRD", "crds: [http://127.0.0.1/x]", "crds[0]"],
  ["a remote schema", "openapi: {path: http://127.0.0.1/x}", "openapi.path"],
  ["a remote patch", "patches: [{path: http://127.0.0.1/x}]", "patches[0].path"],
  ["a remote patch in the old spelling", "patches: [http://127.0.0.1/x]", "patches[0]"],
  ["a remote merge patch", "patchesStrategicMerge: [http://127.0.0.1/x]", "patchesStrategicMerge[0]"],
  ["a remote JSON patch", "patchesJson6902: [{path: http://127.0.0.1/x}]", "patchesJson6902[0].path"],
  ["a remote replacement", "replacements: [{path: http://127.0.0.1/x}]", "replacements[0].path"],
  ["a remote configuration", "configurations: [http://127.0.0.1/x]", "configurations[0]"],
  [
    "a remote file of a ConfigMap",
    "configMapGenerator: [{name: a, files: ['k=http://127.0.0.1/x']}]",
    "configMapGenerator[0].files[0]",
  ],
  [
    "a remote environment of a Secret",
    "secretGenerator: [{name: a, envs: [http://127.0.0.1/x]}]",
    "secretGenerator[0].envs[0]",
  ],
  ["a remote generator", "generators: [http://127.0.0.1/x]", "generators[0]"],
  ["a remote transformer", "transformers: [http://127.0.0.1/x]", "transformers[0]"],
  ["a remote validator", "validators: [http://127.0.0.1/x]", "validators[0]"],
  [
    "a plugin that fetches",
    "transformers: [remote-patch.yaml]",
    'transformers[0].path: "http://127.0.0.1/x.yaml" is remote',
  ],
  [
    "a plugin that is a program",
    "generators: [exec.yaml]",
    "app/exec.yaml, document 1, generators[0]: asks for the plugin v1/ConfigMap",
  ],
  ["a plugin in a container", "transformers: [function.yaml]", "asks for a function in a container or program"],
  [
    "a plugin in place that is not built in",
    "generators:\n- |\n  apiVersion: someteam.example.com/v1\n  kind: ChartInflator",
    "asks for the plugin someteam.example.com/v1/ChartInflator",
  ],
  ["charts", "helmCharts: [{name: a, repo: https://example.com}]", "helmCharts: inflates Helm charts"],
  ["charts in the old spelling", "helmChartInflationGenerator: [{chartName: a}]", "inflates Helm charts"],
  ["charts by plugin", "generators: [chart.yaml]", "and no Helm charts"],
  ["an absolute path", "resources: [/etc/hostname]", "is an absolute path"],
  ["a path that leaves the artifact", "resources: [../../etc]", '"../../etc" leaves the artifact'],
  [
    "a file that is not there",
    "resources: [missing.yaml]",
    "is not in the artifact; add its folder to the Source's spec.paths",
  ],
  [
    "a folder without a kustomization",
    "resources: [../plain]",
    "plain: holds no kustomization.yaml, no kustomization.yml, no Kustomization",
  ],
  ["no YAML", "resources: [", "app/kustomization.yaml:1"],
  ["a list", "- a", "is no map"],
];

describe("checkKustomization", () => {
  test.each(allowed)("lets %s through", (_legend, kustomization) => {
    expect(() => check(kustomization)).not.toThrow();
  });

  test.each(refused)("refuses %s", (_legend, kustomization, message) => {
    expect(() => check(kustomization)).toThrow(ManifestError);
    expect(() => check(kustomization)).toThrow(message);
  });

  test("reads every kustomization that is reachable", () => {
    const files = filesOf({
      "kustomization.yaml": "resources: [a]",
      "a/kustomization.yml": "components: [../b]",
      "b/Kustomization": "kind: Component\nresources: [http://127.0.0.1/x]",
    });
    expect(() => checkKustomization(files, ".")).toThrow("b/Kustomization, resources[0]");
  });

  test("ends where kustomizations include each other", () => {
    const files = filesOf({ "a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]" });
    expect(() => checkKustomization(files, "a")).not.toThrow();
  });
});
