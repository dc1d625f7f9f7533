/**
 * Folders of other tools come into sync through what `starling validate -R` translates of them: their charts with the
 * ranges and values that they have, out of a registry on this machine. STARLING_PUBLIC_FOLDERS names further folders,
 * separated by colons: clones of public repositories, of which nothing is kept here.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { canonicalJson, type JsonObject } from "#shared/base/json.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { type GroupInput, groupDocument, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const files = {
  "web/ks.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: apps}
spec: {path: web/app, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
`,
  "web/app/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1h
  chartRef: {kind: OCIRepository, name: web}
  values: {replicas: 2, hosts: [a.example, b.example], settings: {enabled: true, source: web}}
`,
  "web/app/repository.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: web, namespace: apps}
spec: {interval: 1h, url: "oci://registry.example/charts/web", ref: {tag: 4.6.2}}
`,
  "db/release.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: db, namespace: apps}
spec:
  interval: 1h
  chart: {spec: {chart: db, version: ">= 1.8.0-rc.0", sourceRef: {kind: HelmRepository, name: acme}}}
`,
  "db/patch.yaml": `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: db, namespace: apps}
spec: {values: {replicas: 3}}
`,
  "db/repository.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: acme, namespace: apps}
spec: {interval: 1h, url: "https://charts.example"}
`,
};

let own: string;
beforeAll(() => {
  own = mkdtempSync(join(tmpdir(), "starling-folder-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(own, path)), { recursive: true });
    writeFileSync(join(own, path), text);
  }
});
afterAll(() => rmSync(own, { recursive: true, force: true }));

interface Chart {
  readonly name: string;
  readonly chart: string;
  readonly range: string | undefined;
  readonly version: string;
  readonly values: JsonObject;
}

/** The charts with the values of the groups that take them, as a person gets them from the command. */
async function chartsIn(folder: string): Promise<readonly Chart[]> {
  const ran = await runWithoutTerminal(["validate", "-R", "-f", folder], { folder: own, patienceMs: 60_000 });
  const [, text = ""] = /^# for Starling[^\n]*\n(.*?)^error: /ms.exec(`${ran.out}\n${ran.err}`) ?? [];
  const documents = parseDocuments(text, "translated.yaml").map(({ value }) => {
    const parsed = parseDocument(value);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    return parsed.document;
  });
  const names = documents.map(({ kind, metadata }) => canonicalJson([kind, metadata]));
  expect(new Set(names).size).toBe(names.length);
  return documents.flatMap((group) => {
    if (group.kind !== "SyncGroup") return [];
    const { metadata, spec } = group;
    return spec.templates.flatMap((template) => {
      const source = documents.find(
        (one) =>
          one.kind === "Source" &&
          one.metadata.name === template.source &&
          one.metadata.namespace === metadata.namespace,
      );
      const helm = source?.kind === "Source" ? source.spec.helm : undefined;
      if (helm === undefined || template.render === undefined || !("helm" in template.render)) return [];
      const name = `${metadata.name}-${metadata.namespace}`.slice(0, 50).replace(/-+$/, "");
      const range = helm.ref?.semver;
      const values = (template.render.helm?.values ?? {}) as JsonObject;
      return [{ name, chart: helm.chart, range, version: lowestIn(range), values }];
    });
  });
}

/** A version in a range that people write: the first one that it names. */
function lowestIn(range: string | undefined): string {
  const [, major = "1", minor = "0", patch = "0", rest = ""] =
    /(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:-[\w.-]+)?)/.exec(range ?? "") ?? [];
  return `${major}.${minor}.${patch}${rest}`;
}

/** A chart with one ConfigMap, in which its version and all values are. */
function packed({ chart, version }: Chart): Promise<Buffer> {
  const settings = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}" },
    data: { version: "{{ .Chart.Version }}" },
  };
  const text = `${JSON.stringify(settings).slice(0, -2)},"values":{{ .Values | toJson | toJson }}}}`;
  return tarGz([
    { name: `${chart}/Chart.yaml`, body: `apiVersion: v2\nname: ${chart}\nversion: ${version}\n` },
    { name: `${chart}/templates/settings.yaml`, body: text },
  ]);
}

async function applyCharts(world: World, registry: RegistryServer, charts: readonly Chart[]): Promise<void> {
  for (const one of charts) {
    registry.pushChart(`${one.name}/${one.chart}`, one.version, await packed(one));
    const { name, chart, range, values } = one;
    const url = `oci://${registry.host}/${name}`;
    const helm = { url, chart, ...(range === undefined ? {} : { ref: { semver: range } }) };
    const group: GroupInput = {
      clusters: { all: true },
      templates: [
        {
          name: "chart",
          source: name,
          path: ".",
          render: { helm: { releaseName: name, values } },
          apply: { defaultNamespace: namespace },
        },
      ],
    };
    await world.apply(sourceDocument(name, { helm, interval: "1h" }), groupDocument(name, group));
  }
}

/** Helm adds it to the values of every chart. */
function withoutEmptyGlobal({ global, ...values }: JsonObject): JsonObject {
  return global === undefined || canonicalJson(global) === "{}" ? values : { global, ...values };
}

async function comeIntoSync(folder: string): Promise<readonly Chart[]> {
  const charts = await chartsIn(folder);
  const registry = await startRegistryServer();
  const world = await startWorld({ faults: quiet });
  try {
    await world.join({ name: "one" }, { name: "two" });
    const path = "/api/v1/namespaces";
    for (const cluster of ["one", "two"])
      await world.kubectl(cluster, {
        method: "POST",
        path,
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
      });
    await applyCharts(world, registry, charts);
    for (const { name, version, values } of charts) {
      await world.waitFor(`${name} is in sync`, async () => (await world.group(name)).status.state === "Complete", 600);
      for (const cluster of ["one", "two"]) {
        const { object } = await world.kubectl(cluster, {
          method: "GET",
          path: `/api/v1/namespaces/${namespace}/configmaps/${name}`,
        });
        const data = object.data as { readonly version: string; readonly values: string };
        expect({
          name,
          version: data.version,
          values: canonicalJson(withoutEmptyGlobal(JSON.parse(data.values))),
        }).toEqual({
          name,
          version,
          values: canonicalJson(values),
        });
      }
    }
    return charts;
  } finally {
    await world.close();
    await registry.stop();
  }
}

test("the charts of a folder of Flux come into sync with their versions and values", async () => {
  const charts = await comeIntoSync(own);
  expect(charts.map(({ chart, range, version, values }) => ({ chart, range, version, values }))).toEqual([
    { chart: "db", range: ">= 1.8.0-rc.0", version: "1.8.0-rc.0", values: {} },
    {
      chart: "web",
      range: "4.6.2",
      version: "4.6.2",
      values: { replicas: 2, hosts: ["a.example", "b.example"], settings: { enabled: true, source: "web" } },
    },
  ]);
});

const given = (process.env.STARLING_PUBLIC_FOLDERS ?? "").split(":").filter((folder) => folder !== "");
describe.skipIf(given.length === 0)("public folders", () => {
  test.each(given.map((folder) => [basename(folder), folder]))(
    "the charts of %s come into sync with their versions and values",
    { timeout: 1_200_000 },
    async (_, folder) => {
      expect((await comeIntoSync(folder)).length).toBeGreaterThan(0);
    },
  );
});
