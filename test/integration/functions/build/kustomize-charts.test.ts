/** Charts that a kustomization inflates: with the same result as kustomize and Helm, but without downloads. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { loadAll } from "js-yaml";
import { expect, test } from "vitest";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { renderObjects } from "#shared/adapters/render/render-objects.ts";
import { compareText } from "#shared/base/text-order.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import { below, shopChart } from "#test/support/chart-fixture.ts";

const run = promisify(execFile);
const kubectl = () => locateKubectl("");
const helm = () => locateHelm("");
type Files = Readonly<Record<string, string>>;

async function rendered(files: Files, path: string, specialise?: Specialisation): Promise<readonly unknown[]> {
  const listed = Object.entries(files).map(([name, text]) => ({
    path: name,
    executable: false,
    content: new TextEncoder().encode(text),
  }));
  const request = { files: listed, path, ...(specialise === undefined ? {} : { specialise }) };
  const renderers = { kustomize: new KubectlKustomize({ kubectl }), helm: new HelmTemplate({ helm }) };
  return (await renderObjects(request, renderers)).objects.toSorted((a, b) => compareText(nameOf(a), nameOf(b)));
}

function nameOf(object: unknown): string {
  const { kind, metadata } = object as { kind: string; metadata: { name: string } };
  return `${kind} ${metadata.name}`;
}

/** The result of kustomize and Helm for the folder, without any code of Starling. */
async function byThemselves(files: Files, path: string): Promise<readonly unknown[]> {
  const folder = await mkdtemp(join(tmpdir(), "starling-test-inflate-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    // The kustomize in kubectl asks for the version in Helm 3's format.
    const command = join(folder, "helm.sh");
    const script = `#!/bin/sh\nif [ "$1" = version ]; then echo v3.18.0; else exec ${await helm()} "$@"; fi\n`;
    await writeFile(command, script, { mode: 0o755 });
    const args = ["kustomize", "--enable-helm", `--helm-command=${command}`, "--load-restrictor=LoadRestrictionsNone"];
    const env = { HOME: folder, PATH: "" };
    const { stdout } = await run(await kubectl(), [...args, join(folder, path)], { cwd: folder, env });
    return loadAll(stdout).toSorted((a, b) => compareText(nameOf(a), nameOf(b)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const chart = below("apps/charts/shop", shopChart);
const base = `namePrefix: eu-
resources: [extra.yaml]
helmGlobals: {chartHome: ../charts}
helmCharts:
- {name: shop, releaseName: web, namespace: shop, includeCRDs: true, skipTests: true, valuesFile: ../env/prod.yaml, valuesInline: {replicas: 5}}
- {name: note, releaseName: other, repo: "https://localhost:1", version: 9.9.9, skipTests: true, additionalValuesFiles: [../env/prod.yaml, ../env/more.yaml]}
patches:
- target: {kind: Deployment}
  patch: '[{"op": "add", "path": "/spec/paused", "value": true}]'
`;
const files: Files = {
  ...chart,
  "apps/charts/note-9.9.9/note/Chart.yaml": "apiVersion: v2\nname: note\nversion: 9.9.9\n",
  "apps/charts/note-9.9.9/note/values.yaml": "colour: blue\nreplicas: 0\n",
  "apps/charts/note-9.9.9/note/templates/x.yaml":
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-{{ .Release.Namespace }}'}\ndata: {k: '{{ .Values.colour }} {{ .Values.replicas }}'}\n",
  "apps/web/kustomization.yaml": base,
  "apps/web/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
  "apps/env/prod.yaml": "replicas: 3\ncolour: red\n",
  "apps/env/more.yaml": "colour: green\n",
  "over/kustomization.yaml": "resources: [../apps/web]\nnamespace: prod\n",
};

test.each(["apps/web", "over"])(
  "the objects of the kustomization %s are those of kustomize and Helm together",
  async (path) => {
    const own = await rendered(files, path);
    expect(own).toEqual(await byThemselves(files, path));
    expect(own.length).toBeGreaterThan(5);
  },
);

test("the edits of a template are applied after the chart is inflated", async () => {
  const own = await rendered(files, "over", { edits: { namePrefix: "x-" }, namespace: "late" });
  const names = own.map(nameOf);
  expect(names).toContain("ConfigMap x-eu-extra");
  expect(names.filter((name) => name.startsWith("Deployment x-eu-")).length).toBeGreaterThan(0);
  expect(
    own.filter((object) => (object as { metadata: { namespace?: string } }).metadata.namespace === "prod"),
  ).toEqual([]);
});

test.each([
  [
    "calls lookup",
    `{{ (lookup "v1" "Secret" "x" "y").data }}`,
    /^apps\/charts\/small\/templates\/x\.yaml:5.* calls lookup/,
  ],
  ["changes with each rendering", "{{ randAlphaNum 9 }}", /ConfigMap x, data\.k: changes each time/],
  [
    "asks whether it is an install",
    "{{ .Release.IsInstall | quote }}",
    /^apps\/kustomization\.yaml, helmCharts\[0\]: differs between an install and an upgrade,/,
  ],
  [
    "has a file of values outside the artifact",
    "v",
    /^apps\/kustomization\.yaml, helmCharts\[0\]\.valuesFile: ".*passwd" leads out of the artifact/,
    "valuesFile: ../../../../etc/passwd",
  ],
  [
    "has two kinds of values that exclude each other",
    "v",
    /additionalValuesFiles: cannot be used together with valuesInline/,
    "valuesInline: {a: 1}, additionalValuesFiles: [kustomization.yaml]",
  ],
])("a chart that %s is refused", async (_legend, data, message, more = "namespace: x") => {
  const small = {
    "apps/kustomization.yaml": `helmCharts: [{name: small, releaseName: s, ${more}}]\n`,
    "apps/charts/small/Chart.yaml": "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    "apps/charts/small/templates/x.yaml": `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  k: ${data}\n`,
  };
  await expect(rendered(small, "apps")).rejects.toThrow(message);
});

test("a file with the name that an inflated chart gets is not overwritten", async () => {
  const taken = { ...files, "apps/web/.starling-chart-1.yaml": "a: b\n" };
  await expect(rendered(taken, "apps/web")).rejects.toThrow(
    "apps/web/kustomization.yaml, helmCharts[1]: needs the file name .starling-chart-1.yaml, which a file of the folder has; rename that file",
  );
});
