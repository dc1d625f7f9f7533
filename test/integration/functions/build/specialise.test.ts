// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
/** What is done to objects after they were rendered, in one order for every kind of folder. */
import { describe, expect, test } from "vitest";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type RenderRequest, renderObjects } from "#shared/adapters/render/render-objects.ts";
import { systemClock } from "#shared/adapters/system.ts";
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

/** The same two objects, three times. */
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
  const { objects } = await renderObjects(of, { kustomize, helm, clock: systemClock });
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
  test("is patched, moved, renamed, given images and marks, and then its variables, in that order", async () => {
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
            // Neither selectors nor Pods get the marks: these cannot change, and those would start anew.
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

  test("with nothing but marks and variables is not given to kustomize again", async () => {
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

  test("has images by digest", async () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const special = { edits: { images: [{ name: "registry.example/web", digest }] } };
    expect(JSON.stringify(await objectsOf(request(name, special)))).toContain(`registry.example/web@${digest}`);
  });

  test("says what is wrong with a patch", async () => {
    const special = { edits: { patches: [{ patch: "kind: Nothing\nmetadata: {name: web}" }] } };
    await expect(objectsOf(request(name, special))).rejects.toThrow(/patch/);
    const remote = { edits: { components: ["https://example.com/x"] } };
    await expect(objectsOf(request(name, remote))).rejects.toThrow(/not in the artifact|is remote/);
  });
});

test("a Namespace that is in the folder is the one that is asked for", async () => {
  const own = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {own: kept}}\n";
  const special = { edits: { createNamespace: { labels: { a: "b" } } }, namespace: "shop" };
  const objects = await objectsOf(request("plain", special, { "app/namespace.yaml": own }));
  expect(objects.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => metadata.labels)).toEqual([
    { own: "kept", a: "b" },
  ]);
});

test("an object that kustomize would leave out is refused", async () => {
  const text =
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: here, annotations: {config.kubernetes.io/local-config: "true"}}\n';
  const given = request("plain", { edits: { images: [{ name: "web", newTag: "2" }] } }, { "app/here.yaml": text });
  const rendered = renderObjects(given, { kustomize: kubectl, helm, clock: systemClock });
  await expect(rendered).rejects.toMatchObject({ code: "LocalConfigRefused" });
});

test("an object that kustomize cannot write is not printed", async () => {
  const text = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {token: "hunter2", odd: "a\\x7Fb"}\n';
  const given = request("plain", { edits: { images: [{ name: "web", newTag: "2" }] } }, { "app/secret.yaml": text });
  const rendered = renderObjects(given, { kustomize: kubectl, helm, clock: systemClock });
  await expect(rendered).rejects.toThrow(/^(?!.*hunter2).*an object/s);
});

test("what is no object is named by its file, which kustomize does not see", async () => {
  const special = { edits: { namePrefix: "p-" } };
  const wrong = request("plain", special, { "app/wrong.yaml": "apiVersion: v1\nkind: ConfigMap\n" });
  await expect(objectsOf(wrong)).rejects.toThrow("app/wrong.yaml:1, document 1, ConfigMap, metadata: is missing");
});

test("a kustomization in the root of the repository, and numbers digit for digit", async () => {
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
