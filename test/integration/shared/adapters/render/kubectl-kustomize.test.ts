import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";

const kubectl = () => locateKubectl("");
const runner = new KubectlKustomize({ kubectl });

function input(path: string, contents: Readonly<Record<string, string>>) {
  const files = Object.entries(contents).map(([file, text]) => ({
    path: file,
    executable: false,
    content: new TextEncoder().encode(text),
  }));
  return { path, files };
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

describe("kustomize", () => {
  test("kustomize builds an overlay over a base", async () => {
    const output = await runner.build(
      input("overlays/prod", {
        "base/kustomization.yaml": "resources: [a.yaml]",
        "base/a.yaml": `${configMap}data: {a: b}`,
        "overlays/prod/kustomization.yaml": "resources: [../../base]\nnamePrefix: prod-\nnamespace: shop\n",
      }),
    );
    expect(parseManifests(output, "x").map(({ object }) => object)).toEqual([
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "prod-a", namespace: "shop" },
        data: { a: "b" },
      },
    ]);
  });

  test("a build keeps texts that look like booleans, and all digits of integers", async () => {
    const widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: 'w:A'}\n";
    const output = await runner.build(
      input(".", {
        "kustomization.yaml": "resources: [w.yaml]\nlabels: [{pairs: {x: z}}]",
        "w.yaml": `${widget}spec: {word: yes, mode: 0644, big: 9007199254740993, bigger: 12345678901234567890}`,
      }),
    );
    const spec = parseManifests(output, "x")[0]?.object.spec;
    expect(stringifyJson(spec)).toBe('{"big":9007199254740993,"bigger":12345678901234567890,"mode":420,"word":"yes"}');
  });

  test("a build reads the configurations of plugins from folders that list them", async () => {
    const suffix =
      "apiVersion: builtin\nkind: SuffixTransformer\nmetadata: {name: s}\nfieldSpecs: [{path: metadata/name}]\n";
    const output = await runner.build(
      input("app", {
        "app/kustomization.yaml":
          "resources: [a.yaml]\ntransformers: [../plugins, c.yaml]\ngenerators: [../generators]",
        "app/a.yaml": configMap,
        "app/c.yaml": `${suffix}suffix: -c`.replace("name: s", "name: c"),
        "app/data.txt": "yes",
        "plugins/kustomization.yaml": "resources: [a.yaml, more]",
        "plugins/a.yaml": `${suffix}suffix: -a`.replace("name: s", "name: a"),
        "plugins/more/kustomization.yaml": "resources: [b.yaml]",
        "plugins/more/b.yaml": `${suffix}suffix: -b`.replace("name: s", "name: b"),
        "generators/kustomization.yaml": "resources: [g.yaml]",
        "generators/g.yaml":
          "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: [data.txt]\nliterals: [x=yes]\noptions: {disableNameSuffixHash: true}",
      }),
    );
    expect(parseManifests(output, "x").map(({ object }) => object)).toEqual([
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a-a-b-c" } },
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "g-a-b-c" }, data: { "data.txt": "yes", x: "yes" } },
    ]);
  });

  test("a repeated build gives the same bytes", async () => {
    const build = input(".", {
      "kustomization.yaml": "resources: [b.yaml, a.yaml]\nconfigMapGenerator: [{name: g, literals: [z=1, a=2]}]",
      "a.yaml": configMap,
      "b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
    });
    expect(await runner.build(build)).toBe(await runner.build(build));
  });

  test("the error of a build has kustomize's message, without the temporary folder", async () => {
    const build = input("app", { "app/kustomization.yaml": "resources: [a.yaml]\nnope: 1", "app/a.yaml": configMap });
    await expect(runner.build(build)).rejects.toMatchObject({
      code: "KustomizeFailed",
      retry: "permanent",
      message: expect.stringMatching(/^app: kustomize: (?!.*starling-render).*unknown field "nope"/s),
    });
  });

  test("a build leaves nothing in the temporary folder", async () => {
    // The test has its own folder, because other suites render at the same time.
    const own = await mkdtemp(join(tmpdir(), "starling-test-"));
    vi.stubEnv("TMPDIR", own);
    try {
      await runner.build(input(".", { "kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap }));
      expect(await readdir(own)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      await rm(own, { recursive: true, force: true });
    }
  });
});

describe("hostile kustomizations", () => {
  let server: Server;
  let origin: string;
  let requests = 0;

  beforeAll(async () => {
    server = createServer((_request, response) => {
      requests++;
      response.end(configMap);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  });

  afterAll(async () => {
    server.closeAllConnections();
    server.close();
  });

  const probes: readonly (readonly [legend: string, kustomization: string])[] = [
    ["a remote resource", "resources: [ORIGIN/x.yaml]"],
    ["a remote resource in other letters", "RESOURCES: [ORIGIN/x.yaml]"],
    ["a remote resource by merge key", "<<: {resources: [ORIGIN/x.yaml]}"],
    ["a remote schema", "resources: [a.yaml]\nopenapi: {path: ORIGIN/x}"],
    ["a remote patch", "resources: [a.yaml]\npatches: [{path: ORIGIN/x}]"],
    ["a remote patch in the old spelling", "resources: [a.yaml]\npatches: [ORIGIN/x]"],
    ["a remote CRD", "resources: [a.yaml]\ncrds: [ORIGIN/x]"],
    ["a remote configuration", "resources: [a.yaml]\nconfigurations: [ORIGIN/x]"],
    ["a remote replacement", "resources: [a.yaml]\nreplacements: [{path: ORIGIN/x}]"],
    ["a remote file in a ConfigMap", "configMapGenerator: [{name: a, files: ['k=ORIGIN/x']}]"],
    ["a remote environment", "configMapGenerator: [{name: a, envs: [ORIGIN/x]}]"],
    ["a plugin that fetches", "resources: [a.yaml]\ntransformers: [fetch.yaml]"],
    [
      "a plugin in place that fetches",
      "resources: [a.yaml]\ntransformers:\n- |\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, path: 'ORIGIN/x', op: x}",
    ],
    ["a plugin behind a folder that fetches", "resources: [a.yaml]\ntransformers: [fetching]"],
    ["a generator behind a folder that fetches", "generators: [generating]"],
    ["a validator behind folders that fetches", "resources: [a.yaml]\nvalidators: [listing]"],
    ["a folder that makes a plugin that fetches", "resources: [a.yaml]\ntransformers: [making]"],
    ["a plugin that adds a value that it fetches", "resources: [a.yaml]\ntransformers: [value.yaml]"],
    ["a plugin in a list that fetches", "resources: [a.yaml]\ntransformers: [list.yaml]"],
    ["a plugin of a component that fetches", "resources: [a.yaml]\ncomponents: [component]"],
    ["a git base", "resources: ['git::ORIGIN/acme/base.git']"],
    ["a program", "generators: [exec.yaml]"],
    ["a file outside", "resources: [../../../../etc/hostname]"],
    ["an absolute file", "resources: [/etc/hostname]"],
    ["the environment", "configMapGenerator: [{name: a, files: [/proc/self/environ]}]"],
    ["a chart", "helmCharts: [{name: a, repo: ORIGIN}]"],
  ];

  test.each(probes)("%s is refused, and no request is sent", async (_legend, kustomization) => {
    const build = input("app", {
      "app/kustomization.yaml": kustomization.replaceAll("ORIGIN", origin),
      "app/a.yaml": configMap,
      "app/fetch.yaml": `apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: ${origin}/x`,
      "app/fetching/kustomization.yaml": "resources: [p.yaml]",
      "app/fetching/p.yaml": `apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: ${origin}/x`,
      "app/generating/kustomization.yaml": "resources: [p.yaml]",
      "app/generating/p.yaml": `apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: p}\nfiles: ['k=${origin}/x']`,
      "app/listing/kustomization.yaml": "resources: [../fetching]",
      "app/making/kustomization.yaml": `resources: [p.yaml]\npatches: [{target: {kind: PatchTransformer}, patch: '[{op: replace, path: /path, value: "${origin}/x"}]'}]`,
      "app/making/p.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: a.yaml",
      "app/value.yaml": `apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: p}\nvalue: a\ntargetFilePath: ${origin}/x`,
      "app/list.yaml": `apiVersion: builtin\nkind: PatchTransformerList\nitems: [{apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, path: '${origin}/x'}]`,
      "app/component/kustomization.yaml":
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ntransformers: [../fetching]",
      "app/exec.yaml":
        "apiVersion: v1\nkind: X\nmetadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}}",
    });
    await expect(runner.build(build)).rejects.toMatchObject({ code: "KustomizationRefused" });
    expect(requests).toBe(0);
  });

  test("a build with too much output is cut off", async () => {
    const small = new KubectlKustomize({ kubectl, maxOutputBytes: 10 });
    const build = input(".", { "kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap });
    await expect(small.build(build)).rejects.toThrow("wrote more than 10 bytes");
  });

  test("a build that needs too much memory is cut off", async () => {
    const small = new KubectlKustomize({ kubectl, maxMemoryBytes: 128 * 1024 * 1024 });
    const few = input(".", { "kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap });
    expect(await small.build(few)).toContain("kind: ConfigMap");
    const many = Array.from({ length: 500_000 }, (_, index) => `  k${index}: v`).join("\n");
    const large = input(".", { "kustomization.yaml": "resources: [a.yaml]", "a.yaml": `${configMap}data:\n${many}\n` });
    await expect(small.build(large)).rejects.toMatchObject({
      code: "KustomizeFailed",
      retry: "permanent",
      message: ".: kustomize ran out of memory; make the build smaller",
    });
  });

  describe("with another program as kubectl", () => {
    let folder: string;
    const build = input(".", { "kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap });

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "starling-programs-"));
    });

    afterAll(async () => {
      await rm(folder, { recursive: true, force: true });
    });

    async function program(name: string, text: string): Promise<string> {
      const path = join(folder, name);
      await writeFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
      return path;
    }

    test("a build that takes too long is cut off", async () => {
      const path = await program("sleeper", "while :; do :; done");
      const sleeper = new KubectlKustomize({ kubectl: async () => path, timeoutSeconds: 0.2 });
      await expect(sleeper.build(build)).rejects.toMatchObject({
        retry: "transient",
        message: expect.stringContaining("longer than 0.2 s"),
      });
    });

    test("a process that a build has started ends with it, and nobody waits for it", async () => {
      const mark = join(folder, "mark");
      const path = await program("starter", `(trap '' HUP; while :; do :; done) & echo $! > ${mark}; echo 'a: b'`);
      const starter = new KubectlKustomize({ kubectl: async () => path, timeoutSeconds: 60 });
      expect(await starter.build(build)).toBe("a: b\n");
      const pid = Number(await readFile(mark, "utf8"));
      const isRunning = async () => {
        const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
        return state !== "" && !state.includes(") Z ");
      };
      await vi.waitFor(async () => expect(await isRunning()).toBe(false), { timeout: 10_000 });
    });

    test("a build that was killed from outside is a transient error", async () => {
      const path = await program("killed", "kill -9 $$");
      const killed = new KubectlKustomize({ kubectl: async () => path });
      await expect(killed.build(build)).rejects.toMatchObject({ retry: "transient" });
    });
  });

  test("a path in an artifact cannot leave the folder", async () => {
    const build = input("..", { "../kustomization.yaml": "resources: [a.yaml]", "../a.yaml": configMap });
    await expect(runner.build(build)).rejects.toThrow('"../a.yaml" leads out of the artifact');
  });
});
