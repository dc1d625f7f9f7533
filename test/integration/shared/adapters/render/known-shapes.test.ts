/** Repositories in well-known layouts give the same objects as the binaries alone, or are refused with the reason. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type RenderRequest, renderObjects } from "#shared/adapters/render/render-objects.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { objectIdKey } from "#shared/kube/object-id.ts";
import { normaliseManifest } from "#shared/source/normalise-manifest.ts";
import { type ParseOptions, parseDocuments } from "#shared/source/yaml/yaml.ts";

const searchPath = process.env.PATH ?? "";
const helm = await locateHelm(searchPath);
const kubectl = await locateKubectl(searchPath);
const renderers = {
  kustomize: new KubectlKustomize({ kubectl: async () => kubectl }),
  helm: new HelmTemplate({ helm: async () => helm }),
};

const folder = mkdtempSync(join(tmpdir(), "starling-known-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const deployment = (name: string, extra = "") => `apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name} }
spec:
  replicas: 1
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { containers: [{ name: ${name}, image: "example.com/${name}:0.2", ports: [{ containerPort: 80 }]${extra} }] }
`;
const service = (name: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ports: [{ port: 80 }], selector: { app: ${name} } }\n`;
const job = (name: string, annotations: string) => `apiVersion: batch/v1
kind: Job
metadata: { name: ${name}, annotations: { ${annotations} } }
spec: { template: { spec: { restartPolicy: Never, containers: [{ name: a, image: "example.com/a:1" }] } } }
`;
const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: gauges.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Gauge, plural: gauges, singular: gauge, listKind: GaugeList }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
`;

const files: Readonly<Record<string, string>> = {
  "guestbook/ui-deployment.yaml": deployment("guestbook-ui"),
  "guestbook/ui-svc.yaml": service("guestbook-ui"),
  "guestbook/README.md": "# guestbook\n",
  "kustomize-guestbook/kustomization.yaml":
    "namePrefix: kustomize-\nresources: [ui-deployment.yaml, ui-svc.yaml]\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
  "kustomize-guestbook/ui-deployment.yaml": deployment("guestbook-ui"),
  "kustomize-guestbook/ui-svc.yaml": service("guestbook-ui"),
  "jsonnet-guestbook/guestbook-ui.jsonnet": "{ kind: 'List', apiVersion: 'v1', items: [] }\n",
  "helm-guestbook/Chart.yaml": "apiVersion: v2\nname: helm-guestbook\nversion: 0.1.0\n",
  "helm-guestbook/values.yaml": "replicaCount: 1\nservice: { port: 80 }\n",
  "helm-guestbook/.helmignore": "*.swp\n",
  "helm-guestbook/templates/_helpers.tpl":
    '{{- define "name" -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end -}}\n{{- define "chart" -}}{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}{{- end -}}\n',
  "helm-guestbook/templates/NOTES.txt": "1. Get the application URL: {{ .Release.Name }}\n",
  "helm-guestbook/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ template "name" . }}
  labels: { app: {{ template "name" . }}, chart: {{ template "chart" . }}, heritage: {{ .Release.Service }} }
spec:
  replicas: {{ .Values.replicaCount }}
  selector: { matchLabels: { app: {{ template "name" . }} } }
  template:
    metadata: { labels: { app: {{ template "name" . }} } }
    spec: { containers: [{ name: a, image: "example.com/a:{{ .Chart.AppVersion | default "1" }}", ports: [{ containerPort: 80 }] }] }
`,
  "helm-guestbook/templates/service.yaml":
    'apiVersion: v1\nkind: Service\nmetadata: { name: {{ template "name" . }} }\nspec: { ports: [{ port: {{ .Values.service.port }} }] }\n',
  "charts/agent/Chart.yaml": "apiVersion: v2\nname: agent\nversion: 1.0.0\n",
  "charts/agent/crds/gauges.yaml": crd,
  "charts/agent/templates/agent.yaml": deployment("agent"),
  "charts/agent/templates/migrate.yaml": job(
    "{{ .Release.Name }}-migrate",
    'helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5"',
  ),
  "charts/agent/templates/tests/probe.yaml": job("{{ .Release.Name }}-probe", "helm.sh/hook: test"),
  "charts/webhooks/Chart.yaml": "apiVersion: v2\nname: webhooks\nversion: 1.0.0\n",
  "charts/webhooks/templates/account.yaml": `apiVersion: v1
kind: ServiceAccount
metadata:
  name: webhooks
  labels:
    app: {{ .Chart.Name }}
    app: {{ .Release.Name }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade,post-install,post-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
`,
  "charts/webhooks/templates/create.yaml": job("create", 'helm.sh/hook: "pre-install,pre-upgrade"'),
  "charts/webhooks/templates/patch.yaml": job("patch", 'helm.sh/hook: "post-install,post-upgrade"'),
  "helm-dependency/Chart.yaml":
    'apiVersion: v2\nname: helm-dependency\nversion: 1.0.0\ndependencies: [{ name: blog, version: 9.0.3, repository: "https://charts.example.com" }]\n',
  "pre-post-sync/before.yaml": job("before", "argocd.argoproj.io/hook: PreSync"),
  "pre-post-sync/after.yaml": job("after", "argocd.argoproj.io/hook: PostSync"),
  "pre-post-sync/app.yaml": deployment("app"),
  "sync-waves/wave1.yaml": job("wave-1", 'argocd.argoproj.io/sync-wave: "1"'),
  "sync-waves/wave2.yaml": job("wave-2", 'argocd.argoproj.io/hook: Sync, argocd.argoproj.io/sync-wave: "2"'),
  "apps/root.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: { name: guestbook, namespace: argocd }
spec: { project: default, source: { repoURL: "https://example.com/a.git", path: guestbook }, destination: { namespace: guestbook } }
`,
  "fleet-manifests/fleet.yaml": "namespace: fleet-example\n",
  "fleet-manifests/frontend.yaml": deployment("frontend"),
  "fleet-multi-chart/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
  "fleet-multi-chart/web/templates/web.yaml": deployment("web"),
  "monitoring/base/kustomization.yaml":
    "resources: [setup, prometheus.yaml, password.yaml]\nconfigMapGenerator: [{ name: rules, files: [rules.yaml] }]\n",
  "monitoring/base/setup/kustomization.yaml": "resources: [crd.yaml, namespace.yaml]\n",
  "monitoring/base/setup/crd.yaml": crd,
  "monitoring/base/setup/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: { name: monitoring }\n",
  "monitoring/base/prometheus.yaml": `${deployment("prometheus", ", envFrom: [{ configMapRef: { name: rules } }]")}---\n${service("prometheus")}`,
  "monitoring/base/password.yaml":
    'apiVersion: v1\nkind: Secret\nmetadata: { name: admin }\nstringData: { password: "changeme" }\n',
  "monitoring/base/rules.yaml": "groups: [{ name: a, rules: [{ expr: '{{ $labels.pod }}' }] }]\n",
  "monitoring/prod/kustomization.yaml":
    "namespace: monitoring\nresources: [../base]\nreplicas: [{ name: prometheus, count: 2 }]\nimages: [{ name: example.com/prometheus, newTag: v3 }]\n",
  "web/kustomization.yaml": `namePrefix: eu-
resources: [../kustomize-guestbook, admin.yaml]
images: [{ name: example.com/guestbook-ui, newName: mirror.example/ui, digest: "sha256:${"a".repeat(64)}" }]
buildMetadata: [originAnnotations]
patches:
  - patch: '{apiVersion: v1, kind: Service, metadata: {name: kustomize-guestbook-ui}, $patch: delete}'
  - patch: '{apiVersion: v1, kind: Secret, metadata: {name: admin}, $patch: delete}'
  - target: { kind: Deployment }
    patch: '[{"op": "replace", "path": "/spec/replicas", "value": 3}]'
`,
  "web/admin.yaml": "apiVersion: v1\nkind: Secret\nmetadata: { name: admin }\n",
  "monitoring/dev/kustomization.yaml": "resources: [../base]\nnameSuffix: -dev\nlabels: [{ pairs: { env: dev } }]\n",
};

const artifact = Object.entries(files).map(([path, text]) => ({
  path,
  content: new TextEncoder().encode(text),
  executable: false,
}));
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function rendered(path: string, rest: Partial<RenderRequest> = {}) {
  return renderObjects({ files: artifact, path, ...rest }, renderers);
}

/** The objects that the program alone prints, in the form that all objects have before a comparison. */
function printed(
  program: string,
  parameters: readonly string[],
  options: ParseOptions = {},
): readonly ManifestObject[] {
  const text = execFileSync(program, parameters, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const objects = parseDocuments(text, "printed", options).map(({ value }) => value as ManifestObject | null);
  return objects.flatMap((object) => (object === null ? [] : [normaliseManifest(object)]));
}

function byId(objects: readonly ManifestObject[]) {
  return Object.fromEntries(objects.map((object) => [objectIdKey(objectIdOf(object)), object]));
}

const chart = (releaseName: string) => ({
  render: { helm: { releaseName, namespace: "default", crds: "CreateReplace" as const } },
});

describe("the objects of a rendering", () => {
  test.each(["kustomize-guestbook", "monitoring/base", "monitoring/prod", "monitoring/dev"])(
    "the rendering of %s has the same objects as kustomize alone",
    async (path) => {
      const { objects, leftOut } = await rendered(path);
      expect(byId(objects)).toEqual(byId(printed(kubectl, ["kustomize", path])));
      expect(leftOut).toEqual([]);
    },
  );

  test("I09: a rendering with patches, deletions, an image and a prefix has the same objects as kustomize alone", async () => {
    const { objects } = await rendered("web");
    expect(byId(objects)).toEqual(byId(printed(kubectl, ["kustomize", "web"])));
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "Deployment eu-kustomize-guestbook-ui",
    ]);
  });

  test.each([
    ["helm-guestbook", []],
    [
      "charts/webhooks",
      [
        "charts/webhooks/templates/account.yaml (as rendered):7:5: has a duplicate key in a map; the last one counts, as in Helm",
      ],
    ],
    ["charts/agent", ["Job agent-probe is left out: it is a hook for test, which Starling does not run"]],
  ])("the rendering of the chart %s has the same objects as helm alone", async (path, left) => {
    const name = path.split("/").at(-1) ?? "";
    const { objects, leftOut } = await rendered(path, chart(name) as Partial<RenderRequest>);
    const asked = ["template", name, path, "--namespace", "default", "--include-crds", "--skip-tests"];
    const all = printed(helm, asked, { twice: "last counts" });
    expect(byId(objects)).toEqual(byId(all));
    expect(leftOut).toEqual(left);
  });
});

/** Legend: folder, the objects in it. */
const plain: readonly (readonly [string, readonly string[]])[] = [
  ["guestbook", ["Deployment guestbook-ui", "Service guestbook-ui"]],
  ["pre-post-sync", ["Deployment app", "Job after", "Job before"]],
  ["sync-waves", ["Job wave-1", "Job wave-2"]],
];

test.each(plain)("the folder %s is rendered as plain manifests", async (path, names) => {
  const { objects } = await rendered(path);
  expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()).toEqual(names);
});

test("the rendering of Argo CD's Applications has a warning that only Argo CD acts on them", async () => {
  const { leftOut } = await rendered("apps");
  expect(leftOut.join()).toContain("this object is for Argo CD, and only Argo CD acts on it");
  expect(leftOut.join()).toContain("a template with path: guestbook");
});

/** Legend: folder, the message: what the folder is, and what to do. */
const refused: readonly (readonly [string, RegExp])[] = [
  [
    "jsonnet-guestbook",
    /jsonnet-guestbook: contains no objects \(it has jsonnet-guestbook\/guestbook-ui.jsonnet; manifests are .*\); Starling does not run Jsonnet: commit the manifests that it generates/,
  ],
  [
    "helm-dependency",
    /dependencies\[0\]: blog 9\.0\.3 from https:\/\/charts\.example\.com .*run `helm dependency build helm-dependency`/,
  ],
  ["fleet-manifests", /fleet-manifests\/fleet.yaml: is a file of Rancher Fleet; write its settings in the template/],
  ["fleet-multi-chart", /path: fleet-multi-chart\/web and render: \{helm: \{\}\}/],
  ["monitoring", /Namespace monitoring: is also in monitoring\/base/],
];

test.each(refused)("the folder %s is refused, with the reason and the next step", async (path, message) => {
  const render = path === "helm-dependency" ? chart("a") : {};
  await expect(rendered(path, render as Partial<RenderRequest>)).rejects.toThrow(message);
});
