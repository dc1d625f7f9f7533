import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { wireBuild } from "#functions/build/wire.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { sha256 } from "#shared/base/digest.ts";
import { type BuildJob, maxRenderingBytes } from "#shared/source/build-job.ts";
import { type BuildWorld, startBuildWorld } from "#test/support/build-world.ts";

const configMap = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\n`;

let world: BuildWorld;
beforeAll(async () => {
  world = await startBuildWorld();
});
afterEach(() => world.proxy.setFaults(quiet));
afterAll(() => world.stop());

const ask = (artifactDigest: string, path = ".") =>
  world.builder.build({ artifactDigest, path, attempt: randomUUID() });
const transfer = new HttpTransfer();

/** A function that answers so, after it has done so. */
function beAnswering(answer: unknown, act: (job: BuildJob) => Promise<unknown> = async () => {}): void {
  world.beFunction(() => async (job: never) => {
    await act(job);
    return answer;
  });
}

describe("what build renders", () => {
  test("comes back with its digest, in bytes that were checked", async () => {
    world.beFunction(() => wireBuild({}) as never);
    const digest = await world.artifact({
      "app/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: p-",
      "app/a.yaml": configMap("a"),
    });
    const built = await ask(digest, "app");
    expect(new TextDecoder().decode(built.bytes)).toBe(
      '[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p-a"}}]',
    );
    expect(built).toMatchObject({ objects: 1, digest: sha256(built.bytes) });
  });

  test("or says what is wrong with the files", async () => {
    world.beFunction(() => wireBuild({}) as never);
    const digest = await world.artifact({ "a.yaml": "kind: [" });
    await expect(ask(digest)).rejects.toMatchObject({ code: "InvalidYaml", retry: "permanent" });
    await expect(ask(digest, "nowhere")).rejects.toMatchObject({ code: "EmptyRender", retry: "permanent" });
  });

  test("comes out in everyday weather, too, without another try of the row", async () => {
    world.beFunction(() => wireBuild({}) as never);
    const digest = await world.artifact({ "a.yaml": configMap("a") });
    const shaky = { resetBefore: 0.1, resetAfter: 0.1, serverError: 0.1 };
    world.proxy.setFaults({ ...quiet, lambda: { ...quiet.lambda, ...shaky, throttle: 0.1 } }, 3);
    for (let n = 0; n < 5; n++) expect((await ask(digest)).objects).toBe(1);
    expect(Object.keys(world.proxy.injected()).filter((name) => name.startsWith("lambda:"))).not.toEqual([]);
  });
});

describe("sandboxes", () => {
  test("that have read values of others serve nobody who has not the same", async () => {
    const seen: string[] = [];
    let sandboxes = 0;
    world.beFunction(() => {
      const own = ++sandboxes;
      const build = wireBuild({});
      return async (job: never) => {
        seen.push(String(own));
        return build(job);
      };
    });
    const chart = await world.artifact({
      "Chart.yaml": "apiVersion: v2\nname: small\nversion: 0.1.0\n",
      "templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {k: {{ .Values.k | quote }}}\n",
      "own.yaml": "k: own\n",
    });
    const [first, second] = [
      await world.artifact({ "env/v.yaml": "k: first\n" }),
      await world.artifact({ "env/v.yaml": "k: second\n" }),
    ];
    const release = { releaseName: "web", namespace: "shop", crds: "Skip", lookup: "Refuse", hooks: "Omit" } as const;
    const own = { path: "own.yaml", optional: false };
    const built = async (...digests: readonly string[]) => {
      const others = digests.map((artifactDigest) => ({
        path: "env/v.yaml",
        optional: false,
        from: { source: "fleet", artifactDigest },
      }));
      const helm = { ...release, valuesFrom: [own, ...others] };
      const request = { artifactDigest: chart, path: ".", render: { helm }, attempt: randomUUID() };
      const { bytes } = await world.builder.build(request);
      return /"k":"(\w+)"/.exec(new TextDecoder().decode(bytes))?.[1];
    };
    expect([await built(first), await built(second), await built(first, second), await built(second, first)]).toEqual([
      "first",
      "second",
      "second",
      "first",
    ]);
    expect(await built()).toBe("own");
    expect(seen).toEqual(["1", "2", "3", "3", "4"]);
  });

  test("serve one artifact each, and the same one again", async () => {
    let sandboxes = 0;
    const seen: string[] = [];
    world.beFunction(() => {
      const own = ++sandboxes;
      const build = wireBuild({});
      return async (job: never) => {
        seen.push(`${own} ${(job as BuildJob).artifactDigest}`);
        return build(job);
      };
    });
    const [a, b] = [
      await world.artifact({ "a.yaml": configMap("a") }),
      await world.artifact({ "b.yaml": configMap("b") }),
    ];
    for (const digest of [a, b, a, b, a]) await ask(digest);
    expect(new Set(seen)).toEqual(new Set([`1 ${a}`, `2 ${b}`]));
  });
});

describe("a build that somebody else has taken over", () => {
  test("reaches with what it was given this artifact and its own place, and nothing else", async () => {
    const mine = await world.artifact({ "a.yaml": configMap("mine") });
    const other = await world.artifact({ "a.yaml": configMap("other") });
    const tried: Record<string, unknown> = {};
    const attempt = (name: string, work: Promise<unknown>) =>
      work.then(
        () => (tried[name] = "done"),
        (error: Error) => (tried[name] = error.message),
      );
    beAnswering(
      { outcome: "failed", code: "Gone", message: "", permanent: true },
      async ({ artifactUrl, renderingUrl }) => {
        const replaced = (url: string, key: string) => {
          const next = new URL(url);
          next.pathname = `/blobs/${key}`;
          return next.href;
        };
        const otherKey = `artifacts/${other.replace("sha256:", "")}.tar.gz`;
        await attempt("read mine", transfer.download(artifactUrl));
        await attempt("read another", transfer.download(replaced(artifactUrl, otherKey)));
        await attempt("overwrite mine", transfer.upload(artifactUrl, Buffer.from("x")));
        await attempt(
          "write a rendering",
          transfer.upload(replaced(renderingUrl, "renderings/0.json"), Buffer.from("x")),
        );
        await attempt("read what is incoming", transfer.download(renderingUrl));
        await attempt("list the bucket", transfer.download(replaced(artifactUrl, "")));
        await attempt("write its own place", transfer.upload(renderingUrl, Buffer.from("x")));
      },
    );
    await expect(ask(mine)).rejects.toMatchObject({ code: "Gone" });
    const refused = (method: string) => `the bytes could not be moved: S3 answered 403 to a presigned ${method}`;
    expect(tried).toEqual({
      "read mine": "done",
      "read another": refused("GET"),
      "overwrite mine": refused("PUT"),
      "write a rendering": refused("PUT"),
      "read what is incoming": refused("GET"),
      "list the bucket": refused("GET"),
      "write its own place": "done",
    });
  });

  const digest = sha256(Buffer.from("left"));
  const done = { outcome: "done", digest, objects: 1 };
  const upload = (bytes: Uint8Array) => (job: BuildJob) => transfer.upload(job.renderingUrl, bytes);

  const nothing = async () => {};

  interface Lie {
    readonly title: string;
    readonly answer: unknown;
    readonly act: (job: BuildJob) => Promise<unknown>;
  }

  const lies: readonly Lie[] = [
    { title: "other bytes than it tells", answer: done, act: upload(Buffer.from("right")) },
    { title: "nothing", answer: done, act: nothing },
    { title: "more than a rendering may have", answer: done, act: upload(Buffer.alloc(maxRenderingBytes + 1)) },
    {
      title: "a digest that is a path",
      answer: { ...done, digest: "sha256:../../inventories" },
      act: upload(Buffer.from("left")),
    },
    { title: "more than was asked", answer: { ...done, also: "this" }, act: upload(Buffer.from("left")) },
    { title: "no answer at all", answer: undefined, act: nothing },
    { title: "an answer without an end", answer: "x".repeat(100_000), act: nothing },
    {
      title: "a code that is a text",
      answer: { outcome: "failed", code: "<b>Bold</b>", message: "", permanent: true },
      act: nothing,
    },
    {
      title: "a message without an end",
      answer: { outcome: "failed", code: "X", message: "x".repeat(2001), permanent: true },
      act: nothing,
    },
  ];

  test.each(lies)("that leaves $title is not believed, and not asked for ever", async ({ answer, act }) => {
    beAnswering(answer, act);
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    await expect(ask(artifact)).rejects.toMatchObject({
      code: "BuildFailed",
      retry: "transient",
      data: { strike: true },
    });
  });

  test("has what it left taken when it is what it tells", async () => {
    beAnswering(done, upload(Buffer.from("left")));
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    expect(Buffer.from((await ask(artifact)).bytes).toString()).toBe("left");
  });
});

describe("an end without an answer", () => {
  test("by an error is a strike", async () => {
    world.beFunction(() => () => {
      throw new RangeError("Invalid string length");
    });
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    await expect(ask(artifact)).rejects.toMatchObject({
      code: "BuildFailed",
      data: { strike: true },
      message: expect.stringContaining("RangeError Invalid string length; most likely it takes more memory or time"),
    });
  });

  test("by its time is a strike", async () => {
    world.beFunction(() => () => new Promise(() => {}), 0.2);
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    await expect(ask(artifact)).rejects.toMatchObject({
      code: "BuildFailed",
      data: { strike: true },
      message: expect.stringContaining("Sandbox.Timedout"),
    });
  });
});

describe("Lambda itself", () => {
  test.each(["throttle", "serverError", "resetBefore"] as const)(
    "refusing by %s says nothing about the input",
    async (fault) => {
      beAnswering(undefined);
      const artifact = await world.artifact({ "a.yaml": configMap("a") });
      world.proxy.setFaults({ ...quiet, lambda: { ...quiet.lambda, [fault]: 1 } });
      await expect(ask(artifact)).rejects.toMatchObject({ code: "BuilderBusy", retry: "transient", data: {} });
    },
  );

  test("an artifact that is not there says nothing about the input", async () => {
    world.beFunction(() => wireBuild({}) as never);
    await expect(ask(`sha256:${"0".repeat(64)}`)).rejects.toMatchObject({
      code: "TransferFailed",
      retry: "transient",
      data: {},
    });
  });
});
