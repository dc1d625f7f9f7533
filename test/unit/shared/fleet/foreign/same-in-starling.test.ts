import { describe, expect, test } from "vitest";
import { sameInStarling } from "#shared/fleet/foreign/same-in-starling.ts";
import type { FoldersOf } from "#shared/fleet/foreign/translation.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

function said(text: string, foldersOf?: FoldersOf) {
  const found = sameInStarling(
    parseDocuments(text, "theirs.yaml").map(({ value }) => value),
    foldersOf,
  );
  for (const document of found.documents) {
    const parsed = parseDocument(document);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(semanticProblems(parsed.document)).toEqual([]);
  }
  return found;
}

const source = (name: string, git: object, namespace = "default") => ({
  apiVersion: "starling.dev/v1alpha1",
  kind: "Source",
  metadata: { name, namespace },
  spec: { git },
});
const group = (name: string, spec: object, namespace = "default") => ({
  apiVersion: "starling.dev/v1alpha1",
  kind: "SyncGroup",
  metadata: { name, namespace },
  spec,
});
const someCluster = { names: ["name-of-the-cluster"] };

describe("Flux", () => {
  const repository = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 1m0s
  ref: {branch: main}
  secretRef: {name: flux-system}
  url: ssh://git@github.com/acme/fleet
---
`;

  test("a Kustomization and its GitRepository become a group of one template and its Source", () => {
    const { documents, remarks } = said(`${repository}
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 10m0s
  dependsOn: [{name: infra-configs}]
  sourceRef: {kind: GitRepository, name: flux-system}
  path: ./apps/production
  prune: true
  wait: true
  targetNamespace: shop
  images: [{name: nginx, newTag: "1.27"}]
  patches: [{patch: "- {op: remove, path: /spec}", target: {kind: Deployment}}]
  postBuild: {substitute: {region: eu-west-1, replicas: 3}, substituteFrom: [{kind: ConfigMap, name: vars}]}
`);
    expect(documents).toEqual([
      source(
        "flux-system",
        {
          url: "ssh://git@github.com/acme/fleet",
          ref: { branch: "main" },
          credentials: { secret: "starling/git/name-of-the-secret", kind: "ssh" },
        },
        "flux-system",
      ),
      group(
        "apps",
        {
          clusters: someCluster,
          templates: [
            {
              name: "apps",
              source: "flux-system",
              path: "apps/production",
              apply: { prune: true },
              parameters: { region: "eu-west-1", replicas: "3" },
              substitute: { mode: "text" },
              targetNamespace: "shop",
              images: [{ name: "nginx", newTag: "1.27" }],
              patches: [{ patch: "- {op: remove, path: /spec}", target: { kind: "Deployment" } }],
            },
          ],
        },
        "flux-system",
      ),
    ]);
    expect(remarks).toEqual([
      "GitRepository flux-system/flux-system: its repository is read over SSH: put the key as privateKey and the host's keys as knownHosts into a secret, and write its name in place of starling/git/name-of-the-secret",
      "Kustomization flux-system/apps: not carried over: spec.dependsOn, spec.wait, spec.postBuild.substituteFrom",
      "Kustomization flux-system/apps: the document does not say which clusters it is for: write their names or labels into spec.clusters",
    ]);
  });

  test("a HelmRelease with its chart in git becomes a template with the chart's folder", () => {
    const { documents } = said(`${repository}
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: flux-system}
spec:
  interval: 5m
  targetNamespace: shop
  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}
  values: {replicas: 2}
`);
    expect(documents).toContainEqual(
      group(
        "web",
        {
          clusters: someCluster,
          templates: [
            {
              name: "web",
              source: "flux-system",
              path: "charts/web",
              render: { helm: { releaseName: "shop-web", values: { replicas: 2 } } },
              apply: { defaultNamespace: "shop" },
            },
          ],
        },
        "flux-system",
      ),
    );
  });

  const release = (spec: string) => `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: web}
spec: {interval: 50m, ${spec}, values: {redis: {enabled: true}}}
---
`;
  const chartSource = (name: string, helm: object) => ({ ...source(name, {}, "web"), spec: { helm } });
  const chartGroup = (name: string, helm: object = {}) =>
    group(
      "podinfo",
      {
        clusters: someCluster,
        templates: [
          {
            name: "podinfo",
            source: name,
            path: ".",
            render: { helm: { releaseName: "podinfo", values: { redis: { enabled: true } }, ...helm } },
            apply: { defaultNamespace: "web" },
          },
        ],
      },
      "web",
    );

  test("a chart of a HelmRepository becomes a Source with its range, and the repository none", () => {
    const { documents, remarks } = said(`${release(
      "chart: {spec: {chart: podinfo, version: '>5.0.0', valuesFiles: [values-prod.yaml], sourceRef: {kind: HelmRepository, name: acme, namespace: infra}}}",
    )}
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: acme, namespace: infra}
spec: {interval: 5m, url: "https://charts.acme.example", secretRef: {name: pull}, passCredentials: true}
`);
    expect(documents).toEqual([
      chartSource("podinfo-chart", {
        url: "https://charts.acme.example",
        chart: "podinfo",
        ref: { semver: ">5.0.0" },
      }),
      chartGroup("podinfo-chart", { valuesFrom: [{ path: "values-prod.yaml" }] }),
    ]);
    expect(remarks).toEqual([
      "HelmRepository infra/acme: not carried over: spec.passCredentials",
      "HelmRepository infra/acme: name a secret in spec.helm.credentials of podinfo-chart",
      "HelmRelease web/podinfo: the document does not say which clusters it is for: write their names or labels into spec.clusters",
    ]);
  });

  test.each([
    ["tag: 1.20.0", { ref: { semver: "1.20.0" } }],
    ["semver: 1.x, tag: 1.0.0", { ref: { semver: "1.x" } }],
    ["semver: '*'", {}],
  ])("a chart of an OCIRepository with ref %s becomes a Source of the folder and the chart in it", (ref, expected) => {
    const { documents, remarks } = said(`${release("chartRef: {kind: OCIRepository, name: cert-manager}")}
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: cert-manager, namespace: web}
spec:
  interval: 24h
  url: oci://quay.io/jetstack/charts/cert-manager
  layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}
  ref: {${ref}}
`);
    expect(documents).toEqual([
      chartSource("cert-manager", { url: "oci://quay.io/jetstack/charts", chart: "cert-manager", ...expected }),
      chartGroup("cert-manager"),
    ]);
    expect(remarks).toHaveLength(1);
  });

  test("a chart of a HelmChart is the chart of its repository", () => {
    const { documents } = said(`${release("chartRef: {kind: HelmChart, name: info}")}
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: info, namespace: web}
spec: {chart: podinfo, version: 6.x, sourceRef: {kind: HelmRepository, name: acme}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: acme, namespace: web}
spec: {type: oci, url: "oci://ghcr.io/acme/charts"}
`);
    expect(documents).toEqual([
      chartSource("podinfo-chart", { url: "oci://ghcr.io/acme/charts", chart: "podinfo", ref: { semver: "6.x" } }),
      chartGroup("podinfo-chart"),
    ]);
  });

  test("a chart with a folder in front, of a HelmRepository in a registry, becomes the chart alone", () => {
    const { documents } =
      said(`${release("chart: {spec: {chart: runners/scale-set, sourceRef: {kind: HelmRepository, name: acme}}}")}
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: acme, namespace: web}
spec: {type: oci, url: "oci://ghcr.io/acme/"}
`);
    expect(documents).toEqual([
      chartSource("podinfo-chart", { url: "oci://ghcr.io/acme/runners", chart: "scale-set" }),
      chartGroup("podinfo-chart"),
    ]);
  });

  test("a HelmRelease without a chart is named as a patch of an overlay", () => {
    const { documents, remarks } = said(release("test: {enable: true}"));
    expect(documents).toEqual([]);
    expect(remarks).toEqual([
      "HelmRelease web/podinfo: it names no chart, as a patch of an overlay does: translate what `kubectl kustomize` prints for the overlay",
    ]);
  });

  test("a HelmRelease and a Kustomization of one name become two groups of two names", () => {
    const around = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: podinfo, namespace: web}
spec: {path: apps/podinfo, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
---
`;
    const { documents, remarks } = said(`${around}${release("chartRef: {kind: OCIRepository, name: podinfo}")}`);
    expect(documents.map(({ kind, metadata }) => [kind, metadata])).toEqual([
      ["SyncGroup", { name: "podinfo", namespace: "web" }],
      ["SyncGroup", { name: "podinfo-2", namespace: "web" }],
    ]);
    expect(remarks).toContain("SyncGroup web/podinfo: another document has this name, so that it is podinfo-2 here");
  });

  test("a Source with a name that another one has gets another, and what takes its chart from it follows", () => {
    const repositories = (name: string) => `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: ${name}, namespace: web}
spec: {url: "oci://ghcr.io/acme/charts/${name}", ref: {tag: 1.0.0}}
---
`;
    const releaseOf = (name: string, chart: string) => `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: ${name}, namespace: web}
spec: {chartRef: {kind: OCIRepository, name: ${chart}}, values: {source: a-b}}
---
`;
    // In Starling both names are a-b.
    const { documents } = said(
      `${repositories("a-b")}${repositories("a.b")}${releaseOf("one", "a-b")}${releaseOf("two", "a.b")}`,
    );
    const sources = documents.flatMap(({ kind, metadata, spec }) => (kind === "Source" ? [[metadata, spec]] : []));
    expect(sources).toEqual([
      [
        { name: "a-b", namespace: "web" },
        { helm: { url: "oci://ghcr.io/acme/charts", chart: "a-b", ref: { semver: "1.0.0" } } },
      ],
      [
        { name: "a-b-2", namespace: "web" },
        { helm: { url: "oci://ghcr.io/acme/charts", chart: "a.b", ref: { semver: "1.0.0" } } },
      ],
    ]);
    const templates = documents.flatMap(({ kind, spec }) =>
      kind === "SyncGroup" ? (spec as { readonly templates: readonly object[] }).templates : [],
    );
    expect(templates).toMatchObject([
      { source: "a-b", render: { helm: { values: { source: "a-b" } } } },
      { source: "a-b-2", render: { helm: { values: { source: "a-b" } } } },
    ]);
  });

  test("a chart whose repository is not among the documents leaves the Source to be written", () => {
    const { documents, remarks } = said(release("chartRef: {kind: OCIRepository, name: cert-manager}"));
    expect(documents).toEqual([chartGroup("cert-manager")]);
    expect(remarks).toContain(
      "HelmRelease web/podinfo: its OCIRepository cert-manager is not among these documents; write a Source cert-manager with spec.helm",
    );
  });

  test("a chart of a Bucket is reported with what to write", () => {
    const from = "chart: {spec: {chart: ./podinfo, sourceRef: {kind: Bucket, name: charts}}}";
    const { documents, remarks } = said(release(from));
    expect(documents).toEqual([]);
    expect(remarks).toEqual([
      "HelmRelease web/podinfo: its chart ./podinfo comes from Bucket charts, which is not translated; write a Source of any kind that has the chart, and a template with its folder as path",
    ]);
  });

  test("a Kustomization of a Bucket is reported with what to write", () => {
    const { documents, remarks } = said(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: web}
spec: {interval: 10m, path: ./deploy, prune: true, sourceRef: {kind: Bucket, name: files}}
`);
    expect(documents).toEqual([]);
    expect(remarks).toEqual([
      "Kustomization web/web: it takes from Bucket files, which is not translated; write a Source with the same files, and a template with path: deploy",
    ]);
  });

  test("manifests of an OCIRepository become a Source of the registry", () => {
    const { documents, remarks } = said(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: manifests, namespace: web}
spec: {interval: 5m, url: "oci://ghcr.io/acme/manifests", ref: {semver: 1.x, semverFilter: "-rc", tag: latest}, ignore: "*.md"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: web}
spec: {interval: 10m, path: ./deploy, prune: true, sourceRef: {kind: OCIRepository, name: manifests}}
`);
    expect(documents).toEqual([
      {
        ...source("manifests", {}, "web"),
        spec: {
          oci: { url: "oci://ghcr.io/acme/manifests", ref: { semver: "1.x", tagFilter: "-rc" } },
          ignore: "*.md",
        },
      },
      group(
        "web",
        {
          clusters: someCluster,
          templates: [{ name: "web", source: "manifests", path: "deploy", apply: { prune: true } }],
        },
        "web",
      ),
    ]);
    expect(remarks[0]).toBe("OCIRepository web/manifests: not carried over: spec.ref.tag");
  });

  test.each([
    ["nothing", "", { branch: "master" }],
    ["a branch by its full name", "ref: {name: refs/heads/main}", { branch: "main" }],
    ["a reference of a pull request", "ref: {name: refs/pull/420/head}", { name: "refs/pull/420/head" }],
    ["a tag by its full name", "ref: {name: refs/tags/v1, branch: main}", { tag: "v1" }],
  ])("a GitRepository that names %s becomes a Source that follows the same", (_what, ref, expected) => {
    const { documents } = said(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: a}
spec: {url: "https://github.com/acme/a", interval: 1m, ${ref}}
`);
    expect(documents).toEqual([source("a", { url: "https://github.com/acme/a", ref: expected })]);
  });

  test("a repository that is not among the documents is named in a remark", () => {
    const { documents, remarks } = said(`
apiVersion: kustomize.toolkit.fluxcd.io/v1beta1
kind: Kustomization
metadata: {name: infrastructure, namespace: flux-system}
spec: {interval: 1m0s, sourceRef: {kind: GitRepository, name: flux-system}, path: ./infrastructure, prune: true, validation: client}
`);
    expect(documents).toHaveLength(1);
    expect(remarks).toContain(
      "Kustomization flux-system/infrastructure: its GitRepository flux-system is not among these documents; write a Source flux-system",
    );
    expect(remarks).toContain("Kustomization flux-system/infrastructure: not carried over: spec.validation");
  });
});

describe("Argo CD", () => {
  test("an Application becomes a group of one template, and its Source", () => {
    const { documents, remarks } = said(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: guestbook
  namespace: argocd
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec:
  project: default
  source: {repoURL: "https://github.com/acme/example-apps.git", targetRevision: HEAD, path: guestbook}
  destination: {server: "https://kubernetes.default.svc", namespace: guestbook}
  syncPolicy: {automated: {prune: true, selfHeal: true}, syncOptions: [CreateNamespace=true, ServerSideApply=true]}
  ignoreDifferences: [{group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}]
`);
    expect(documents).toEqual([
      source("example-apps", { url: "https://github.com/acme/example-apps.git" }, "argocd"),
      group(
        "guestbook",
        {
          clusters: someCluster,
          templates: [
            {
              name: "guestbook",
              source: "example-apps",
              path: "guestbook",
              targetNamespace: "guestbook",
              createNamespace: {},
              apply: { prune: true, defaultNamespace: "guestbook" },
            },
          ],
        },
        "argocd",
      ),
    ]);
    expect(remarks).toContain(
      "Application argocd/guestbook: not carried over: spec.ignoreDifferences, spec.syncPolicy.syncOptions ServerSideApply=true",
    );
  });

  const application = (name: string, source: string) => `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: ${name}}
spec:
  source: {repoURL: "https://github.com/acme/a", ${source}}
  destination: {name: prod, namespace: shop}
  syncPolicy: {syncOptions: [CreateNamespace=true]}
---`;

  test("two Applications that make one Namespace become two groups, of which the first makes it", () => {
    const { documents, remarks } = said(`${application("web", "path: web")}${application("api", "path: api")}`);
    expect(documents.slice(1)).toEqual([
      group(
        "web",
        expect.objectContaining({ templates: [expect.objectContaining({ createNamespace: {} })] }) as object,
      ),
      group(
        "api",
        expect.objectContaining({ templates: [expect.not.objectContaining({ createNamespace: {} })] }) as object,
      ),
    ]);
    expect(remarks).toContain("SyncGroup default/api: its Namespace shop comes with SyncGroup default/web");
    expect(remarks).toContain(
      "Application web: targetNamespace also moves objects that name another namespace, which Argo CD leaves there",
    );
  });

  test.each([
    ["path: apps", ["Application web: manifests in apps/old are rendered as well, which Argo CD leaves out"]],
    ["path: apps, directory: {recurse: true}", []],
    ["path: charts/web", []],
  ])("subfolders that Argo CD does not read are named in a remark, of %s", (from, expected) => {
    const folders = () => [".", "apps", "apps/old", "charts", "charts/web", "charts/web/templates", "charts/web/ci"];
    const { remarks } = said(application("web", from), folders);
    expect(remarks.filter((remark) => remark.includes("rendered as well"))).toEqual(expected);
  });

  test("values, their files and a named cluster of an Application with a chart are carried over", () => {
    const { documents, remarks } = said(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source:
    repoURL: git@github.com:acme/platform.git
    targetRevision: v1.2.0
    path: charts/web
    helm:
      releaseName: shop
      valueFiles: [values-prod.yaml, $other/values.yaml]
      values: "replicas: 2"
      parameters: [{name: image.tag, value: "7"}]
  destination: {name: prod-eu, namespace: shop}
`);
    expect(documents).toEqual([
      source("platform-v1-2-0", {
        url: "ssh://git@github.com/acme/platform.git",
        ref: { tag: "v1.2.0" },
        credentials: { secret: "starling/git/name-of-the-secret", kind: "ssh" },
      }),
      group("web", {
        clusters: { names: ["prod-eu"] },
        templates: [
          {
            name: "web",
            source: "platform-v1-2-0",
            path: "charts/web",
            apply: { prune: false, drift: "report", defaultNamespace: "shop" },
            render: {
              helm: {
                releaseName: "shop",
                values: { replicas: 2 },
                valuesFrom: [{ path: "charts/web/values-prod.yaml" }],
              },
            },
          },
        ],
      }),
    ]);
    expect(remarks).toEqual([
      "Application web: not carried over: spec.source.helm.valueFiles $other/values.yaml, spec.source.helm.parameters image.tag (write it into values)",
      "Application web: its repository is read over SSH: put the key as privateKey and the host's keys as knownHosts into a secret, and write its name in place of starling/git/name-of-the-secret",
    ]);
  });

  test("a chart of a chart repository becomes its Source, with files of values from another repository", () => {
    const { documents, remarks } = said(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: sealed-secrets}
spec:
  sources:
    - chart: sealed-secrets
      repoURL: https://bitnami-labs.github.io/sealed-secrets
      targetRevision: 1.16.1
      helm: {valueFiles: [values-prod.yaml, $values/env/prod.yaml, $values/../x.yaml]}
    - {repoURL: "https://github.com/acme/fleet", targetRevision: main, ref: values}
  destination: {server: "https://kubernetes.default.svc", namespace: kubeseal}
`);
    expect(documents).toEqual([
      {
        ...source("sealed-secrets-chart", {}),
        spec: {
          helm: {
            url: "https://bitnami-labs.github.io/sealed-secrets",
            chart: "sealed-secrets",
            ref: { semver: "1.16.1" },
          },
        },
      },
      source("fleet-main", { url: "https://github.com/acme/fleet", ref: { branch: "main" } }),
      group("sealed-secrets", {
        clusters: someCluster,
        templates: [
          {
            name: "sealed-secrets",
            source: "sealed-secrets-chart",
            path: ".",
            apply: { prune: false, drift: "report", defaultNamespace: "kubeseal" },
            render: {
              helm: { valuesFrom: [{ path: "values-prod.yaml" }, { source: "fleet-main", path: "env/prod.yaml" }] },
            },
          },
        ],
      }),
    ]);
    expect(remarks).toContain(
      "Application sealed-secrets: not carried over: spec.source.helm.valueFiles $values/../x.yaml",
    );
  });

  test("a registry without a scheme is one of OCI", () => {
    const { documents } = said(
      application("web", "chart: web").replace("https://github.com/acme/a", "ghcr.io/acme/charts"),
    );
    expect(documents[0]).toEqual({
      ...source("web-chart", {}),
      spec: { helm: { url: "oci://ghcr.io/acme/charts", chart: "web" } },
    });
  });

  const template = (path: string, more = "") => `
  template:
    metadata: {name: "{{name}}-guestbook"}
    spec:
      project: default
      source: {repoURL: "https://github.com/acme/sets.git", targetRevision: HEAD, path: "${path}"}
      destination: {server: "{{server}}", namespace: guestbook}
      ${more}
`;
  const set = (generators: string, rest: string) => `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: guestbook}
spec:
  generators: ${generators}${rest}`;

  test("an ApplicationSet's cluster generator becomes a selection by labels", () => {
    const { documents } = said(
      set(
        "[{clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster, env: prod}}, values: {folder: web}}}]",
        template("apps/{{values.folder}}/{{metadata.labels.region}}"),
      ),
    );
    expect(documents[1]).toMatchObject({
      spec: {
        clusters: { selector: { matchLabels: { env: "prod" } } },
        templates: [{ name: "guestbook", path: "apps/web/{{ cluster.labels.region }}" }],
      },
    });
  });

  test("a list of clusters becomes their names, and differences among them become values", () => {
    const { documents, remarks } = said(
      set(
        "[{list: {elements: [{cluster: engineering-dev, url: a, tier: small}, {cluster: engineering-prod, url: b, tier: big}]}}]",
        template("guestbook/{{cluster}}/{{tier}}"),
      ),
    );
    expect(documents[1]).toMatchObject({
      spec: {
        clusters: { names: ["engineering-dev", "engineering-prod"] },
        templates: [{ path: "guestbook/{{ cluster.name }}/{{ cluster.values.tier }}" }],
      },
    });
    expect(remarks.join()).toContain("tier differs by cluster: give each of them a value tier");
  });

  const matrix = `[{matrix: {generators: [
    {git: {repoURL: "https://github.com/acme/sets.git", directories: [{path: addons/*}, {path: addons/old, exclude: true}]}},
    {clusters: {}}]}}]`;

  test("the folders of a git generator become templates, if they exist", () => {
    const folders = () => [".", "addons", "addons/argo", "addons/prom", "addons/prom/crds", "addons/old"];
    const { documents } = said(set(matrix, template("{{path}}")), folders);
    expect(documents[1]).toMatchObject({
      spec: {
        clusters: { all: true },
        templates: [
          { name: "argo", path: "addons/argo" },
          { name: "prom", path: "addons/prom" },
        ],
      },
    });
  });

  test("a template has the name of its Application, because the release of a chart has that name", () => {
    const git = `[{git: {repoURL: "https://github.com/acme/sets.git", directories: [{path: addons/*}]}}]`;
    const text = set(git, template("{{path}}")).replace("{{name}}-guestbook", "team-{{path.basename}}");
    const { documents } = said(text, () => [".", "addons", "addons/argo"]);
    expect(documents[1]).toMatchObject({ spec: { templates: [{ name: "team-argo", path: "addons/argo" }] } });
  });

  test("folders of a missing repository are named in a remark, and not invented", () => {
    const { documents, remarks } = said(set(matrix, template("{{path}}")));
    expect(documents).toEqual([]);
    expect(remarks.join()).toContain("addons/* stands for folders of another repository: write a template for each");
  });

  test("the syntax of Go's templates is read as well", () => {
    const { documents } = said(
      set(
        "[{clusters: {selector: {matchExpressions: [{key: env, operator: In, values: [dev]}]}}}]",
        template(`x/{{.metadata.labels.env}}/{{ index .metadata.labels \\"a.b/c\\" }}/{{.name}}`),
      ).replace("name: guestbook}\nspec:", "name: guestbook}\nspec:\n  goTemplate: true"),
    );
    expect(documents[1]).toMatchObject({
      spec: {
        clusters: { selector: { matchExpressions: [{ key: "env", operator: "In", values: ["dev"] }] } },
        templates: [{ path: "x/{{ cluster.labels.env }}/{{ cluster.labels.a.b/c }}/{{ cluster.name }}" }],
      },
    });
  });

  test.each(["pullRequest", "scmProvider", "merge", "plugin"])(
    "a generator %s is reported as not possible yet",
    (kind) => {
      const { documents, remarks } = said(set(`[{${kind}: {}}]`, template("a")));
      expect(documents).toEqual([]);
      expect(remarks).toContain(
        `ApplicationSet guestbook: a generator ${kind} is not possible yet; write a SyncGroup for what it finds`,
      );
    },
  );

  test("an unknown expression is named in a remark, and no document has it", () => {
    const { documents, remarks } = said(set("[{clusters: {}}]", template("{{ .values.nothing | upper }}")));
    expect(documents.map(({ kind }) => kind)).toEqual(["Source"]);
    expect(remarks.join()).toContain("SyncGroup default/guestbook cannot be written: spec.templates[0].path");
  });
});

describe("Fleet", () => {
  test("a GitRepo becomes a Source, and a template for each of its paths", () => {
    const { documents, remarks } = said(`
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: simple, namespace: fleet-default}
spec:
  repo: https://github.com/acme/fleet-examples
  branch: main
  paths: [simple, multi-cluster/helm]
  serviceAccount: fleet
  targets:
    - {name: prod, clusterSelector: {matchLabels: {env: prod}}}
`);
    expect(documents).toEqual([
      source("simple", { url: "https://github.com/acme/fleet-examples", ref: { branch: "main" } }, "fleet-default"),
      group(
        "simple",
        {
          clusters: { selector: { matchLabels: { env: "prod" } } },
          templates: [
            { name: "simple", source: "simple", path: "simple", apply: { defaultNamespace: "default" } },
            {
              name: "multi-cluster-helm",
              source: "simple",
              path: "multi-cluster/helm",
              apply: { defaultNamespace: "default" },
            },
          ],
        },
        "fleet-default",
      ),
    ]);
    expect(remarks).toContain("GitRepo fleet-default/simple: not carried over: spec.serviceAccount");
  });

  test("targets of several selectors become a group each, with a remark that a cluster can be in one only", () => {
    const { documents, remarks } = said(`
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: a}
spec:
  repo: https://github.com/acme/a
  targets: [{clusterSelector: {matchLabels: {env: dev}}}, {clusterName: one}]
`);
    expect(documents.slice(1).map(({ metadata, spec }) => [metadata, spec])).toEqual([
      [{ name: "a-1", namespace: "default" }, expect.objectContaining({ clusters: { names: ["one"] } })],
      [
        { name: "a-2", namespace: "default" },
        expect.objectContaining({ clusters: { selector: { matchLabels: { env: "dev" } } } }),
      ],
    ]);
    expect(remarks).toContain(
      "GitRepo a: a cluster can be of one of its groups only: let no two of them select the same",
    );
  });

  test("a target of all clusters becomes one group, whatever else is a target", () => {
    const { documents } = said(`
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: a}
spec:
  repo: https://github.com/acme/a
  targets: [{clusterSelector: {matchLabels: {env: dev}}}, {clusterSelector: {}}, {clusterName: one}]
`);
    expect(documents.slice(1)).toEqual([group("a", expect.objectContaining({ clusters: { all: true } }) as object)]);
  });
});

test("a folder that the repository does not have is named in a remark, and no document has it", () => {
  const { documents, remarks } = said(
    `
apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata: {name: a}
spec: {repo: https://github.com/acme/a, paths: [there, gone]}
`,
    () => [".", "there"],
  );
  expect(documents[1]).toMatchObject({ spec: { templates: [{ path: "there" }] } });
  expect(remarks).toContain("GitRepo a: the repository here has no folder gone");
});

test.each([
  ["Bundle", "fleet.cattle.io/v1alpha1"],
  ["AppProject", "argoproj.io/v1alpha1"],
  ["HelmRepository", "source.toolkit.fluxcd.io/v1"],
  ["Bucket", "source.toolkit.fluxcd.io/v1"],
  ["ExternalArtifact", "source.toolkit.fluxcd.io/v1"],
  ["Receiver", "notification.toolkit.fluxcd.io/v1"],
])("a %s alone becomes no document, and a remark says what to write", (kind, apiVersion) => {
  const { documents, remarks } = sameInStarling([{ apiVersion, kind, metadata: { name: "a" } }]);
  expect(documents).toEqual([]);
  expect(remarks).toEqual([expect.stringContaining(`${kind} a: for Starling, write `)]);
});

test.each([
  ["Application", "argoproj.io/v1alpha1"],
  ["ApplicationSet", "argoproj.io/v1alpha1"],
  ["Kustomization", "kustomize.toolkit.fluxcd.io/v1"],
  ["GitRepository", "source.toolkit.fluxcd.io/v1"],
  ["HelmRelease", "helm.toolkit.fluxcd.io/v2"],
  ["GitRepo", "fleet.cattle.io/v1alpha1"],
])("a %s without any field, or with wrong ones, is read without an error", (kind, apiVersion) => {
  for (const spec of [
    undefined,
    null,
    [],
    "x",
    { source: [], sources: [1], generators: [null, { list: 1 }], path: 7, targets: [1] },
  ]) {
    const object = { apiVersion, kind, ...(spec === undefined ? {} : { spec }) };
    for (const document of sameInStarling([object]).documents)
      expect(parseDocument(document)).toMatchObject({ ok: true });
  }
});

test("documents of no other tool are skipped", () => {
  expect(sameInStarling([{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } }, null, 7])).toEqual({
    documents: [],
    remarks: [],
  });
});
