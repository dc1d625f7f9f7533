import { beforeEach, describe, expect, test } from "vitest";
import { type RenderPorts, renderInput } from "#functions/render/render-input.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { dueAtOf, dueAttributes } from "#shared/fleet/rows/due.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { RenderMessage } from "#shared/messages.ts";
import type { KustomizeRunner, Log, RenderInput } from "#shared/ports.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { memoryBuilder } from "#test/support/memory-builder.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const silent: Log = { info: () => {}, warn: () => {}, error: () => {} };
const helm = new HelmTemplate({ helm: () => locateHelm("") });
const kubectl = new KubectlKustomize({ kubectl: () => locateKubectl("") });
const web: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };
const api: Owner = { namespace: "shop", kind: "Sync", name: "api" };

class World {
  readonly table = new MemoryTable();
  readonly blobs = new MemoryBlobStore(() => this.now);
  readonly sender = new MemorySender();
  builds = 0;
  now = new Date("2026-03-01T10:00:00.000Z");
  beforeBuild: (() => Promise<void>) | undefined;
  helm = helm;

  ports(): RenderPorts {
    const kustomize: KustomizeRunner = {
      build: async (input: RenderInput) => {
        this.builds++;
        const act = this.beforeBuild;
        this.beforeBuild = undefined;
        await act?.();
        return kubectl.build(input);
      },
    };
    let ids = 0;
    return {
      table: this.table,
      blobs: this.blobs,
      sender: this.sender,
      builder: memoryBuilder(this.blobs, { kustomize, helm: this.helm }),
      clock: { now: () => this.now },
      ids: { unique: () => `worker-${ids++}` },
      log: silent,
      turns: 1,
    };
  }

  async ask(
    contents: Readonly<Record<string, string>>,
    template: { readonly path?: string; readonly render?: BuildOptions } = {},
  ): Promise<void> {
    const files = Object.entries(contents).map(([path, text]) => ({
      path,
      executable: false,
      content: new TextEncoder().encode(text),
    }));
    const artifactDigest = treeDigest(files);
    await this.blobs.overwrite(blobKeys.artifact(artifactDigest), await packArtifact(files));
    await this.put({ artifactDigest, path: ".", ...template });
  }

  async put(desired: {
    readonly artifactDigest: string;
    readonly path: string;
    readonly render?: BuildOptions;
  }): Promise<void> {
    const key = keys.rendering("sha256:in");
    const row: RenderingRow = {
      ...key,
      ...dueAttributes(key, "2026-03-01T10:00:30.000Z"),
      type: "Rendering",
      schema: rowSchema,
      version: 1,
      input: "sha256:in",
      ...desired,
      engine: "e",
      state: "Pending",
      requestedAt: this.now.toISOString(),
      tries: 0,
      dispatches: 1,
    };
    await this.table.write([{ put: row }]);
  }

  async row(): Promise<RenderingRow> {
    const row = await this.table.get(keys.rendering("sha256:in"));
    if (row === undefined) throw new Error("the rendering is gone");
    return row;
  }

  async render(notify?: Owner): Promise<void> {
    const message = { to: "render", input: "sha256:in" } as const;
    await renderInput(notify === undefined ? message : { ...message, notify }, this.ports());
  }

  async rendering(): Promise<string> {
    const { digest } = await this.row();
    return new TextDecoder().decode(await this.blobs.get(blobKeys.rendering(digest ?? "")));
  }

  notified(): readonly string[] {
    return this.sender.take().map((message) => (message.to === "rollout" ? message.owner.name : message.to));
  }
}

let world: World;
beforeEach(() => {
  world = new World();
});

const configMap = (name: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\n`;
const names = async (): Promise<readonly string[]> =>
  (JSON.parse(await world.rendering()) as { metadata: { name: string } }[]).map((object) => object.metadata.name);

describe("a rendering", () => {
  test("a rendering of plain files has every object below the folder, sorted by identity", async () => {
    await world.ask(
      {
        "deploy/z.yaml": configMap("a"),
        "deploy/sub/x.yml": `${configMap("c")}---\n${configMap("b")}`,
        "deploy/j.json": '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}',
        "deploy/readme.md": "# no manifest",
        "other/x.yaml": configMap("no"),
      },
      { path: "deploy" },
    );
    await world.render(web);
    expect(await names()).toEqual(["a", "b", "c", "s"]);
    expect(await world.row()).toMatchObject({ state: "Done", objects: 4, tries: 1 });
    expect(await world.row()).not.toHaveProperty("dueKey");
    expect(await world.row()).not.toHaveProperty("claim");
    expect(world.notified()).toEqual(["web"]);
    expect(world.builds).toBe(0);
  });

  test("a rendering keeps the meaning that YAML has for kubectl", async () => {
    await world.ask({
      "a.yaml":
        "apiVersion: example.com/v1\nkind: W\nmetadata: {name: 'w:A'}\nspec: {mode: 0644, on: yes, big: 9007199254740993}",
    });
    await world.render();
    expect(await world.rendering()).toBe(
      '[{"apiVersion":"example.com/v1","kind":"W","metadata":{"name":"w:A"},"spec":{"big":9007199254740993,"mode":420,"true":true}}]',
    );
  });

  test("a rendering of a kustomization is the output of kustomize", async () => {
    await world.ask(
      {
        "base/kustomization.yaml": "resources: [a.yaml]",
        "base/a.yaml": configMap("a"),
        "prod/kustomization.yaml": "resources: [../base]\nnamePrefix: p-",
      },
      { path: "./prod/" },
    );
    await world.render();
    expect(await names()).toEqual(["p-a"]);
  });

  test("a rendering joins folders with a kustomization of their own to the plain files around them", async () => {
    await world.ask({
      "a.yaml": configMap("a"),
      "sub/kustomization.yaml": "resources: [b.yaml]\nnamePrefix: p-",
      "sub/b.yaml": configMap("b"),
      "sub/deep/kustomization.yaml": "resources: [http://127.0.0.1/never-reached]",
      "sub/unused.yaml": configMap("unused"),
    });
    await world.render();
    expect(await names()).toEqual(["a", "p-b"]);
    expect(world.builds).toBe(1);
  });

  test("a rendering as plain files reads every file", async () => {
    await world.ask(
      {
        "kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamePrefix: p-",
        "a.yaml": configMap("a"),
      },
      { render: { plain: {} } },
    );
    await world.render();
    expect(await names()).toEqual(["a"]);
    expect(world.builds).toBe(0);
  });

  test("a rendering of the same objects in other files has the same digest", async () => {
    await world.ask({ "a.yaml": configMap("a"), "b.yaml": configMap("b") });
    await world.render();
    const first = (await world.row()).digest;
    world = new World();
    await world.ask({ "x/y.yaml": `${configMap("b")}---\n${configMap("a")}` });
    await world.render();
    expect((await world.row()).digest).toBe(first);
  });
});

describe("a folder that cannot be rendered", () => {
  const rows: readonly (readonly [
    legend: string,
    files: Readonly<Record<string, string>>,
    path: string,
    failure: object,
  ])[] = [
    [
      "a folder without manifests",
      { "a.md": "x" },
      ".",
      { code: "EmptyRender", message: expect.stringContaining("contains no objects") },
    ],
    ["a folder with only comments", { "a.yaml": "# x\n---\n" }, ".", { code: "EmptyRender" }],
    [
      "a folder that does not exist",
      { "a.yaml": configMap("a") },
      "b",
      { code: "EmptyRender", message: expect.stringContaining("b: is not a folder of the artifact") },
    ],
    ["a file instead of a folder", { "a.yaml": configMap("a") }, "a.yaml", { code: "EmptyRender" }],
    [
      "a file that is not an object",
      { "values.yaml": "replicas: 1" },
      ".",
      {
        code: "NotKubernetes",
        message: expect.stringMatching(/^values.yaml:1, document 1: is not a Kubernetes object/),
      },
    ],
    [
      "a file with invalid YAML",
      { "a.yaml": configMap("a"), "b.yaml": "a: [" },
      ".",
      { code: "InvalidYaml", message: expect.stringMatching(/^b.yaml:1/) },
    ],
    [
      "a folder with the same object twice",
      { "a.yaml": configMap("a"), "b.yaml": configMap("a") },
      ".",
      { code: "DuplicateObject", message: expect.stringContaining("is also in a.yaml:1") },
    ],
    [
      "a folder with a chart among plain manifests",
      { "a/app/Chart.yaml": "name: app", "a/app/templates/x.yaml": "{{ x }}", "a/b.yaml": configMap("b") },
      "a",
      {
        code: "NotKubernetes",
        message: expect.stringMatching(/^a\/app\/Chart\.yaml: makes a\/app a Helm chart.*path: a\/app and render/),
      },
    ],
    [
      "a folder of the templates of a chart",
      { "app/Chart.yaml": "name: app", "app/templates/x.yaml": "{{ x }}" },
      "app/templates",
      {
        code: "NotKubernetes",
        message: expect.stringMatching(/^app\/templates: is inside the Helm chart app.*path: app$/),
      },
    ],
    [
      "a chart that the template does not expect",
      { "app/Chart.yaml": "name: app", "app/templates/x.yaml": "{{ x }}" },
      "app",
      {
        code: "ChartRefused",
        message: expect.stringMatching(/^app: is a Helm chart that was not expected.*render: {helm: {}}/),
      },
    ],
    [
      "a bundle of Fleet",
      { "app/fleet.yaml": "helm: {chart: x}", "app/x.yaml": configMap("b") },
      "app",
      { code: "NotKubernetes", message: expect.stringMatching(/^app\/fleet\.yaml: is a file of Rancher Fleet;/) },
    ],
    [
      "a manifest with an unknown Helm hook",
      { "a.yaml": configMap("a").replace("a}", "a, annotations: {helm.sh/hook: post-instal}}") },
      ".",
      {
        code: "HookRefused",
        message: expect.stringMatching(/^a\.yaml:1, document 1, ConfigMap a, .* has "post-instal"/),
      },
    ],
    [
      "a folder whose objects depend on each other in a circle",
      {
        "a.yaml": configMap("a").replace(
          "a}",
          "a, namespace: shop, annotations: {config.kubernetes.io/depends-on: /namespaces/shop/ConfigMap/b}}",
        ),
        "b.yaml": configMap("b").replace(
          "b}",
          "b, namespace: shop, annotations: {config.kubernetes.io/depends-on: /namespaces/shop/ConfigMap/a}}",
        ),
      },
      ".",
      {
        code: "OrderRefused",
        message: expect.stringMatching(/ConfigMap shop\/[ab].*is part of a cycle: ConfigMap shop\/[ab] waits for/),
      },
    ],
    [
      "an object with the kapp mark noop",
      { "a.yaml": configMap("a").replace("a}", "a, annotations: {kapp.k14s.io/noop: here}}") },
      ".",
      {
        code: "MarkRefused",
        message: expect.stringMatching(/^a\.yaml:1, document 1, ConfigMap a, .*noop.* is "here"/),
      },
    ],
    [
      "a kustomization with a remote base",
      { "kustomization.yaml": "resources: [https://example.com/x]" },
      ".",
      { code: "KustomizationRefused" },
    ],
    [
      "a kustomization with an unknown field",
      { "kustomization.yaml": "nope: 1" },
      ".",
      { code: "KustomizeFailed", message: expect.stringContaining("nope") },
    ],
  ];
  test.each(rows)("%s fails for good, and the reason is in the row", async (_legend, files, path, failure) => {
    await world.ask(files, { path });
    await world.render(web);
    expect(await world.row()).toMatchObject({ state: "Failed", failure: { ...failure, permanent: true } });
    expect(await world.row()).not.toHaveProperty("dueKey");
    expect(world.notified()).toEqual(["web"]);
  });

  test("an artifact whose content does not fit its digest fails", async () => {
    await world.blobs.overwrite(blobKeys.artifact("sha256:aa"), await packArtifact([]));
    await world.put({ artifactDigest: "sha256:aa", path: "." });
    await world.render(web);
    expect(await world.row()).toMatchObject({
      state: "Pending",
      failure: { code: "ArtifactInvalid", permanent: false },
    });
  });
});

describe("a finished rendering", () => {
  const day = 86_400_000;
  const pass = (days: number) => {
    world.now = new Date(world.now.getTime() + days * day);
    world.blobs.expire(60);
  };
  const there = async () => {
    const { digest = "", artifactDigest } = await world.row();
    const keys = world.blobs.keys();
    return [blobKeys.rendering(digest), blobKeys.artifact(artifactDigest)].map((key) => keys.includes(key));
  };
  const begin = async () => {
    await world.ask({ "a.yaml": configMap("a") });
    await world.render(web);
    world.sender.take();
  };

  test("a rendering and its inputs are kept as long as owners ask for it, and it is made only once", async () => {
    await begin();
    for (let asked = 0; asked < 10; asked++) {
      pass(50);
      await world.render(web);
      expect(world.notified()).toEqual(["web"]);
    }
    expect(await there()).toEqual([true, true]);
    expect(await world.row()).toMatchObject({ state: "Done", tries: 1, keptAt: world.now.toISOString() });
    // The row expires in 180 days.
    expect((await world.row()).expiresAt).toBe(world.now.getTime() / 1000 + 15_552_000);
    pass(61);
    expect(await there()).toEqual([false, false]);
  });

  test("the use of a rendering is recorded every half day at most, however many owners ask for it", async () => {
    await begin();
    pass(0.4);
    for (let asked = 0; asked < 3; asked++) await world.render();
    expect(await world.row()).toMatchObject({ version: 3 });
    pass(0.1);
    for (let asked = 0; asked < 3; asked++) await world.render();
    expect(await world.row()).toMatchObject({ version: 4, keptAt: world.now.toISOString() });
    expect(world.notified()).toEqual([]);
  });

  test("a rendering that is gone is made again when an owner asks for it, and is recorded as new", async () => {
    await begin();
    const { digest = "", artifactDigest } = await world.row();
    pass(1);
    await world.render();
    pass(40);
    world.blobs.lose(blobKeys.rendering(digest));
    await world.render(api);
    expect(await there()).toEqual([true, true]);
    expect(world.notified()).toEqual(["api"]);
    expect(await world.row()).toMatchObject({ state: "Done", losses: 1, doneAt: world.now.toISOString() });
    expect(await world.row()).not.toHaveProperty("keptAt");
    expect(artifactDigest).toBe((await world.row()).artifactDigest);
  });

  test("a rendering whose artifact is lost has the artifact fetched at the revision that its requester knew", async () => {
    await begin();
    const source = { namespace: "shop", name: "fleet", revision: "main@sha1:0f" };
    const { artifactDigest } = await world.row();
    const row: RenderingRow = { ...(await world.row()), sources: [source] };
    await world.table.write([{ put: row }]);
    pass(2);
    world.blobs.lose(blobKeys.artifact(artifactDigest));
    await world.render();
    const { revision, ...ref } = source;
    expect(world.sender.take()).toEqual([{ to: "resolve", source: ref, lost: artifactDigest, revision }]);
    expect(await there()).toEqual([true, false]);
  });

  test.each(["before", "after"] as const)(
    "a rendering is kept by the next request when the renderer dies %s any of its calls",
    async (when) => {
      for (let at = 1, hasDied = true; hasDied; at++) {
        world = new World();
        await begin();
        pass(50);
        let calls = 0;
        hasDied = false;
        const dying = <Port extends object>(port: Port): Port =>
          new Proxy(port, {
            get:
              (target, name) =>
              async (...given: unknown[]) => {
                const dies = ++calls === at;
                hasDied ||= dies;
                if (dies && when === "before") throw new Error("dead");
                const result: unknown = await Reflect.apply(Reflect.get(target, name) as () => unknown, target, given);
                if (dies) throw new Error("dead");
                return result;
              },
          });
        const { table, blobs, ...ports } = world.ports();
        const message = { to: "render", input: "sha256:in" } as const;
        await renderInput(message, { ...ports, table: dying(table), blobs: dying(blobs) }).catch(() => {});
        await renderInput(message, world.ports());
        pass(59);
        expect(await there()).toEqual([true, true]);
        expect(at).toBeLessThan(10);
      }
    },
  );

  test("a rendering is stored over the remains of an old one", async () => {
    await begin();
    const { artifactDigest, path } = await world.row();
    pass(59);
    await world.blobs.renew(blobKeys.artifact(artifactDigest), world.now);
    await world.put({ artifactDigest, path });
    await world.render();
    pass(59);
    expect(await there()).toEqual([true, true]);
  });
});

describe("a lost blob", () => {
  const source = { namespace: "shop", name: "fleet" };
  const other = { namespace: "other", name: "fleet" };
  const asks = (more: Partial<RenderMessage>) =>
    renderInput({ to: "render", input: "sha256:in", ...more }, world.ports());

  test("a lost artifact is requested from the Sources that may have it, once for each try", async () => {
    await world.put({ artifactDigest: "sha256:aa", path: "." });
    await asks({ notify: web, source });
    expect(world.sender.take()).toEqual([{ to: "resolve", source, lost: "sha256:aa" }]);
    await asks({ source: other });
    expect(world.sender.take()).toEqual([
      { to: "resolve", source, lost: "sha256:aa" },
      { to: "resolve", source: other, lost: "sha256:aa" },
    ]);
    expect(await world.row()).toMatchObject({ state: "Pending", sources: [source, other], tries: 2 });
    await asks({ source: { ...source, revision: "main@sha1:0f" } });
    const { failure, sources } = await world.row();
    expect(sources).toEqual([other, { ...source, revision: "main@sha1:0f" }]);
    expect(failure?.message).toMatch(
      /no blob .*the artifact sha256:aa of Source fleet in namespace other, or of Source fleet in namespace shop at main@sha1:0f is fetched again; resume the Source where it is suspended, and where git has it no more, push a commit/,
    );
  });

  test("a lost artifact of values is requested from the Sources that may have it, and no other", async () => {
    const valuesFrom = [{ path: "a.yaml", optional: false, from: { source: "values", artifactDigest: "sha256:bb" } }];
    const chart = { releaseName: "web", namespace: "shop", crds: "Skip", lookup: "Refuse", hooks: "Omit" } as const;
    await world.put({ artifactDigest: "sha256:aa", path: ".", render: { helm: { ...chart, valuesFrom } } });
    const besides = { namespace: "shop", name: "values", revision: "main@sha1:0f", besides: "sha256:bb" };
    await asks({ notify: web, source, besides: [besides] });
    const { besides: lost, ...of } = besides;
    const { revision, ...values } = of;
    expect(world.sender.take()).toEqual([
      { to: "resolve", source, lost: "sha256:aa" },
      { to: "resolve", source: values, lost, revision },
    ]);
    const { failure, sources } = await world.row();
    expect(sources).toEqual([source, besides]);
    expect(failure?.message).toMatch(
      /the artifact sha256:aa of Source fleet in namespace shop is fetched again, and its values' of Source values in namespace shop at main@sha1:0f;/,
    );
  });

  test("a lost rendering is made again, and reported", async () => {
    await world.ask({ "a.yaml": configMap("a") });
    await world.render(web);
    const { digest = "" } = await world.row();
    const key = blobKeys.rendering(digest);
    const bytes = await world.blobs.get(key);
    world.sender.take();

    // The rendering exists, so nothing is made.
    await asks({ lost: digest, notify: web });
    expect(world.sender.take()).toEqual([]);
    expect(await world.row()).toMatchObject({ state: "Done", tries: 1 });

    world.blobs.lose(key);
    // A message that does not report the loss causes no read of the blob.
    await world.render(web);
    expect(world.notified()).toEqual(["web"]);
    await asks({ lost: digest, notify: api });
    expect(await world.blobs.get(key)).toEqual(bytes);
    expect(await world.row()).toMatchObject({ state: "Done", digest, losses: 1 });
    expect(world.notified()).toEqual(["api"]);
  });

  test("a rendering that was changed is overwritten", async () => {
    await world.ask({ "a.yaml": configMap("a") });
    await world.render(web);
    const { digest = "" } = await world.row();
    const key = blobKeys.rendering(digest);
    const bytes = await world.blobs.get(key);
    await world.blobs.overwrite(key, Buffer.from("[]"));
    await asks({ lost: digest });
    expect(await world.blobs.get(key)).toEqual(bytes);
  });

  test("a rendering that is lost repeatedly is made again after longer and longer times", async () => {
    await world.ask({ "kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap("a") });
    await world.render(web);
    const { digest = "" } = await world.row();
    const start = world.now.getTime();
    const made: number[] = [];
    for (let second = 0; second <= 120; second++) {
      world.now = new Date(start + second * 1000);
      world.blobs.lose(blobKeys.rendering(digest));
      const before = world.builds;
      await asks({ lost: digest });
      if (world.builds > before) made.push(second);
    }
    expect(made).toEqual([0, 5, 15, 35, 75]);
  });

  test("a rendering with another digest than the lost one is reported to the owner that missed it", async () => {
    await world.ask({ "a.yaml": configMap("a") });
    await world.render(web);
    world.sender.take();
    await asks({ lost: "sha256:before", notify: web });
    expect(world.notified()).toEqual(["web"]);
    expect(await world.row()).toMatchObject({ state: "Done", tries: 1 });
  });

  test("a rendering that cannot be made is not tried separately for each of a thousand clusters that miss it", async () => {
    await world.ask({ "a.yaml": configMap("a") });
    await world.render(web);
    const { digest = "", artifactDigest } = await world.row();
    world.blobs.lose(blobKeys.rendering(digest));
    world.blobs.lose(blobKeys.artifact(artifactDigest));
    for (let cluster = 0; cluster < 10; cluster++) await asks({ lost: digest, notify: web, source });
    expect(await world.row()).toMatchObject({ state: "Pending", tries: 1, failure: { code: "BlobNotFound" } });
    expect(world.sender.take().filter(({ to }) => to === "resolve")).toEqual([
      { to: "resolve", source, lost: artifactDigest },
    ]);
  });
});

describe("a rendering that is requested several times", () => {
  beforeEach(async () => {
    await world.ask({ "kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap("a") });
  });

  test("a message that comes twice renders once, and reports again", async () => {
    await world.render(web);
    await world.render(web);
    await world.render();
    expect(world.builds).toBe(1);
    expect(world.notified()).toEqual(["web", "web"]);
  });

  test("an owner that asks during a rendering is notified with the other owners", async () => {
    world.beforeBuild = async () => {
      await world.render(api);
      await world.render(web);
      await world.render();
      expect(world.notified()).toEqual([]);
    };
    await world.render(web);
    expect(world.builds).toBe(1);
    expect(world.notified()).toEqual(["web", "api"]);
    expect(await world.row()).not.toHaveProperty("waiting");
  });

  test("a claim that ended is taken over, and its late worker changes nothing", async () => {
    world.beforeBuild = async () => {
      world.now = new Date("2026-03-01T10:02:01.000Z");
      await world.render(api);
      expect(world.notified()).toEqual(["web", "api"]);
    };
    await world.render(web);
    expect(world.builds).toBe(2);
    expect(await world.row()).toMatchObject({ state: "Done", tries: 2 });
    expect(world.notified()).toEqual(["web"]);
  });

  test("a worker that dies leaves a row that is due when its claim ends", async () => {
    const ports = world.ports();
    const table = Object.assign(Object.create(world.table) as MemoryTable, {
      get: (key: Parameters<MemoryTable["get"]>[0]) => world.table.get(key),
      write: async (writes: Parameters<MemoryTable["write"]>[0]) => {
        await world.table.write(writes);
        throw new Error("killed");
      },
    });
    await expect(renderInput({ to: "render", input: "sha256:in", notify: web }, { ...ports, table })).rejects.toThrow(
      "killed",
    );
    expect(dueAtOf((await world.row()).dueKey ?? "")).toBe("2026-03-01T10:02:00.000Z");
    world.now = new Date("2026-03-01T10:02:00.001Z");
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Done", tries: 2 });
    expect(world.notified()).toEqual(["web"]);
  });

  test("the time of the first try is kept over all tries, and is set anew when the rendering is made again", async () => {
    const later = (seconds: number) => {
      world.now = new Date(world.now.getTime() + seconds * 1000);
    };
    const began = world.now.toISOString();
    world.beforeBuild = async () => {
      throw new StarlingError("too slow", { code: "KustomizeFailed", retry: "transient" });
    };
    expect(await world.row()).not.toHaveProperty("begunAt");
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Pending", begunAt: began });
    later(60);
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Done", begunAt: began });
    const { digest = "" } = await world.row();
    world.blobs.lose(blobKeys.rendering(digest));
    later(60);
    await renderInput({ to: "render", input: "sha256:in", lost: digest }, world.ports());
    expect(await world.row()).toMatchObject({ state: "Done", begunAt: world.now.toISOString() });
  });

  test("a transient error is tried again later, and its reason is in the row", async () => {
    world.beforeBuild = async () => {
      throw new StarlingError("too slow", { code: "KustomizeFailed", retry: "transient" });
    };
    await world.render(web);
    expect(await world.row()).toMatchObject({ state: "Pending", failure: { message: "too slow", permanent: false } });
    expect(dueAtOf((await world.row()).dueKey ?? "")).toBe("2026-03-01T10:00:05.000Z");
    expect(world.notified()).toEqual([]);
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Done" });
    expect(await world.row()).not.toHaveProperty("failure");
    expect(world.notified()).toEqual(["web"]);
  });

  test("a rendering whose error may lie in its input fails after five tries, and is tried again more and more rarely", async () => {
    const mayBe = () => {
      world.beforeBuild = async () => {
        throw new StarlingError("kustomize ended with SIGKILL", { code: "KustomizeFailed", retry: "transient" });
      };
    };
    for (let strike = 1; strike <= 4; strike++) {
      mayBe();
      await world.render(web);
      expect(await world.row()).toMatchObject({ state: "Pending", strikes: strike, failure: { permanent: false } });
      expect(world.notified()).toEqual([]);
    }
    mayBe();
    await world.render();
    expect(await world.row()).toMatchObject({
      state: "Failed",
      tries: 5,
      retryAt: "2026-03-01T10:05:00.000Z",
      failure: {
        code: "KustomizeFailed",
        permanent: false,
        message:
          "kustomize ended with SIGKILL (tried 5 times; it is tried again at 2026-03-01T10:05:00.000Z, and by " +
          "`starling reconcile` of what uses it; if that goes on, make the folder smaller, or split it into several templates)",
      },
    });
    expect(dueAtOf((await world.row()).dueKey ?? "")).toBe("2026-03-01T10:05:00.000Z");
    expect(world.notified()).toEqual(["web"]);

    // A late message finds that the rendering waits for its next try.
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Failed", tries: 5 });
    world.now = new Date("2026-03-01T10:05:00.000Z");
    mayBe();
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Failed", tries: 6, retryAt: "2026-03-01T10:15:00.000Z" });
    expect(world.notified()).toEqual(["web"]);
    world.now = new Date("2026-03-01T10:15:00.000Z");
    await world.render();
    expect(await world.row()).toMatchObject({ state: "Done", tries: 7 });
    for (const gone of ["failure", "retryAt", "strikes", "waiting", "dueKey"])
      expect(await world.row()).not.toHaveProperty(gone);
    expect(world.notified()).toEqual(["web"]);
  });

  test("a chart whose templates never end fails after five tries, and is named", async () => {
    const endless = "{{ range $i := until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}";
    const release = { releaseName: "web", namespace: "shop", crds: "Skip", lookup: "Refuse", hooks: "Honor" } as const;
    world.helm = new HelmTemplate({ helm: () => locateHelm(""), timeoutSeconds: 0.2 });
    const chart = { "c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/templates/a.yaml": endless };
    await world.ask(chart, { path: "c", render: { helm: release } });
    for (let strike = 1; strike <= 4; strike++) {
      await world.render(web);
      expect(await world.row()).toMatchObject({ state: "Pending", strikes: strike });
    }
    await world.render();
    expect(await world.row()).toMatchObject({
      state: "Failed",
      tries: 5,
      retryAt: "2026-03-01T10:05:00.000Z",
      failure: {
        code: "HelmFailed",
        message: expect.stringMatching(
          /^c: helm took longer than 0\.2 s; make the chart render less.*\(tried 5 times; /,
        ),
      },
    });
    expect(world.notified()).toEqual(["web"]);
  });

  test("a build that never ends fails after five tries, and is tried again", async () => {
    const ports = world.ports();
    const dying = {
      ...ports,
      builder: {
        build: async (): Promise<never> => {
          throw new Error("killed");
        },
      },
      table: Object.assign(Object.create(world.table) as MemoryTable, {
        get: (key: Parameters<MemoryTable["get"]>[0]) => world.table.get(key),
        write: async (writes: Parameters<MemoryTable["write"]>[0]) => {
          await world.table.write(writes);
          throw new Error("killed");
        },
      }),
    };
    const message = { to: "render", input: "sha256:in", notify: web } as const;
    for (let start = 1; start <= 6; start++) {
      await expect(renderInput(message, dying)).rejects.toThrow("killed");
      world.now = new Date(world.now.getTime() + 121_000);
    }
    expect(world.builds).toBe(0);
    await world.render();
    expect(world.builds).toBe(0);
    expect(await world.row()).toMatchObject({
      state: "Failed",
      failure: { code: "RenderNeverEnded", permanent: false },
    });
    expect(world.notified()).toEqual(["web"]);
    world.now = new Date((await world.row()).retryAt ?? "");
    await world.render();
    expect(world.builds).toBe(1);
    expect(await world.row()).toMatchObject({ state: "Done" });
    expect(world.notified()).toEqual(["web"]);
  });

  test("a service that refuses again and again does not make the rendering fail", async () => {
    const busy = new StarlingError("Rate Exceeded.", { code: "BuilderBusy", retry: "transient" });
    const ports = { ...world.ports(), builder: { build: () => Promise.reject(busy) } };
    for (let n = 0; n < 20; n++) await renderInput({ to: "render", input: "sha256:in", notify: web }, ports);
    expect(await world.row()).toMatchObject({ state: "Pending", tries: 20, failure: { permanent: false } });
  });

  test("a renderer that is not installed does not make the rendering fail", async () => {
    world.beforeBuild = async () => {
      throw new StarlingError("no kubectl", { code: "KubectlNotFound", retry: "permanent" });
    };
    await world.render(web);
    expect(await world.row()).toMatchObject({ state: "Pending", failure: { message: "no kubectl", permanent: false } });
  });

  test("a rendering waits for an artifact that is missing", async () => {
    await world.put({ artifactDigest: "sha256:bb", path: "." });
    await world.render(web);
    expect(await world.row()).toMatchObject({ state: "Pending", failure: { code: "BlobNotFound", permanent: false } });
  });

  test("an input that nobody asked for is not rendered", async () => {
    await renderInput({ to: "render", input: "sha256:other", notify: web }, world.ports());
    expect(world.notified()).toEqual([]);
  });
});
