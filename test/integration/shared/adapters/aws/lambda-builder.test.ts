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

/** Uploads without a content-length. @returns the status of the answer. */
async function uploadInChunks(url: string, bytes: Uint8Array): Promise<number> {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
  return (await fetch(url, { method: "PUT", headers: { "if-none-match": "*" }, body, duplex: "half" })).status;
}

/** Makes the function act and then return this answer. */
function beAnswering(answer: unknown, act: (job: BuildJob) => Promise<unknown> = async () => {}): void {
  world.beFunction(() => async (job: never) => {
    await act(job);
    return answer;
  });
}

describe("a build", () => {
  test("a build returns the rendering with its digest, after checking its bytes", async () => {
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

  test("a build of invalid files is a permanent error with the reason", async () => {
    world.beFunction(() => wireBuild({}) as never);
    const digest = await world.artifact({ "a.yaml": "kind: [" });
    await expect(ask(digest)).rejects.toMatchObject({ code: "InvalidYaml", retry: "permanent" });
    await expect(ask(digest, "nowhere")).rejects.toMatchObject({ code: "EmptyRender", retry: "permanent" });
  });

  test("a build succeeds despite throttling, errors and broken connections of Lambda", async () => {
    world.beFunction(() => wireBuild({}) as never);
    const digest = await world.artifact({ "a.yaml": configMap("a") });
    const shaky = { resetBefore: 0.1, resetAfter: 0.1, serverError: 0.1 };
    world.proxy.setFaults({ ...quiet, lambda: { ...quiet.lambda, ...shaky, throttle: 0.1 } }, 4);
    for (let n = 0; n < 5; n++) expect((await ask(digest)).objects).toBe(1);
    expect(Object.keys(world.proxy.injected()).filter((name) => name.startsWith("lambda:"))).not.toEqual([]);
  });
});

describe("sandboxes", () => {
  test("a sandbox that has read values of another Source serves only builds with the same values", async () => {
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

  test("a sandbox serves only one artifact, and serves it again", async () => {
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

describe("a build that an attacker controls", () => {
  test("the presigned URLs of a build reach only its artifact and the place for its rendering", async () => {
    const mine = await world.artifact({ "a.yaml": configMap("mine") });
    const other = await world.artifact({ "a.yaml": configMap("other") });
    const tried: Record<string, unknown> = {};
    const attempt = (name: string, work: Promise<unknown>) =>
      work.then(
        (status) => (tried[name] = typeof status === "number" ? status : "done"),
        (error: Error) => (tried[name] = error.message),
      );
    beAnswering(
      { outcome: "failed", code: "Gone", message: "", permanent: true },
      async ({ artifactUrl, renderingUrls }) => {
        const [{ url: renderingUrl, bytes } = { url: "", bytes: 0 }] = renderingUrls;
        const own = Buffer.alloc(bytes, "x");
        const replaced = (url: string, key: string) => {
          const next = new URL(url);
          next.pathname = `/blobs/${key}`;
          return next.href;
        };
        const otherKey = `artifacts/${other.replace("sha256:", "")}.tar.gz`;
        await attempt("read mine", transfer.download(artifactUrl));
        await attempt("read another", transfer.download(replaced(artifactUrl, otherKey)));
        await attempt("overwrite mine", transfer.upload(artifactUrl, Buffer.from("x")));
        await attempt("write a rendering", transfer.upload(replaced(renderingUrl, "renderings/0.json"), own));
        await attempt("read what is incoming", transfer.download(renderingUrl));
        await attempt("list the bucket", transfer.download(replaced(artifactUrl, "")));
        await attempt("write more than it is for", transfer.upload(renderingUrl, Buffer.alloc(bytes + 1, "x")));
        await attempt("write less than it is for", transfer.upload(renderingUrl, Buffer.alloc(bytes - 1, "x")));
        await attempt("write without a size", uploadInChunks(renderingUrl, own));
        const largest = renderingUrls.at(-1)?.url ?? "";
        const tooMuch = Buffer.alloc(maxRenderingBytes + 1);
        await attempt("write more than a rendering may have", transfer.upload(largest, tooMuch));
        await attempt("write its own place", transfer.upload(renderingUrl, own));
      },
    );
    await expect(ask(mine)).rejects.toMatchObject({ code: "Gone" });
    const refused = (method: string) => `the transfer failed: S3 answered 403 to a presigned ${method}`;
    expect(tried).toEqual({
      "read mine": "done",
      "read another": refused("GET"),
      "overwrite mine": refused("PUT"),
      "write a rendering": refused("PUT"),
      "read what is incoming": refused("GET"),
      "list the bucket": refused("GET"),
      "write more than it is for": refused("PUT"),
      "write less than it is for": refused("PUT"),
      "write without a size": 403,
      "write more than a rendering may have": refused("PUT"),
      "write its own place": "done",
    });
  });

  test("a build may upload only in fixed, signed sizes up to the limit of a rendering", async () => {
    const jobs: BuildJob[] = [];
    beAnswering({ outcome: "failed", code: "Gone", message: "", permanent: true }, async (job) => jobs.push(job));
    await expect(ask(await world.artifact({ "a.yaml": configMap("sizes") }))).rejects.toMatchObject({ code: "Gone" });
    const urls = jobs.flatMap(({ renderingUrls }) => renderingUrls);
    expect(urls.map(({ bytes }) => bytes)).toEqual([
      65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 33_554_432, 67_108_864,
    ]);
    const signed = urls.map(({ url }) => new URL(url).searchParams.get("X-Amz-SignedHeaders"));
    expect(new Set(signed)).toEqual(new Set(["content-length;host;if-none-match"]));
  });

  const digest = sha256(Buffer.from("left"));
  const done = { outcome: "done", digest, bytes: 4, objects: 1 };
  const upload = (text: string) => async (job: BuildJob) => {
    const [smallest] = job.renderingUrls;
    const filled = Buffer.alloc(smallest?.bytes ?? 0);
    filled.write(text);
    await transfer.upload(smallest?.url ?? "", filled);
  };

  const nothing = async () => {};

  interface Lie {
    readonly title: string;
    readonly answer: unknown;
    readonly act: (job: BuildJob) => Promise<unknown>;
  }

  const lies: readonly Lie[] = [
    { title: "other bytes than it reports", answer: done, act: upload("right") },
    { title: "no rendering", answer: done, act: nothing },
    { title: "fewer bytes than it reports", answer: { ...done, bytes: 5 }, act: upload("left") },
    {
      title: "a size above the limit of a rendering",
      answer: { ...done, bytes: maxRenderingBytes + 1 },
      act: upload("left"),
    },
    {
      title: "a digest that is a path",
      answer: { ...done, digest: "sha256:../../inventories" },
      act: upload("left"),
    },
    { title: "an unknown member in its answer", answer: { ...done, also: "this" }, act: upload("left") },
    { title: "no answer", answer: undefined, act: nothing },
    { title: "an endless answer", answer: "x".repeat(100_000), act: nothing },
    {
      title: "a code with markup",
      answer: { outcome: "failed", code: "<b>Bold</b>", message: "", permanent: true },
      act: nothing,
    },
    {
      title: "an endless message",
      answer: { outcome: "failed", code: "X", message: "x".repeat(2001), permanent: true },
      act: nothing,
    },
  ];

  test.each(lies)("a build with $title fails, and counts as a strike", async ({ answer, act }) => {
    beAnswering(answer, act);
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    await expect(ask(artifact)).rejects.toMatchObject({
      code: "BuildFailed",
      retry: "transient",
      data: { strike: true },
    });
  });

  test("a build can store only one object, however often it writes", async () => {
    const statuses: number[] = [];
    beAnswering(done, async (job) => {
      for (const { url, bytes } of job.renderingUrls.slice(0, 2)) {
        for (const text of ["left", "other"]) {
          const body = Buffer.alloc(bytes);
          body.write(text);
          statuses.push((await fetch(url, { method: "PUT", headers: { "if-none-match": "*" }, body })).status);
          statuses.push((await fetch(url, { method: "PUT", body })).status);
        }
      }
    });
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    expect(Buffer.from((await ask(artifact)).bytes).toString()).toBe("left");
    expect(statuses).toEqual([200, 403, 412, 403, 412, 403, 412, 403]);
  });

  test("a rendering is accepted if its digest is the reported one", async () => {
    beAnswering(done, upload("left"));
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    expect(Buffer.from((await ask(artifact)).bytes).toString()).toBe("left");
  });
});

describe("a build without an answer", () => {
  test("a build that throws counts as a strike", async () => {
    world.beFunction(() => () => {
      throw new RangeError("Invalid string length");
    });
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    await expect(ask(artifact)).rejects.toMatchObject({
      code: "BuildFailed",
      data: { strike: true },
      message: expect.stringContaining("RangeError Invalid string length; most likely it needs more memory or time"),
    });
  });

  test("a build that exceeds its time counts as a strike", async () => {
    world.beFunction(() => () => new Promise(() => {}), 0.2);
    const artifact = await world.artifact({ "a.yaml": configMap("a") });
    await expect(ask(artifact)).rejects.toMatchObject({
      code: "BuildFailed",
      data: { strike: true },
      message: expect.stringContaining("Sandbox.Timedout"),
    });
  });
});

describe("a failure outside of the build", () => {
  test.each(["throttle", "serverError", "resetBefore"] as const)(
    "a %s of Lambda counts as no strike",
    async (fault) => {
      beAnswering(undefined);
      const artifact = await world.artifact({ "a.yaml": configMap("a") });
      world.proxy.setFaults({ ...quiet, lambda: { ...quiet.lambda, [fault]: 1 } });
      await expect(ask(artifact)).rejects.toMatchObject({ code: "BuilderBusy", retry: "transient", data: {} });
    },
  );

  test("a missing artifact counts as no strike", async () => {
    world.beFunction(() => wireBuild({}) as never);
    await expect(ask(`sha256:${"0".repeat(64)}`)).rejects.toMatchObject({
      code: "TransferFailed",
      retry: "transient",
      data: {},
    });
  });
});
