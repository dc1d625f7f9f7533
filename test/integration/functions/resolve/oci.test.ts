import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type RegistryServer,
  type RegistryServerOptions,
  startRegistryServer,
} from "#local/registry/registry-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const files = "application/vnd.cncf.flux.content.v1.tar+gzip";
const config = { mediaType: "application/vnd.cncf.flux.config.v1+json", content: Buffer.from("{}") };

let registry: RegistryServer;
let world: SourceWorld;
let asked: string[];

async function start(options: RegistryServerOptions = {}): Promise<void> {
  asked = [];
  registry = await startRegistryServer({
    ...options,
    onRequest: ({ method, url, headers }) => asked.push(`${method} ${url} ${headers.authorization ?? "-"}`),
  });
}

beforeEach(async () => {
  world = new SourceWorld();
  await start();
});

afterEach(() => registry.stop());

const contentOf = (text: string) =>
  tarGz([
    { name: "./deploy/", type: "directory" },
    { name: "./deploy/a.yaml", body: text },
  ]);
const specOf = (more: object = {}) => ({ oci: { url: `oci://${registry.host}/acme/shop`, ...more } });
const push = async (tag: string, text: string, annotations = {}) =>
  registry.push("acme/shop", tag, {
    config,
    layers: [{ mediaType: files, content: await contentOf(text) }],
    annotations,
  });
const textOf = async () => (await world.files()).map(({ path, content }) => `${path}: ${Buffer.from(content)}`);

describe("a Source of an OCI repository", () => {
  test("the files of a tag are stored, with the digest and the annotations of the artifact [source.oci.tag]", async () => {
    const digest = await push("latest", "one", {
      "org.opencontainers.image.created": "2026-02-03T04:05:06Z",
      "org.opencontainers.image.revision": "main@sha1:abc",
    });
    await world.put(specOf());
    const { status } = await world.resolve();
    expect(status.artifact).toMatchObject({
      revision: `latest@${digest}`,
      subject: "main@sha1:abc",
      committedAt: "2026-02-03T04:05:06.000Z",
    });
    expect(await textOf()).toEqual(["deploy/a.yaml: one"]);
  });

  test("an unchanged tag costs one request, and a moved tag is a new revision [source.poll.unchanged]", async () => {
    await push("stable", "one");
    await world.put(specOf({ ref: { tag: "stable" } }));
    await world.resolve();
    asked.length = 0;
    await world.resolve();
    expect(asked).toEqual(["HEAD /v2/acme/shop/manifests/stable -"]);
    const moved = await push("stable", "two");
    expect((await world.resolve()).status.artifact?.revision).toBe(`stable@${moved}`);
    expect(await textOf()).toEqual(["deploy/a.yaml: two"]);
  });

  test("a filter leaves only some tags for the range [source.version.filter]", async () => {
    const candidate = await push("1.2.0-rc.1", "candidate");
    await push("1.2.0", "release");
    await world.put(specOf({ ref: { semver: ">=1.0.0-0", tagFilter: "-rc\\." } }));
    expect((await world.resolve()).status.artifact?.revision).toBe(`1.2.0-rc.1@${candidate}`);
    await world.put(specOf({ ref: { semver: ">=1.0.0-0", tagFilter: "-beta" } }));
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamNotFound",
      message: expect.stringContaining("because tagFilter -beta matches none of 2 tags (1.2.0, 1.2.0-rc.1)"),
    });
  });

  test("a digest is never looked up, and its files never change [source.oci.digest]", async () => {
    const digest = await push("latest", "one");
    await world.put(specOf({ ref: { digest } }));
    await world.resolve();
    await push("latest", "two");
    asked.length = 0;
    expect((await world.resolve()).status.artifact?.revision).toBe(digest);
    expect([asked, await textOf()]).toEqual([[], ["deploy/a.yaml: one"]]);
  });

  test("the highest version of a range counts, over all pages, with `_` for `+` [source.oci.range]", async () => {
    await registry.stop();
    await start({ pageSize: 3 });
    for (const tag of ["latest", "1.0.0", "1.10.0", "1.9.0", "1.11.0-rc.1", "2.0.0", "1.10.1_build.7", "1.2"])
      await push(tag, tag);
    await world.put(specOf({ ref: { semver: "^1.0.0" } }));
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.10\.1_build\.7@sha256:/);
    expect(asked.filter((line) => line.includes("/tags/list")).length).toBe(3);
  });

  test("the layer of the files is found by its media type, wherever it stands [source.oci.layer]", async () => {
    const content = await contentOf("one");
    registry.push("acme/shop", "latest", { config, layers: [config, { mediaType: files, content }] });
    await world.put(specOf());
    await world.resolve();
    expect(await textOf()).toEqual(["deploy/a.yaml: one"]);
  });

  test("a layer of another media type is used when the spec names it [source.oci.layer]", async () => {
    const mediaType = "application/vnd.acme.files.v1.tar+gzip";
    registry.push("acme/shop", "latest", { layers: [{ mediaType, content: await contentOf("one") }] });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining(`has layers of ${mediaType}`),
    });
    await world.put(specOf({ mediaType }));
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("a chart is refused with the field for charts [source.oci.layer]", async () => {
    const mediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    registry.push("acme/shop", "latest", { layers: [{ mediaType, content: await contentOf("one") }] });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining("it is a Helm chart: write spec.helm, with its last part as chart"),
    });
  });

  test("a repository that does not exist is named in a whole sentence", async () => {
    await world.put(specOf({ ref: { semver: "*" } }));
    expect(await world.ready()).toMatchObject({
      message: expect.stringMatching(/^the list of tags of oci:\S+ was not found/),
    });
  });

  test("an index of several platforms is refused by name [source.oci.refused]", async () => {
    const mediaType = "application/vnd.oci.image.index.v1+json";
    registry.putManifest(
      "acme/shop",
      "latest",
      Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests: [] })),
      mediaType,
    );
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining("is an index of images for several platforms"),
    });
  });

  test("a layer that lies about its size or its digest is refused [source.oci.refused]", async () => {
    const content = await contentOf("one");
    const sha = (bytes: Uint8Array) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    await push("real", "one");
    const manifest = (digest: string, size: number) =>
      Buffer.from(JSON.stringify({ schemaVersion: 2, layers: [{ mediaType: files, digest, size }] }));
    registry.putManifest("acme/shop", "latest", manifest(sha(content), 10));
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ reason: "UpstreamTooLarge" });
    registry.putManifest("acme/shop", "latest", manifest(sha(content), 1_000_000_000_000));
    expect(await world.ready()).toMatchObject({ reason: "UpstreamTooLarge" });
    registry.putManifest("acme/shop", "latest", manifest(`sha256:${"0".repeat(64)}`, content.length));
    expect(await world.ready()).toMatchObject({ reason: "UpstreamNotFound" });
  });

  test.each<[string, object, string]>([
    ["a tag", { tag: "v9" }, "the tag v9"],
    ["a range", { semver: "^9" }, "no tag matches ^9 among 1 tags"],
    ["a digest", { digest: `sha256:${"1".repeat(64)}` }, "the manifest sha256:1111"],
  ])(
    "%s that the repository lacks is named, and the last good artifact stays [source.reference.missing]",
    async (_, ref, message) => {
      await push("latest", "one");
      await world.put(specOf());
      const { artifact } = (await world.resolve()).status;
      await world.put(specOf({ ref }));
      expect(await world.ready()).toMatchObject({
        reason: "UpstreamNotFound",
        message: expect.stringContaining(message),
      });
      expect((await world.resolve()).status.artifact).toEqual(artifact);
    },
  );

  test("an artifact that was lost is fetched again by its digest, also when the tag has moved [source.artifact.lost]", async () => {
    const first = await push("latest", "one");
    await world.put(specOf());
    const lost = (await world.resolve()).status.artifact?.digest ?? "";
    await push("latest", "two");
    await world.resolve();
    world.passDays(90);
    await world.resolve({ lost, revision: `latest@${first}` });
    expect(world.blobs.keys().filter((key) => key.includes(lost.replace("sha256:", "")))).toHaveLength(1);
    expect(world.errors).toEqual([]);
  });
});

describe("a registry that wants to know who asks", () => {
  const login = { username: "bot", password: "s3cret" };
  const credentials = { secret: "starling/registry", kind: "basic" };

  test.each(["basic", "bearer"] as const)("the credentials of the secret sign in by %s", async (scheme) => {
    await registry.stop();
    await start({ login: { ...login, scheme } });
    await push("latest", "one");
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "AuthenticationFailed",
      message: expect.stringContaining("set spec.oci.credentials"),
    });
    world.secrets.set(credentials.secret, JSON.stringify({ host: registry.host, ...login }));
    await world.put(specOf({ credentials }));
    expect(await world.ready()).toMatchObject({ status: "True" });
    world.secrets.set(credentials.secret, JSON.stringify({ host: registry.host, ...login, password: "old" }));
    await world.put(specOf({ credentials, ref: { semver: "*" } }));
    expect(await world.ready()).toMatchObject({
      reason: "AuthenticationFailed",
      message: expect.stringContaining("renew the secret"),
    });
  });

  test.each(["basic", "bearer"] as const)(
    "Docker's configuration signs in by %s, and only where a key is for it [source.credentials.docker]",
    async (scheme) => {
      await registry.stop();
      await start({ login: { ...login, scheme } });
      await push("latest", "one");
      const auth = Buffer.from(`${login.username}:${login.password}`).toString("base64");
      const keep = (key: string) =>
        world.secrets.set(credentials.secret, JSON.stringify({ auths: { [key]: { auth } } }));
      keep(`${registry.host}/other`);
      await world.put(specOf({ credentials: { ...credentials, kind: "dockerConfig" } }));
      expect(await world.ready()).toMatchObject({ reason: "SecretMismatch" });
      expect(asked).toEqual([]);
      keep(`${registry.host}/acme`);
      expect(await world.ready()).toMatchObject({ status: "True" });
    },
  );
});
