// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tests are about these variables
/** The edits of rendered objects are made in the same order for every kind of folder. */
import { describe, expect, test } from "vitest";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type RenderRequest, renderObjects } from "#shared/adapters/render/render-objects.ts";
import type { KustomizeRunner } from "#shared/ports.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import { specialisation } from "#shared/source/specialisation.ts";

const kubectl = new KubectlKustomize({ kubectl: () => locateKubectl("") });
const helm = new HelmTemplate({ helm: () => locateHelm("") });

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "registry.example/web:1", envFrom: [{configMapRef: {name: settings}}], env: [{name: BIG, value: "9007199254740993"}]}
`;
const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {own: kept, team: own}}
data: {url: "https://\${DOMAIN}", enabled: "yes"}
`;
const component = {
  "components/debug/kustomization.yaml":
    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: debug.yaml, target: {kind: ConfigMap}}]\n",
  "components/debug/debug.yaml": '[{"op": "add", "path": "/data/debug", "value": "${DEBUG:=off}"}]\n',
};

/** Three folders that render to the same two objects. */
const folders: Readonly<
  Record<string, { readonly files: Readonly<Record<string, string>>; readonly render?: BuildOptions }>
> = {
  plain: { files: { "app/web.yaml": deployment, "app/settings.yaml": settings } },
  kustomize: {
    files: {
      "app/kustomization.yaml": "resources: [web.yaml, settings.yaml]\n",
      "app/web.yaml": deployment,
      "app/settings.yaml": settings,
    },
  },
  helm: {
    files: {
      "app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n",
      "app/templates/web.yaml": deployment,
      "app/templates/settings.yaml": settings,
    },
    render: { helm: { releaseName: "app", namespace: "web", crds: "Skip", lookup: "Refuse" } as never },
  },
};

function request(name: string, special: unknown, more: Readonly<Record<string, string>> = {}): RenderRequest {
  const { files, render } = folders[name] ?? { files: {} };
  return {
    files: Object.entries({ ...files, ...component, ...more }).map(([path, text]) => ({
      path,
      executable: false,
      content: new TextEncoder().encode(text),
    })),
    path: "app",
    specialise: specialisation.parse(special),
    ...(render === undefined ? {} : { render }),
  };
}

async function objectsOf(of: RenderRequest, kustomize: KustomizeRunner = kubectl) {
  const { objects } = await renderObjects(of, { kustomize, helm });
  return objects;
}

const everything = {
  edits: {
    components: ["components/debug"],
    patches: [
      { patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n" },
      {
        target: { kind: "ConfigMap", name: "set.*" },
        patch: '[{"op": "replace", "path": "/data/enabled", "value": "${ENABLED}"}]',
      },
    ],
    namePrefix: "eu-",
    nameSuffix: "-x",
    images: [{ name: "registry.example/web", newName: "mirror.example/web", newTag: "2" }],
    commonMetadata: { labels: { tier: "${TIER}" }, annotations: { team: "platform" } },
    createNamespace: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
  },
  namespace: "shop",
  variables: { DOMAIN: "x.example", ENABLED: "yes\n- no: {}", TIER: "gold" },
};

describe.each(Object.keys(folders))("a folder that is %s", (name) => {
  test("a folder gets patches, namespace, names, images and marks, and then its variables, in that order", async () => {
    const [namespace, config, web, ...others] = (await objectsOf(request(name, everything))).toSorted((a, b) =>
      a.kind < b.kind ? 1 : -1,
    );
    expect(others).toEqual([]);
    const labels = { tier: "gold" };
    expect(namespace).toEqual({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name: "shop",
        labels: { "pod-security.kubernetes.io/enforce": "restricted", ...labels },
        annotations: { team: "platform" },
      },
    });
    expect([config, web]).toEqual(
      expect.arrayContaining([
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: {
            name: "eu-settings-x",
            namespace: "shop",
            labels,
            annotations: { own: "kept", team: "platform" },
          },
          data: { url: "https://x.example", enabled: "yes\n- no: {}", debug: "off" },
        },
        {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: {
            name: "eu-web-x",
            namespace: "shop",
            labels: { app: "web", ...labels },
            annotations: { team: "platform" },
          },
          spec: {
            replicas: 3,
            // The marks are not set on selectors, which cannot change, or on Pods, which would restart.
            selector: { matchLabels: { app: "web" } },
            template: {
              metadata: { labels: { app: "web" } },
              spec: {
                containers: [
                  {
                    name: "web",
                    image: "mirror.example/web:2",
                    envFrom: [{ configMapRef: { name: "eu-settings-x" } }],
                    env: [{ name: "BIG", value: "9007199254740993" }],
                  },
                ],
              },
            },
          },
        },
      ]),
    );
  });

  test("a folder with nothing but marks and variables does not run kustomize again", async () => {
    let builds = 0;
    const counted: KustomizeRunner = {
      build: (input) => {
        builds += 1;
        return kubectl.build(input);
      },
    };
    const { variables } = everything;
    await objectsOf(request(name, { edits: { commonMetadata: { labels: { a: "b" } } }, variables }), counted);
    expect(builds).toBe(name === "kustomize" ? 1 : 0);
  });

  test("a folder gets images by digest", async () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const special = { edits: { images: [{ name: "registry.example/web", digest }] } };
    expect(JSON.stringify(await objectsOf(request(name, special)))).toContain(`registry.example/web@${digest}`);
  });

  test("an error of a patch is reported", async () => {
    const special = { edits: { patches: [{ patch: "kind: Nothing\nmetadata: {name: web}" }] } };
    await expect(objectsOf(request(name, special))).rejects.toThrow(/patch/);
    const field = /^the template, components\[0\]: "(https:\/\/example\.com\/x|none)" is not in the artifact/;
    for (const component of ["https://example.com/x", "none"]) {
      await expect(objectsOf(request(name, { edits: { components: [component] } }))).rejects.toThrow(field);
    }
  });
});

test("a Namespace of the folder is the one that the template asks to create, and gets its labels, too", async () => {
  const own = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {own: kept}}\n";
  const special = { edits: { createNamespace: { labels: { a: "b" } } }, namespace: "shop" };
  const objects = await objectsOf(request("plain", special, { "app/namespace.yaml": own }));
  expect(objects.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.labels)).toEqual([
    { own: "kept", a: "b" },
  ]);
});

const withImages = { edits: { images: [{ name: "web", newTag: "2" }] } };

test("an object that kustomize would leave out is refused, in lists of lists too", async () => {
  const here =
    'apiVersion: v1, kind: Pod, metadata: {name: "here\\e[31m", annotations: {config.kubernetes.io/local-config: "true"}}';
  const text = `apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{${here}}]}]\n`;
  await expect(objectsOf(request("plain", withImages, { "app/here.yaml": text }))).rejects.toMatchObject({
    code: "LocalConfigRefused",
    message: expect.stringMatching(
      /^app\/here\.yaml:1, document 1, Pod here\\u001b\[31m, items\[0\]\.items\[0\]\.metadata\.annotations\["config\.kubernetes\.io\/local-config"\]: is set, so that kustomize/,
    ),
  });
});

test("a hook in a list is a hook", async () => {
  const hook = "{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, annotations: {helm.sh/hook: pre-instal}}}";
  const list = (items: string) => `apiVersion: v1\nkind: List\nitems: [${items}]\n`;
  const nested = list(`{apiVersion: v1, kind: List, items: [${hook}]}`);
  for (const special of [{}, withImages]) {
    await expect(objectsOf(request("plain", special, { "app/hooks.yaml": nested }))).rejects.toMatchObject({
      code: "HookRefused",
      message: expect.stringContaining("Job migrate"),
    });
  }
  const test = hook.replace("pre-instal", "test").replace("migrate", '"t\\e[31m"');
  const rendered = renderObjects(request("plain", {}, { "app/hooks.yaml": list(test) }), {
    kustomize: kubectl,
    helm,
  });
  await expect(rendered).resolves.toMatchObject({
    leftOut: ["Job t\\u001b[31m is left out: it is a hook for test, which Starling does not run"],
  });
});

test("texts and annotations that kustomize would change or not write come out as they were", async () => {
  const codes = [0x01, 0x7f, 0x80, 0x85, 0x9f, 0x2028, 0x2029, 0xe000, 0xfeff, 0xfffe, 0xffff];
  const odd = `${codes.map((code) => String.fromCharCode(code)).join("a")}\ue0000085`;
  const annotations = {
    "config.kubernetes.io/index": "1",
    "config.kubernetes.io/path": "a.yaml",
    "internal.config.kubernetes.io/previousNames": "x",
  };
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "odd", annotations },
    stringData: { [`k${odd}`]: odd },
  };
  const files = { "app/odd.json": JSON.stringify(secret) };
  const [plain, edited] = [
    await objectsOf(request("plain", {}, files)),
    await objectsOf(request("plain", withImages, files)),
  ];
  const own = (objects: typeof plain) => objects.find(({ kind }) => kind === "Secret");
  expect(own(edited)).toEqual(own(plain));
  expect(own(edited)).toMatchObject({ metadata: { annotations } });
  expect(own(edited)?.data).toEqual({ [`k${odd}`]: Buffer.from(odd).toString("base64") });
});

const oddCodes = [0x7f, 0x80, 0x85, 0x9f, 0x2028, 0x2029, 0xe000, 0xfeff, 0xfffe, 0xffff];

describe.each(["plain", "kustomize", "helm"])("patches of a folder that is %s", (name) => {
  test.each([
    ["as they are", (code: number) => String.fromCharCode(code)],
    ["as YAML writes them", (code: number) => `\\u${code.toString(16).padStart(4, "0")}`],
  ])("patches may have texts that kustomize would change or not write: %s", async (how, written) => {
    // YAML cannot contain U+FFFE literally, or the other characters at the end of a line.
    const codes = how === "as they are" ? [0x85, 0xa0, 0xe000] : oddCodes;
    const [odd, text] = [codes.map((code) => String.fromCharCode(code)).join("a"), codes.map(written).join("a")];
    const merge = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {merged: "${text}", keep: yes, n: "1e3"}}`;
    const json = `[{"op": "add", "path": "/data/added", "value": "${text}"}]`;
    const yaml = `# as YAML\n- {op: add, path: /data/listed, value: "${text}"}\n`;
    const patches = [{ patch: merge }, ...[json, yaml].map((patch) => ({ target: { name: "settings" }, patch }))];
    const objects = await objectsOf(request(name, { edits: { patches } }));
    const data = objects.find(({ kind }) => kind === "ConfigMap")?.data;
    const own = { url: expect.anything(), enabled: "yes" };
    expect(data).toEqual({ ...own, keep: "yes", n: "1e3", merged: odd, added: odd, listed: odd });
  });

  test("patches may set annotations in which kustomize keeps its notes", async () => {
    const about = "apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations:";
    const json = '[{"op": "add", "path": "/metadata/annotations/config.kubernetes.io~1path", "value": "a.yaml"}]';
    const patches = [
      { patch: `{${about} {config.kubernetes.io/index: "1"}}}` },
      { target: { name: "settings" }, patch: json },
    ];
    const objects = await objectsOf(request(name, { edits: { patches } }));
    const annotations = objects.find(({ kind }) => kind === "ConfigMap")?.metadata.annotations;
    const set = { "config.kubernetes.io/index": "1", "config.kubernetes.io/path": "a.yaml" };
    expect(annotations).toEqual({ own: "kept", team: "own", ...set });
  });

  test("patches that call an object local remove it, as with kustomize", async () => {
    const local = 'metadata: {name: settings, annotations: {config.kubernetes.io/local-config: "true"}}';
    const patches = [{ patch: `{apiVersion: v1, kind: ConfigMap, ${local}}` }];
    const objects = await objectsOf(request(name, { edits: { patches } }));
    expect(objects.map(({ kind }) => kind)).toEqual(["Deployment"]);
  });
});

test.each([
  ["literally", "\ue000"],
  ["as an escape of YAML", "\\ue000"],
  ["as an escape in capitals", "\\uE000"],
  ["as an escape with eight digits", "\\U0000E000"],
])(
  "a private-use character before four digits is kept in a kustomization, a patch and a value, if written %s",
  async (_how, written) => {
    const text = `"${written}0041"`;
    const map = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {k: ${text}}\n`;
    const files = {
      "app/kustomization.yaml": "resources: [a.yaml, settings.yaml]\n",
      "app/a.yaml": map("a"),
      "app/settings.yaml": settings,
    };
    const special = {
      edits: {
        images: [{ name: "none", newTag: "2" }],
        patches: [{ target: { name: "settings" }, patch: `[{"op": "add", "path": "/data/k", "value": "\ue0000041"}]` }],
      },
    };
    for (const kind of ["none", "plain"] as const) {
      const objects = await objectsOf(request(kind, special, kind === "none" ? files : { "app/a.yaml": map("a") }));
      const data = Object.fromEntries(objects.map(({ metadata, data }) => [metadata.name, data]));
      expect(data).toMatchObject({ a: { k: "\ue0000041" }, settings: { k: "\ue0000041" } });
    }
  },
);

test("an edit of an image changes only images with exactly that name", async () => {
  const pod = (name: string, image: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: c, image: "${image}"}]}\n`;
  const files = { "app/a.yaml": pod("a", "example.com/web:1"), "app/b.yaml": pod("b", "exampleXcom/web:1") };
  const special = { edits: { images: [{ name: "example.com/web", newTag: "2" }] } };
  const text = JSON.stringify(await objectsOf(request("plain", special, files)));
  expect(text).toContain("example.com/web:2");
  expect(text).toContain("exampleXcom/web:1");
});

test("an object that kustomize cannot write is not printed, and the trace of its crash is not printed", async () => {
  const ofKustomize = (text: string) => ({
    "app/kustomization.yaml": "namePrefix: p-\nresources: [s.yaml]\n",
    "app/s.yaml": text,
  });
  const text = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {token: "hunter2", odd: "a\\x7Fb"}\n';
  await expect(objectsOf(request("none", {}, ofKustomize(text)))).rejects.toThrow(/^(?!.*hunter2).*an object/s);
  const noted = `${settings.replace("own: kept", "internal.config.kubernetes.io/previousNames: z")}`;
  await expect(objectsOf(request("none", {}, ofKustomize(noted)))).rejects.toThrow(
    /^app: kustomize crashed: panic: [^\n]*$/,
  );
});

test("a document that is not an object is reported with its file, which kustomize does not see", async () => {
  const special = { edits: { namePrefix: "p-" } };
  const wrong = request("plain", special, { "app/wrong.yaml": "apiVersion: v1\nkind: ConfigMap\n" });
  await expect(objectsOf(wrong)).rejects.toThrow("app/wrong.yaml:1, document 1, ConfigMap, metadata: is missing");
});

test("a document of another tool is reported with that tool, and a folder without manifests with its contents", async () => {
  const flux =
    "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\nspec: {path: ./apps}\n";
  await expect(
    renderObjects(request("plain", {}, { "app/flux.yaml": flux }), { kustomize: kubectl, helm }),
  ).resolves.toMatchObject({
    leftOut: [
      expect.stringMatching(
        /^Kustomization\.kustomize\.toolkit\.fluxcd\.io apps: this object is for Flux.*path: apps$/,
      ),
    ],
  });
  await expect(objectsOf(request("none", {}, { "app/README.md": "x" }))).rejects.toThrow(
    "app: contains no objects (it has app/README.md; manifests are *.yaml, *.yml and *.json); Starling never applies an empty rendering",
  );
});

test("a kustomization may be in the root of the repository, and numbers keep every digit", async () => {
  const files = {
    "kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [w.yaml]\n",
    "w.yaml": "apiVersion: example.com/v1\nkind: W\nmetadata: {name: w}\nspec: {big: 9007199254740993, mode: 0644}\n",
  };
  const special = { edits: { namePrefix: "p-" } };
  const at = { ...request("none", special, files), path: "." };
  const own = at.files.filter(({ path }) => path in files);
  for (const render of [{ kustomize: {} }, { plain: {} }] as const) {
    const objects = await objectsOf({ ...at, files: own, render });
    expect(objects).toEqual([
      {
        apiVersion: "example.com/v1",
        kind: "W",
        metadata: { name: "p-w" },
        spec: { big: 9007199254740993n, mode: 420 },
      },
    ]);
  }
});
