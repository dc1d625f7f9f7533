import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const chartOf = (version: string, more: readonly { name: string; body: string }[] = []) =>
  tarGz([
    { name: "web/Chart.yaml", body: `apiVersion: v2\nname: web\nversion: ${version}\n` },
    { name: "web/templates/a.yaml", body: "a: 1\n" },
    ...more,
  ]);

let world: SourceWorld;
beforeEach(() => {
  world = new SourceWorld();
});

describe("a chart from a Helm repository", () => {
  let server: FileServer;
  let files: Record<string, FileAnswer>;
  let asked: AskedFile[];

  beforeEach(async () => {
    files = {};
    asked = [];
    server = await startFileServer((request) => {
      asked.push(request);
      return files[request.url] ?? { status: 404 };
    });
  });
  afterEach(() => server.stop());

  interface Published {
    readonly version: string;
    readonly url: string;
    readonly digest?: string;
  }
  const indexOf = (entries: readonly Published[]) =>
    [
      "apiVersion: v1",
      "entries:",
      "  other:",
      '  - version: "9.9.9"',
      "    urls: [other-9.9.9.tgz]",
      "  web:",
      ...entries.flatMap(({ version, url, digest }) => [
        "  - apiVersion: v2",
        '    appVersion: "7"',
        '    created: "2026-01-02T03:04:05.6Z"',
        ...(digest === undefined ? [] : [`    digest: ${digest}`]),
        "    urls:",
        `    - ${url}`,
        `    version: ${version}`,
      ]),
      "generated: 2026-01-02T03:04:05Z",
      "",
    ].join("\n");

  async function publish(...versions: readonly string[]): Promise<void> {
    const entries = [];
    for (const version of versions) {
      const packed = await chartOf(version);
      files[`/charts/web-${version}.tgz`] = { body: packed };
      entries.push({ version, url: `web-${version}.tgz`, digest: sha256(packed) });
    }
    files["/charts/index.yaml"] = { body: indexOf(entries) };
  }

  const specOf = (more: object = {}) => ({ helm: { url: `${server.url}/charts`, chart: "web", ...more } });

  test("the highest stable version of the range is stored as a chart, and a publication rolls [source.helm.range]", async () => {
    await publish("1.9.0", "1.10.0", "2.0.0", "1.11.0-rc.1");
    await world.put(specOf({ ref: { semver: "^1" } }));
    const { artifact } = (await world.resolve()).status;
    expect(artifact).toMatchObject({
      revision: expect.stringMatching(/^1\.10\.0@sha256:[0-9a-f]{64}$/),
      charts: ["."],
      subject: "web 1.10.0 (app 7)",
      author: "",
      committedAt: "2026-01-02T03:04:05.600Z",
    });
    expect((await world.files()).map(({ path }) => path).sort()).toEqual(["Chart.yaml", "templates/a.yaml"]);
    const before = asked.length;
    await world.resolve();
    expect(asked.slice(before).map(({ url }) => url)).toEqual(["/charts/index.yaml"]);
    await publish("1.9.0", "1.10.0", "1.12.0", "2.0.0");
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.12\.0@/);
  });

  test("without a range, the highest version that is no prerelease counts [source.helm.default]", async () => {
    await publish("1.9.0", "2.0.0", "2.1.0-rc.1");
    await world.put(specOf());
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^2\.0\.0@/);
  });

  describe("an index that has not changed", () => {
    /** The status and the bytes of each answer about the index, in order. */
    let answered: (readonly [status: number, bytes: number])[];
    /** Says 304 to everybody who names any version. */
    let lies: boolean;
    let versioned: (body: string) => Record<string, string>;
    let own: FileServer;

    beforeEach(async () => {
      answered = [];
      lies = false;
      versioned = (body) => ({ etag: `"${sha256(Buffer.from(body))}"` });
      own = await startFileServer((request) => {
        asked.push(request);
        const file = files[request.url];
        if (request.url !== "/charts/index.yaml" || file === undefined || typeof file === "string")
          return file ?? { status: 404 };
        const body = String(file.body);
        const headers = versioned(body);
        const named = request.headers["if-none-match"] ?? request.headers["if-modified-since"];
        const isKnown = named !== undefined && (lies || named === (headers.etag ?? headers["last-modified"]));
        answered.push(isKnown ? [304, 0] : [200, body.length]);
        return isKnown ? { status: 304, headers } : { body, headers };
      });
    });
    afterEach(() => own.stop());

    const statuses = () => answered.map(([status]) => status);

    async function begin(): Promise<void> {
      await publish("1.0.0");
      await world.put(specIn());
      await world.resolve();
    }
    const specIn = (more: object = {}) => ({ helm: { url: `${own.url}/charts`, chart: "web", ...more } });

    test("it is not sent again, until a publication changes it [source.poll.unchanged]", async () => {
      await begin();
      const first = (await world.resolve()).status.artifact;
      expect((await world.resolve()).status.artifact).toEqual(first);
      await publish("1.0.0", "1.1.0");
      expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.1\.0@/);
      expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.1\.0@/);
      expect(statuses()).toEqual([200, 304, 304, 200, 304]);
      expect(await world.ready()).toMatchObject({ status: "True", reason: "Succeeded" });
    });

    test.each<[string, () => Promise<unknown>]>([
      ["another range", () => world.put(specIn({ ref: { semver: "^1.1" } }))],
      ["another chart", () => world.put(specIn({ chart: "other" }))],
      ["a reconcile that a person asks for", () => world.reconcile()],
    ])("a server that says so to %s is not asked whether it has", async (_, change) => {
      await begin();
      lies = true;
      await publish("1.0.0", "1.1.0");
      await change();
      await world.resolve();
      expect(statuses()).toEqual([200, 200]);
    });

    test("an artifact that is lost is made again from the whole index [source.artifact.lost]", async () => {
      await begin();
      const digest = (await world.resolve()).status.artifact?.digest ?? "";
      world.blobs.lose(blobKeys.artifact(digest));
      expect((await world.resolve({ lost: digest })).status.artifact?.digest).toBe(digest);
      expect((await world.files()).length).toBe(2);
      expect(await world.ready()).toMatchObject({ status: "True" });
    });

    test("a server that lies about it while the artifact is lost gives no other version its place", async () => {
      await begin();
      const before = (await world.resolve()).status.artifact;
      lies = true;
      await publish("1.1.0");
      world.blobs.lose(blobKeys.artifact(before?.digest ?? ""));
      const { status } = await world.resolve({ lost: before?.digest ?? "" });
      expect(status.artifact?.revision).toBe(before?.revision);
      expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({
        reason: "UpstreamUnavailable",
        message: expect.stringContaining("said that it has not changed, and names 1.1.0@"),
      });
      // The next poll reads it whole.
      expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.1\.0@/);
    });

    test.each<[string, () => Record<string, string>, number]>([
      ["a date that is long past", () => dates(-3600), 304],
      ["a date in which it may change again", () => dates(-1), 200],
      ["no version", () => ({}), 200],
      ["a version of another form", () => ({ etag: "a b" }), 200],
    ])("an index with %s", async (_, headers, second) => {
      versioned = headers;
      await begin();
      await world.resolve();
      expect(statuses()).toEqual([200, second]);
    });
    /** Both answers name the same second. */
    const changedAt = Date.now() - 86_400_000;
    const dates = (seconds: number) => ({
      "last-modified": new Date(changedAt).toUTCString(),
      date: new Date(changedAt - seconds * 1000).toUTCString(),
    });

    test("304 without a question is an error of the server", async () => {
      files["/charts/index.yaml"] = "silent";
      const liar = await startFileServer(() => ({ status: 304 }));
      try {
        await world.put({ helm: { url: liar.url, chart: "web" } });
        expect(await world.ready()).toMatchObject({
          reason: "UpstreamUnavailable",
          message: expect.stringContaining("HTTP 304"),
        });
      } finally {
        await liar.stop();
      }
    });
  });

  test("an index that says no digest any more gives a version no other content under immutableTags [source.tags.immutable]", async () => {
    await publish("1.0.0");
    const published = files["/charts/index.yaml"];
    await world.put({ ...specOf(), immutableTags: true });
    const { artifact } = (await world.resolve()).status;
    files["/charts/web-1.0.0.tgz"] = {
      body: await chartOf("1.0.0", [{ name: "web/templates/b.yaml", body: "b: 1\n" }]),
    };
    files["/charts/index.yaml"] = { body: indexOf([{ version: "1.0.0", url: "web-1.0.0.tgz" }]) };
    for (let poll = 0; poll < 2; poll++) {
      const { status } = await world.resolve();
      expect(status.artifact).toEqual(artifact);
      expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({
        reason: "TagMoved",
        message: expect.stringContaining("is at no digest now"),
      });
    }
    files["/charts/index.yaml"] = published ?? { status: 404 };
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("an index that says digests from now on is followed under immutableTags", async () => {
    await publish("1.0.0");
    const published = files["/charts/index.yaml"];
    files["/charts/index.yaml"] = { body: indexOf([{ version: "1.0.0", url: "web-1.0.0.tgz" }]) };
    await world.put({ ...specOf(), immutableTags: true });
    expect(await world.ready()).toMatchObject({ status: "True" });
    files["/charts/index.yaml"] = published ?? { status: 404 };
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a chart whose bytes are not those of the index is refused [source.helm.refused]", async () => {
    await publish("1.0.0");
    files["/charts/web-1.0.0.tgz"] = { body: await chartOf("1.0.1") };
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ reason: "ChecksumMismatch" });
  });

  test.each<[string, (spec: typeof specOf) => object, string, string]>([
    ["a chart", (spec) => spec({ chart: "webb" }), "UpstreamNotFound", "has no chart webb; correct spec.helm.chart"],
    ["a version", (spec) => spec({ ref: { semver: "^9" } }), "UpstreamNotFound", "no version matches ^9 among 1"],
    ["an index", () => ({ helm: { url: server.url, chart: "web" } }), "UpstreamNotFound", "correct spec.helm"],
  ])("%s that does not exist is named [source.reference.missing]", async (_, spec, reason, message) => {
    await publish("1.0.0");
    await world.put(spec(specOf));
    expect(await world.ready()).toMatchObject({ reason, message: expect.stringContaining(message) });
  });

  test.each<[string, string]>([
    ["no index", "<html>sign in</html>"],
    ["half an index", "apiVersion: v1\nentries: [1, 2"],
    ["a list", "- a\n- b\n"],
    ["nothing", ""],
  ])("%s in place of the index is refused by name [source.helm.refused]", async (_, body) => {
    files["/charts/index.yaml"] = { body };
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining("check spec.helm.url"),
    });
  });

  test("credentials go to the repository, and not to another host that keeps the charts [source.helm.other-host]", async () => {
    const packed = await chartOf("1.0.0");
    const other = await startFileServer((request) => {
      asked.push(request);
      return { body: packed };
    });
    try {
      files["/charts/index.yaml"] = {
        body: indexOf([{ version: "1.0.0", url: `${other.url}/web.tgz`, digest: sha256(packed) }]),
      };
      world.secrets.set("starling/charts", JSON.stringify({ host: new URL(server.url).host, token: "s3cret" }));
      await world.put(specOf({ credentials: { secret: "starling/charts", kind: "bearer" } }));
      expect(await world.ready()).toMatchObject({ status: "True" });
      expect(asked.map(({ url, headers }) => [url, headers.authorization])).toEqual([
        ["/charts/index.yaml", "Bearer s3cret"],
        ["/web.tgz", undefined],
      ]);
    } finally {
      await other.stop();
    }
  });

  test("an archive that is no chart is refused by name [source.helm.refused]", async () => {
    const packed = await tarGz([{ name: "Chart.yaml", body: "name: web\n" }]);
    files["/charts/web-1.0.0.tgz"] = { body: packed };
    files["/charts/index.yaml"] = { body: indexOf([{ version: "1.0.0", url: "web-1.0.0.tgz" }]) };
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining("has files outside of the chart's folder"),
    });
  });
});

describe("a chart from a registry", () => {
  let registry: RegistryServer;
  beforeEach(async () => {
    registry = await startRegistryServer();
  });
  afterEach(() => registry.stop());

  test("the version with a `+` is found under its tag with `_`, and is pinned by digest [source.helm.plus]", async () => {
    const packed = await chartOf("1.2.3+build.1");
    const digest = registry.pushChart("acme/charts/web", "1.2.3+build.1", packed);
    await world.put({ helm: { url: `oci://${registry.host}/acme/charts`, chart: "web", ref: { semver: "~1.2" } } });
    const { artifact } = (await world.resolve()).status;
    expect(artifact).toMatchObject({
      revision: `1.2.3+build.1@${digest}`,
      charts: ["."],
      subject: "web 1.2.3+build.1",
    });
    registry.pushChart("acme/charts/web", "1.3.0", await chartOf("1.3.0"));
    expect((await world.resolve()).status.artifact?.revision).toBe(`1.2.3+build.1@${digest}`);
  });

  test("without a range, the highest version of the registry that is no prerelease counts [source.helm.default]", async () => {
    for (const version of ["1.9.0", "2.0.0", "2.1.0-rc.1"])
      registry.pushChart("acme/charts/web", version, await chartOf(version));
    await world.put({ helm: { url: `oci://${registry.host}/acme/charts`, chart: "web" } });
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^2\.0\.0@/);
  });

  test("an artifact that is no chart is refused by name [source.helm.refused]", async () => {
    registry.push("acme/charts/web", "1.0.0", { layers: [{ mediaType: "text/plain", content: Buffer.from("x") }] });
    await world.put({ helm: { url: `oci://${registry.host}/acme/charts`, chart: "web" } });
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining("is no chart"),
    });
  });
});
