import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const application = (path: string) => `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  source: {repoURL: "git@github.com:acme/apps.git", targetRevision: main, path: ${path}}
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
`;
const kustomization = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: apps, namespace: flux-system}
spec: {url: "https://github.com/acme/apps", ref: {branch: main}, interval: 1m}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: flux-system}
spec: {path: ./apps/shop, prune: true, interval: 10m, sourceRef: {kind: GitRepository, name: apps}}
`;
const gitRepo = `apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: shop, namespace: fleet-default}
spec: {repo: "https://github.com/acme/apps", branch: main, paths: [apps/shop]}
`;
const applicationSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: addons}
spec:
  generators: [{git: {repoURL: "https://github.com/acme/apps.git", directories: [{path: "apps/*"}]}}]
  template:
    metadata: {name: "{{path.basename}}"}
    spec:
      source: {repoURL: "https://github.com/acme/apps.git", targetRevision: HEAD, path: "{{path}}"}
      destination: {name: in-cluster, namespace: "{{path.basename}}"}
`;

/** A working copy of github.com/acme/apps, with the folder apps/shop. */
function workingCopy(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "starling-theirs-"));
  mkdirSync(join(folder, ".git"));
  mkdirSync(join(folder, "apps", "shop"), { recursive: true });
  writeFileSync(join(folder, ".git", "config"), '[remote "origin"]\n\turl = git@github.com:acme/apps.git\n');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

function run(folder: string, ...words: readonly string[]) {
  return runWithoutTerminal(words, { folder, patienceMs: 10_000 });
}

describe("a file of another tool", () => {
  test.each([
    ["an Application of Argo CD", application("apps/shop"), "is for Argo CD"],
    ["an ApplicationSet of Argo CD", applicationSet, "is for Argo CD"],
    ["a Kustomization of Flux", kustomization, "is for Flux"],
    ["a GitRepo of Fleet", gitRepo, "is for Fleet"],
  ])("%s is refused with documents for Starling that `validate` accepts", async (_what, text, words) => {
    const folder = workingCopy({ "theirs.yaml": text });
    for (const verb of [["validate"], ["apply", "--dry-run=client"]]) {
      const { code, err } = await run(folder, ...verb, "-f", "theirs.yaml");
      expect(code).toBe(2);
      expect(err).toContain(words);
      expect(err).toContain("  next: put the documents above into a file, then: starling validate -f FILE\n");
      const [, documents = ""] = /\n(# for Starling, the same is:\n.*?)\nerror: /s.exec(err) ?? [];
      expect(documents).toContain("path: apps/shop\n");
      writeFileSync(join(folder, "ours.yaml"), documents);
      expect(await run(folder, "validate", "-f", "ours.yaml")).toEqual({
        code: 0,
        out: "2 documents are valid\n",
        err: "",
      });
    }
  });

  test("an Application is refused with documents although the git config of the working copy has 300,000 blank lines", async () => {
    const folder = workingCopy({ "theirs.yaml": application("apps/shop") });
    const config = join(folder, ".git", "config");
    writeFileSync(config, `${"\n".repeat(300_000)}${readFileSync(config, "utf8")}`);
    const { code, err } = await run(folder, "validate", "-f", "theirs.yaml");
    expect([code, err]).toEqual([2, expect.stringContaining("path: apps/shop\n")]);
  });

  test("a fleet.yaml of Fleet is refused with a template for its folder", async () => {
    const folder = workingCopy({});
    const text = `namespace: shop
helm:
  releaseName: shop
  chart: ""
  repo: ""
  force: false
  values: {replicas: 1, image: {tag: a, name: b}}
  valuesFiles: [values-all.yaml]
overrideTargets: true
targetCustomizations:
  - {name: prod, clusterSelector: {matchLabels: {env: prod}}, helm: {values: {replicas: 3, image: {tag: c}}}}
  - {name: one, clusterName: one, helm: {values: {replicas: 5}}}
`;
    writeFileSync(join(folder, "apps", "shop", "fleet.yaml"), text);
    writeFileSync(join(folder, "apps", "shop", "Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
    const { code, err } = await run(folder, "validate", "-f", "apps/shop/fleet.yaml");
    expect(code).toBe(2);
    const [, documents = ""] = /\n(# for Starling, the same is:\n.*?)\nerror: /s.exec(err) ?? [];
    expect(documents).toContain("# apps/shop/fleet.yaml: not carried over: overrideTargets\n");
    expect(documents).toContain("write the name of its Source in place of name-of-the-source");
    const [{ value } = { value: null }] = parseDocuments(documents, "ours.yaml");
    const helm = (replicas: number, tag: string) => ({
      helm: {
        releaseName: "shop",
        values: { replicas, image: { tag, name: "b" } },
        valuesFrom: [{ path: "apps/shop/values-all.yaml" }],
      },
    });
    expect(value).toMatchObject({
      spec: {
        templates: [
          {
            path: "apps/shop",
            targetNamespace: "shop",
            createNamespace: {},
            apply: { defaultNamespace: "shop" },
            render: helm(1, "a"),
            overrides: [
              { clusters: { names: ["one"] }, render: helm(5, "a") },
              { clusters: { selector: { matchLabels: { env: "prod" } } }, render: helm(3, "c") },
            ],
          },
        ],
      },
    });
    writeFileSync(join(folder, "ours.yaml"), documents);
    expect((await run(folder, "validate", "-f", "ours.yaml")).out).toBe("1 document is valid\n");
  });

  test("the template for a fleet.yaml beside a chart has the values of the chart although only customizations set some", async () => {
    const folder = workingCopy({});
    const text = "targetCustomizations:\n  - {clusterName: one, helm: {values: {replicas: 5}, chart: other}}\n";
    writeFileSync(join(folder, "apps", "shop", "fleet.yaml"), text);
    writeFileSync(join(folder, "apps", "shop", "Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
    const { err } = await run(folder, "validate", "-f", "apps/shop/fleet.yaml");
    expect(err).toContain("render:\n            helm:\n              values:\n                replicas: 5\n");
    expect(err).toContain("# apps/shop/fleet.yaml: not carried over: targetCustomizations[0].helm.chart\n");
  });

  test.each([
    ["repo: 'https://charts.acme.example', chart: web, version: 1.x", "https://charts.acme.example"],
    ["chart: 'oci://ghcr.io/acme/charts/web', version: 1.x", "oci://ghcr.io/acme/charts"],
  ])("a fleet.yaml with the chart %s gets its Source, and files of values from the repository", async (chart, url) => {
    const folder = workingCopy({});
    writeFileSync(join(folder, "apps", "shop", "fleet.yaml"), `helm: {${chart}, valuesFiles: [prod.yaml]}\n`);
    const { err } = await run(folder, "validate", "-f", "apps/shop/fleet.yaml");
    const [documents = ""] = /^---[\s\S]*?(?=^error)/m.exec(err) ?? [];
    const [source, group] = parseDocuments(documents, "said").map(({ value }) => value);
    expect(source).toMatchObject({
      metadata: { name: "shop-chart" },
      spec: { helm: { url, chart: "web", ref: { semver: "1.x" } } },
    });
    const valuesFrom = [{ source: "name-of-the-source", path: "apps/shop/prod.yaml" }];
    expect(group).toMatchObject({
      spec: { templates: [{ source: "shop-chart", path: ".", render: { helm: { valuesFrom } } }] },
    });
  });

  test("a fleet.yaml with a chart as a file is told to write its address and checksum", async () => {
    const folder = workingCopy({});
    const url = "https://acme.example/guestbook-0.0.1.tgz";
    writeFileSync(join(folder, "apps", "shop", "fleet.yaml"), `helm: {chart: "${url}"}\n`);
    const { err } = await run(folder, "validate", "-f", "apps/shop/fleet.yaml");
    expect(err).toContain(`write a Source with spec.archive.url: ${url} and its checksum as spec.archive.sha256`);
  });

  test("the answer for a fleet.yaml beside manifests says to remove the file, and names every field that is not carried over", async () => {
    const folder = workingCopy({});
    const text = "helm: {values: {a: 1}}\ntargetCustomizations: [{clusterName: one, yaml: {overlays: [x]}}]\n";
    writeFileSync(join(folder, "apps", "shop", "fleet.yaml"), text);
    const { err } = await run(folder, "validate", "-f", "apps/shop/fleet.yaml");
    expect(err).toContain("# apps/shop/fleet.yaml: take the file out of its folder, which is refused with it\n");
    expect(err).toContain("# apps/shop/fleet.yaml: not carried over: helm.values, targetCustomizations[0].yaml\n");
    expect(err).not.toContain("overrides:");
  });

  test("an Application whose folder is not in the repository gets no documents, and the answer names the missing folder", async () => {
    const { code, err } = await run(workingCopy({ "theirs.yaml": application("apps/gone") }), "validate", "-f", ".");
    expect(code).toBe(2);
    expect(err).toContain("# Application argocd/shop: the repository here has no folder apps/gone\n");
    expect(err).not.toContain("kind: SyncGroup");
    expect(err).toContain("  next: starling init");
  });

  test("an Application beside a manifest for clusters is named, and the manifest gets its own error", async () => {
    const folder = workingCopy({ "a.yaml": application("apps/shop"), "b.yaml": "apiVersion: v1\nkind: ConfigMap\n" });
    const { err } = await run(folder, "validate", "-f", ".");
    expect(err).toContain("a.yaml:1: Application/shop: apiVersion is");
    expect(err).toContain(
      'b.yaml:1: ConfigMap: apiVersion is "v1"; expected "starling.dev/v1alpha1": this ConfigMap is for clusters;',
    );
  });
});
