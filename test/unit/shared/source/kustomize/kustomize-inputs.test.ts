import { describe, expect, test } from "vitest";
import { kustomizeInputs } from "#shared/source/kustomize/kustomize-inputs.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

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
  "app/labels.yaml":
    "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {env: prod, path: a}\nfieldSpecs: [{path: metadata/labels}]",
  "plugins/kustomization.yaml": "resources: [p.yaml]",
  "plugins/p.yaml": "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: x-",
  "plugins/empty/kustomization.yaml": "resources: []",
  "app/exec.yaml":
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p, annotations: {config.kubernetes.io/function: 'exec: {path: x}'}}",
  "app/function.yaml":
    "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p, annotations: {config.kubernetes.io/function: 'container: {image: x}'}}",
  "app/chart.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: p}",
  "app/remote-value.yaml":
    "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: p}\ntargetFilePath: http://127.0.0.1/x",
  "app/plugin-list.yaml":
    "apiVersion: builtin\nkind: PatchTransformerList\nitems: [{apiVersion: builtin, kind: PatchTransformer, path: http://127.0.0.1/x}]",
  "app/letters.yaml": "apiVersion: builtin\nkind: patchtransformer\nmetadata: {name: p}",
  "fetching/kustomization.yaml": "resources: [p.yaml]",
  "fetching/p.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: http://127.0.0.1/x",
  "reading/kustomization.yaml": "resources: [g.yaml]",
  "reading/g.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: p}\nfiles: [e=/proc/self/environ]",
  "program/kustomization.yaml": "resources: [p.yaml]",
  "program/p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}",
  "patched/kustomization.yaml": "resources: [p.yaml]\npatches: [{target: {kind: P}, patch: '[]'}]",
  "patched/p.yaml": "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}",
  "circle/kustomization.yaml": "resources: [.]",
  "two/kustomization.yaml": "resources: []",
  "two/kustomization.yml": "resources: []",
  "app/remote-patch.yaml":
    "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: http://127.0.0.1/x.yaml",
};

function check(kustomization: string): void {
  kustomizeInputs(filesOf({ ...artifact, "app/kustomization.yaml": kustomization }), "app");
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
  [
    "labels that are named as files are",
    "labels: [{pairs: {path: a, env: prod}}]\nconfigMapGenerator: [{name: a, options: {labels: {env: prod, files: x}}}]\ntransformers: [labels.yaml]",
  ],
  ["plugins that a folder lists", "transformers: [../plugins]\ngenerators: [../plugins/empty]"],
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
    "app/exec.yaml, document 1, generators[0]: needs the plugin v1/ConfigMap",
  ],
  ["a plugin in a container", "transformers: [function.yaml]", "asks for a function in a container or a program"],
  [
    "a plugin in place that is not built in",
    "generators:\n- |\n  apiVersion: someteam.example.com/v1\n  kind: ChartInflator",
    "needs the plugin someteam.example.com/v1/ChartInflator",
  ],
  [
    "a chart that is not in the artifact",
    "helmCharts: [{name: a, releaseName: a, version: 1.2.3, repo: https://example.com}]",
    "helmCharts[0].name: a is not in app/charts/a-1.2.3/a or app/charts/a, and Starling fetches nothing",
  ],
  [
    "a chart that leads out of the artifact",
    "helmCharts: [{name: ../../a, releaseName: a}]",
    "is not the name of a chart",
  ],
  [
    "charts elsewhere",
    "helmGlobals: {chartHome: ../../etc}\nhelmCharts: [{name: a, releaseName: a}]",
    "leads out of the artifact",
  ],
  ["absolute charts", "helmGlobals: {chartHome: /etc}\nhelmCharts: [{name: a, releaseName: a}]", "is an absolute path"],
  [
    "Helm's own settings",
    "helmGlobals: {configHome: x}\nhelmCharts: [{name: a}]",
    "may have no other field than chartHome",
  ],
  ["a release without a name", "helmCharts: [{name: a}]", "releaseName: is required"],
  ["a release with a NUL in its name", 'helmCharts: [{name: a, releaseName: "a\\0b"}]', "releaseName: must be 1 to 53"],
  ["a release with a name that is none", "helmCharts: [{name: a, releaseName: Web_1}]", "releaseName: must be 1 to 53"],
  [
    "a namespace with a NUL",
    'helmCharts: [{name: a, releaseName: a, namespace: "a\\0b"}]',
    "namespace: must be the name of a namespace",
  ],
  [
    "a version of Kubernetes that is none",
    'helmCharts: [{name: a, releaseName: a, kubeVersion: "1\\0"}]',
    'kubeVersion: must be a version of Kubernetes in quotes, such as "1.31"',
  ],
  [
    "too many API versions",
    `helmCharts: [{name: a, releaseName: a, apiVersions: [${"a/v1, ".repeat(60_000)}]}]`,
    "apiVersions: may have at most 200 API versions",
  ],
  [
    "a member that is none",
    "helmCharts: [{name: a, releaseName: a, postRenderer: x}]",
    "has the field postrenderer, which Starling does not",
  ],
  ["charts in the old spelling", "helmChartInflationGenerator: [{chartName: a}]", "is the old field for"],
  ["charts by plugin", "generators: [chart.yaml]", "without Helm charts: remove it"],
  ["an absolute path", "resources: [/etc/hostname]", "is an absolute path"],
  ["a path that leads out of the artifact", "resources: [../../etc]", '"../../etc" leads out of the artifact'],
  [
    "a file that is not there",
    "resources: [missing.yaml]",
    "is not in the artifact; add its folder to the Source's spec.paths",
  ],
  [
    "a folder without a kustomization",
    "resources: [../plain]",
    `resources[0]: "../plain" has no kustomization.yaml; add one, or name the folder's files`,
  ],
  ["no YAML", "resources: [", "app/kustomization.yaml:1"],
  ["a list", "- a", "must be a map"],
  ["a plugin that adds values of a file", "transformers: [remote-value.yaml]", "transformers[0].targetFilePath"],
  ["a plugin in a list", "transformers: [plugin-list.yaml]", "needs the plugin builtin/PatchTransformerList"],
  [
    "a plugin with a name in other letters",
    "transformers: [letters.yaml]",
    "needs the plugin builtin/patchtransformer",
  ],
  [
    "a plugin in a folder that fetches",
    "transformers: [../fetching]",
    'transformers[0].path: "http://127.0.0.1/x" is remote',
  ],
  [
    "a plugin in a folder that reads another file",
    "generators: [../reading]",
    '"/proc/self/environ" is an absolute path',
  ],
  ["a plugin in a folder that is a program", "validators: [../program]", "needs the plugin v1/ConfigMap"],
  [
    "a folder that makes plugins",
    "transformers: [../patched]",
    "patched/kustomization.yaml, patches: changes plugin configurations, so that Starling cannot check them",
  ],
  ["a folder of plugins without a kustomization", "transformers: [../plain]", '"../plain" has no kustomization'],
  ["folders of plugins that list each other", "transformers: [../circle]", "lists folders too deeply"],
  [
    "two kustomizations in one folder",
    "resources: [../two]",
    "two/kustomization.yml: is in the same folder as two/kustomization.yaml",
  ],
];

/** The inputs of a kustomize build, as texts. */
function seen(contents: Readonly<Record<string, string>>, folder = "."): Record<string, string> {
  const { files: inputs } = kustomizeInputs(filesOf(contents), folder);
  return Object.fromEntries([...inputs].map(([path, content]) => [path, new TextDecoder().decode(content)]));
}

const prefix = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: yes-\n";
const labels = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {env: prod, path: yes}\n";

describe("the inputs of a kustomize build", () => {
  test("the inputs are the files that the build refers to, and no others", () => {
    expect(
      seen(
        {
          "app/kustomization.yaml":
            "resources: [../base]\nconfigMapGenerator: [{name: c, files: [.env, k=../app/data.bin]}]",
          "app/.env": "A=b",
          "app/data.bin": "x: [",
          "app/.kube/kuberc": "kind: Preference",
          "base/kustomization.yml": "resources: [a.yaml]\npatches: [{path: p.yaml}]",
          "base/a.yaml": "kind: A",
          "base/p.yaml": "kind: A",
          "base/unused.yaml": "kind: A",
          ".kube/kuberc": "kind: Preference",
          ".config/kustomize/plugin/v1/x/X": "#!/bin/sh",
        },
        "app",
      ),
    ).toEqual({
      "app/kustomization.yaml":
        '{"resources":["../base"],"configMapGenerator":[{"name":"c","files":[".env","k=../app/data.bin"]}]}',
      "app/.env": "A=b",
      "app/data.bin": "x: [",
      "base/kustomization.yml": '{"resources":["a.yaml"],"patches":[{"path":"p.yaml"}]}',
      "base/a.yaml": "kind: A",
      "base/p.yaml": "kind: A",
    });
  });

  test("a kustomization is read as its first document, with its aliases written out", () => {
    const text = 'x: &x [a.yaml]\nresources: *x\nnamePrefix: "a\\u2028\\u0085b"\n---\nresources: [b.yaml]';
    expect(seen({ "kustomization.yaml": text, "a.yaml": "", "b.yaml": "" })).toEqual({
      "kustomization.yaml": '{"x":["a.yaml"],"resources":["a.yaml"],"namePrefix":"a\\u2028\\u0085b"}',
      "a.yaml": "",
    });
  });

  test("a kustomization with an empty first document is read as an empty one", () => {
    const inputs = seen({ "kustomization.yaml": "---\n# empty\n---\nresources: [a.yaml]", "a.yaml": "" });
    expect(inputs).toEqual({ "kustomization.yaml": "{}" });
  });

  test('plugin configurations keep words such as "yes" as texts', () => {
    const inputs = seen({
      "kustomization.yaml": `transformers:\n- p.yaml\n- |\n  ${labels.replaceAll("\n", "\n  ")}\n`,
      "p.yaml": `${prefix}---\n${labels}`,
    });
    const labelsRead =
      '{"apiVersion":"builtin","kind":"LabelTransformer","metadata":{"name":"l"},"labels":{"env":"prod","path":"yes"}}';
    expect(inputs["p.yaml"]).toBe(
      `{"apiVersion":"builtin","kind":"PrefixTransformer","metadata":{"name":"p"},"prefix":"yes-"}\n---\n${labelsRead}`,
    );
    expect(JSON.parse(inputs["kustomization.yaml"] ?? "")).toEqual({ transformers: [labelsRead, "p.yaml"] });
  });

  test("a folder of plugin configurations is replaced by the configurations", () => {
    const inputs = seen(
      {
        "app/kustomization.yaml": `transformers:\n- ../plugins\n- last.yaml\n- |\n  ${labels.replaceAll("\n", "\n  ")}`,
        "app/last.yaml": prefix.replace("yes-", "last-"),
        "plugins/kustomization.yaml":
          "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml, more]",
        "plugins/a.yaml": prefix.replace("yes-", "first-"),
        "plugins/more/kustomization.yaml": "resources: [b.yaml]",
        "plugins/more/b.yaml": prefix.replace("yes-", "second-"),
      },
      "app",
    );
    const { transformers } = JSON.parse(inputs["app/kustomization.yaml"] ?? "");
    expect(transformers.map((text: string) => JSON.parse(text).prefix ?? "labels")).toEqual([
      "labels",
      "first-",
      "second-",
      "last-",
    ]);
    expect(Object.keys(inputs)).not.toContain("plugins/kustomization.yaml");
  });
});

describe("a build that would be too large", () => {
  const bomb = [
    "kind: A",
    "a: &a [xxxxxxxxxx, xxxxxxxxxx, xxxxxxxxxx, xxxxxxxxxx]",
    ...["b", "c", "d", "e", "f", "g"].map((name, index) => {
      const before = `*${"abcdef"[index]}`;
      return `${name}: &${name} [${Array.from({ length: 12 }, () => before).join(", ")}]`;
    }),
  ].join("\n");

  const places: readonly (readonly [legend: string, kustomization: string, message: string])[] = [
    ["a resource", "resources: [bomb.yaml]", "bomb.yaml:"],
    ["a patch", "patches: [{path: bomb.yaml}]", "bomb.yaml:"],
    ["a merge patch", "patchesStrategicMerge: [bomb.yaml]", "bomb.yaml:"],
    ["a JSON patch", "patchesJson6902: [{target: {kind: A}, path: bomb.yaml}]", "bomb.yaml:"],
    ["a CRD", "crds: [bomb.yaml]", "bomb.yaml:"],
    ["a configuration", "configurations: [bomb.yaml]", "bomb.yaml:"],
    ["a schema", "openapi: {path: bomb.yaml}", "bomb.yaml:"],
    ["a replacement", "replacements: [{path: bomb.yaml}]", "bomb.yaml:"],
    ["a plugin's configuration", "transformers: [bomb.yaml]", "bomb.yaml:"],
    [
      "the patch of a plugin",
      "transformers:\n- |\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, path: bomb.yaml}",
      "bomb.yaml:",
    ],
    [
      "a patch in place",
      `patches:\n- patch: |\n    ${bomb.replaceAll("\n", "\n    ")}`,
      "kustomization.yaml, patches[0].patch:",
    ],
    [
      "a merge patch in place",
      `patchesStrategicMerge:\n- |\n  ${bomb.replaceAll("\n", "\n  ")}`,
      "kustomization.yaml, patchesStrategicMerge[0]:",
    ],
    ["the kustomization", `${bomb}\nresources: []`, "kustomization.yaml:"],
  ];

  test.each(places)("aliases that explode in %s are refused", (_legend, kustomization, message) => {
    const files = filesOf({ "kustomization.yaml": kustomization, "bomb.yaml": bomb });
    expect(() => kustomizeInputs(files, ".")).toThrow(message);
    expect(() => kustomizeInputs(files, ".")).toThrow("aliases would expand to more than 10000000 characters");
  });

  test("aliases in the data of a ConfigMap are not checked", () => {
    const files = filesOf({ "kustomization.yaml": "configMapGenerator: [{name: a, files: [b]}]", b: bomb });
    expect(() => kustomizeInputs(files, ".")).not.toThrow();
  });

  test("a file in UTF-16, which Go reads and this parser does not, is refused", () => {
    const files = filesOf({ "kustomization.yaml": "resources: [a.yaml]" });
    const content = new Uint8Array([0xff, 0xfe, ...Buffer.from("kind: A", "utf16le")]);
    files.set("a.yaml", { path: "a.yaml", executable: false, content });
    expect(() => kustomizeInputs(files, ".")).toThrow("a.yaml: is not UTF-8; save it as UTF-8");
  });

  test("folders that include the next one twice are counted as often as kustomize loads them", () => {
    const contents: Record<string, string> = { "l0/kustomization.yaml": "resources: [a.yaml]", "l0/a.yaml": "kind: A" };
    for (let level = 1; level <= 20; level++) {
      for (const side of ["x", "y"]) {
        contents[`l${level}${side}/kustomization.yaml`] = `namePrefix: ${side}-\nresources: [../l${level - 1}]`;
      }
      contents[`l${level}/kustomization.yaml`] = `resources: [../l${level}x, ../l${level}y]`;
    }
    expect(() => kustomizeInputs(filesOf(contents), "l20")).toThrow(
      /^l20\/kustomization.yaml: makes kustomize load \d+ bytes, more than 67108864/,
    );
    expect(() => kustomizeInputs(filesOf(contents), "l10")).not.toThrow();
  });
});

describe("kustomizeInputs", () => {
  test.each(allowed)("a kustomization with %s is accepted", (_legend, kustomization) => {
    expect(() => check(kustomization)).not.toThrow();
  });

  test.each(refused)("a kustomization with %s is refused", (_legend, kustomization, message) => {
    expect(() => check(kustomization)).toThrow(ManifestError);
    expect(() => check(kustomization)).toThrow(message);
  });

  test("every reachable kustomization is read", () => {
    const files = filesOf({
      "kustomization.yaml": "resources: [a]",
      "a/kustomization.yml": "components: [../b]",
      "b/Kustomization": "kind: Component\nresources: [http://127.0.0.1/x]",
    });
    expect(() => kustomizeInputs(files, ".")).toThrow("b/Kustomization, resources[0]");
  });

  test("kustomizations that include each other are read once", () => {
    const files = filesOf({ "a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]" });
    expect(() => kustomizeInputs(files, "a")).not.toThrow();
  });
});

describe("a value in the place of a file of a secretGenerator is not repeated in the message", () => {
  const plugin = "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: p}\n";
  const cases: readonly (readonly [legend: string, files: Readonly<Record<string, string>>])[] = [
    ["as a file", { "app/kustomization.yaml": "secretGenerator: [{name: s, files: [password=hunter2]}]" }],
    ["as a file of variables", { "app/kustomization.yaml": "secretGenerator: [{name: s, envs: [PASSWORD=hunter2]}]" }],
    ["as the one file", { "app/kustomization.yaml": "SecretGenerator: {name: s, env: hunter2}" }],
    [
      "that looks remote",
      { "app/kustomization.yaml": "secretGenerator: [{name: s, files: ['a=https://u:hunter2@x/y']}]" },
    ],
    ["that looks absolute", { "app/kustomization.yaml": "secretGenerator: [{name: s, files: ['a=/hunter2']}]" }],
    ["that leads out", { "app/kustomization.yaml": "secretGenerator: [{name: s, files: ['../../hunter2']}]" }],
    ["that no artifact has", { "app/kustomization.yaml": "secretGenerator: [{name: s, envs: [hunter2.png]}]" }],
    ["in a plugin", { "app/kustomization.yaml": "generators: [g.yaml]", "app/g.yaml": `${plugin}files: [hunter2]` }],
  ];
  test.each(cases)("the message does not repeat a value of a secretGenerator: %s", (_legend, files) => {
    let said: unknown;
    try {
      kustomizeInputs(filesOf({ ...artifact, ...files }), "app");
    } catch (error) {
      said = error;
    }
    expect(said).toBeInstanceOf(ManifestError);
    expect(String(said)).toMatch(/the named file \(not shown, because the name may be a secret\)/);
    expect(String(said)).not.toContain("hunter2");
  });

  test("the message names a value of a configMapGenerator, because that helps", () => {
    expect(() => check("configMapGenerator: [{name: a, files: [missing.txt]}]")).toThrow('"missing.txt" is not in');
  });
});
