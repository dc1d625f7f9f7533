import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
const generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: leak}\n";
const chart = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: c}\nname: c\nreleaseName: c\n";
const plugin = "apiVersion: example.com/v1\nkind: Leak\nmetadata: {name: leak}\n";
const functionPlugin = `${plugin.replace("name: leak", "name: leak, annotations: {config.kubernetes.io/function: 'exec: {path: ./program}'}")}`;

/**
 * The files below a home folder from which kubectl, kustomize, helm, git and curl read preferences, credentials and
 * plugins.
 */
function dotConfigs(marks: string, options: Readonly<Record<string, string>>): Record<string, string> {
  const program = (name: string): string => `#!/bin/sh\n: > ${marks}/${name}\n`;
  const listed = Object.entries(options).map(([name, value]) => ({ name, default: value }));
  const preference = (version: string): string =>
    JSON.stringify({
      apiVersion: `kubectl.config.k8s.io/${version}`,
      kind: "Preference",
      defaults: [{ command: "kustomize", [version === "v1beta1" ? "options" : "flags"]: listed }],
    });
  const kubeconfig = JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "a",
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    clusters: [{ name: "a", cluster: { server: "http://127.0.0.1:9" } }],
    users: [
      { name: "a", user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "./.kube/credential" } } },
    ],
  });
  return {
    ".kube/kuberc": preference("v1beta1"),
    ".kuberc": preference("v1beta1"),
    kuberc: preference("v1beta1"),
    ".config/kubectl/kuberc": preference("v1alpha1"),
    ".kube/config": kubeconfig,
    ".kube/credential": program("credential"),
    ".krew/bin/kubectl-kustomize": program("krew"),
    "kubectl-kustomize": program("kubectl-plugin"),
    "kustomize/plugin/example.com/v1/leak/Leak": program("plugin"),
    ".config/kustomize/plugin/example.com/v1/leak/Leak": program("config-plugin"),
    "plugin/example.com/v1/leak/Leak": program("plugin-home"),
    "example.com/v1/leak/Leak": program("plugin-root"),
    ".config/helm/repositories.yaml": "apiVersion: ''\nrepositories: [{name: a, url: 'http://127.0.0.1:9'}]",
    ".local/share/helm/plugins/a/plugin.yaml": "name: a\nhooks: {install: ./program}",
    ".helm/plugins/a/plugin.yaml": "name: a\ncommand: ./program",
    ".cache/helm/repository/a-index.yaml": "apiVersion: v1\nentries: {}",
    ".gitconfig": "[core]\n\tsshCommand = ./program\n\tfsmonitor = ./program\n[credential]\n\thelper = ./program\n",
    ".config/git/config": "[core]\n\tsshCommand = ./program\n",
    ".ssh/config": "Host *\n\tProxyCommand ./program\n",
    ".netrc": "default login a password b\n",
    ".docker/config.json": '{"credsStore": "program"}',
    ".bashrc": program("bashrc"),
    ".profile": program("profile"),
    helm: program("helm"),
    git: program("git"),
    sh: program("sh"),
    "docker-credential-program": program("docker"),
    program: program("program"),
    // A shell that is started as `helm version` runs this.
    version: program("version"),
  };
}

/** Leaves out the spare files for the next rendering, which the first test of the process makes. */
async function writtenIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return paths.filter((path) => !/^starling-spare-[^/]+(\/\d+)?$/.test(path));
}

describe("preferences that a repository brings", () => {
  let own: string;
  let marks: string;

  beforeEach(async () => {
    own = await mkdtemp(join(tmpdir(), "starling-dots-"));
    marks = join(own, "marks");
    await mkdir(marks);
    await mkdir(join(own, "tmp"));
    vi.stubEnv("TMPDIR", join(own, "tmp"));
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(own, { recursive: true, force: true });
  });

  const cases: readonly {
    readonly title: string;
    /** `MARKS` stands for a folder that stays empty unless a preference has an effect. */
    readonly options: Readonly<Record<string, string>>;
    readonly kustomization: string;
    /** Whether the build itself succeeds, because it needs nothing that is forbidden. */
    readonly builds: boolean;
  }[] = [
    {
      title: "another output",
      options: { output: "MARKS/output" },
      kustomization: "resources: [a.yaml]",
      builds: true,
    },
    {
      title: "another format",
      options: { "as-current-user": "true" },
      kustomization: "resources: [a.yaml]",
      builds: true,
    },
    {
      title: "a file named by the build as data",
      options: { output: "MARKS/output" },
      kustomization: "configMapGenerator: [{name: a, files: [.kube/kuberc, .netrc, rc=.bashrc]}]",
      builds: true,
    },
    {
      title: "no load restrictor",
      options: { "load-restrictor": "LoadRestrictionsNone" },
      kustomization: "configMapGenerator: [{name: leak, files: [../other/a.yaml]}]",
      builds: false,
    },
    {
      title: "no load restrictor, and the environment of a process",
      options: { "load-restrictor": "LoadRestrictionsNone" },
      kustomization: "generators: [environment]",
      builds: false,
    },
    {
      title: "a program as helm",
      options: { "enable-helm": "true", "helm-command": "/bin/sh" },
      kustomization: "generators: [chart]",
      builds: false,
    },
    {
      title: "plugins of the repository",
      options: { "enable-alpha-plugins": "true" },
      kustomization: "generators: [plugin]",
      builds: false,
    },
    {
      title: "functions of the repository",
      options: { "enable-alpha-plugins": "true", network: "true" },
      kustomization: "transformers: [function]",
      builds: false,
    },
    {
      title: "git of the repository",
      options: { "load-restrictor": "LoadRestrictionsNone" },
      kustomization: "resources: [github.com/acme/base]",
      builds: false,
    },
  ];

  test.each(cases)("$title: no program runs, no file is written, and nothing is sent", async (given) => {
    const options = Object.fromEntries(
      Object.entries(given.options).map(([name, value]) => [name, value.replace("MARKS", marks)]),
    );
    const dots = dotConfigs(marks, options);
    const contents: Record<string, string> = {
      ...dots,
      ...Object.fromEntries(Object.entries(dots).map(([path, text]) => [`app/${path}`, text])),
      "app/kustomization.yaml": given.kustomization,
      "app/a.yaml": configMap,
      "other/a.yaml": configMap,
      "app/environment/kustomization.yaml": "resources: [g.yaml]",
      "app/environment/g.yaml": `${generator}files: [leak=/proc/${process.pid}/environ]`,
      "app/chart/kustomization.yaml": "resources: [g.yaml]",
      "app/chart/g.yaml": chart,
      "app/charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0",
      "app/plugin/kustomization.yaml": "resources: [g.yaml]",
      "app/plugin/g.yaml": plugin,
      "app/function/kustomization.yaml": "resources: [g.yaml]",
      "app/function/g.yaml": functionPlugin,
      "app/github.com/acme/base/kustomization.yaml": "resources: [a.yaml]",
      "app/github.com/acme/base/a.yaml": configMap,
    };
    const files = Object.entries(contents).map(([path, text]) => ({
      path,
      executable: text.startsWith("#!"),
      content: new TextEncoder().encode(text),
    }));
    const runner = new KubectlKustomize({ kubectl: () => locateKubectl("") });
    const built = await runner.build({ files, path: "app" }).then(
      (output) => ({ output }),
      (error: Error) => ({ error }),
    );
    expect(await readdir(marks)).toEqual([]);
    expect(await writtenIn(join(own, "tmp"))).toEqual([]);
    expect(Object.keys(built)).toEqual([given.builds ? "output" : "error"]);
    if ("output" in built) expect(built.output).toMatch(/^apiVersion: v1\n/);
    else expect(built.error.message).not.toMatch(/PATH=|HOME=/);
  });
});
