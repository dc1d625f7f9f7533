import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type GitServer, startGitServer } from "#local/git/git-server.ts";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

let root: string;
let server: GitServer;
let registry: RegistryServer;
let world: SourceWorld;
let repository: string;
let number = 0;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "starling-tags-"));
  server = await startGitServer({ root });
  registry = await startRegistryServer();
});

afterAll(async () => {
  await registry?.stop();
  await server?.stop();
  await rm(root, { recursive: true, force: true });
});

beforeEach(async () => {
  number += 1;
  repository = `app-${number}`;
  await server.createRepository(repository, { "a.yaml": "a: 0" });
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
});

/** Commits, and puts the tag on the commit, wherever it was. */
async function release(tag: string, text: string): Promise<string> {
  await server.deleteRef(repository, `refs/tags/${tag}`).catch(() => {});
  return server.commitFiles(repository, { "a.yaml": text }, { message: text, tag });
}

const gitSpec = (more: object = {}, ref: object = { semver: "^1" }) => ({
  git: { url: server.url(repository), ref },
  ...more,
});
const immutable = { immutableTags: true };
const textOf = async () => (await world.files()).map(({ content }) => `${Buffer.from(content)}`);

async function pushManifests(tag: string, text: string): Promise<string> {
  const content = await tarGz([{ name: "a.yaml", body: text }]);
  const config = { mediaType: "application/vnd.cncf.flux.config.v1+json", content: Buffer.from("{}") };
  const mediaType = "application/vnd.cncf.flux.content.v1.tar+gzip";
  return registry.push(`acme/${repository}`, tag, { config, layers: [{ mediaType, content }], annotations: {} });
}

async function pushChart(version: string, text: string): Promise<string> {
  const packed = await tarGz([
    { name: "web/Chart.yaml", body: `apiVersion: v2\nname: web\nversion: ${version}\n` },
    { name: "web/a.yaml", body: text },
  ]);
  return registry.pushChart(`acme/${repository}/web`, version, packed);
}

interface Row {
  readonly legend: string;
  readonly spec: () => object;
  /** Publishes a text, and returns the digest. */
  readonly publish: (text: string) => Promise<string>;
}

const rows: readonly Row[] = [
  {
    legend: "a tag of git",
    spec: () => gitSpec({}, { tag: "v1.0.0" }),
    publish: async (text) => `sha1:${await release("v1.0.0", text)}`,
  },
  {
    legend: "a range of tags of git",
    spec: () => gitSpec(),
    publish: async (text) => `sha1:${await release("v1.0.0", text)}`,
  },
  {
    legend: "a tag of a registry",
    spec: () => ({ oci: { url: `oci://${registry.host}/acme/${repository}`, ref: { tag: "v1.0.0" } } }),
    publish: (text) => pushManifests("v1.0.0", text),
  },
  {
    legend: "a range of tags of a registry",
    spec: () => ({ oci: { url: `oci://${registry.host}/acme/${repository}`, ref: { semver: "^1" } } }),
    publish: (text) => pushManifests("v1.0.0", text),
  },
  {
    legend: "a version of a chart",
    spec: () => ({ helm: { url: `oci://${registry.host}/acme/${repository}`, chart: "web", ref: { semver: "^1" } } }),
    publish: (text) => pushChart("1.0.0", text),
  },
];

describe("a tag that moves", () => {
  test.each(rows)(
    "$legend is refused with both digests under immutableTags, and the last good artifact stays [source.tags.immutable]",
    async ({ spec, publish }) => {
      const before = await publish("one");
      await world.put({ ...spec(), ...immutable });
      const { artifact } = (await world.resolve()).status;
      const after = await publish("two");
      for (let poll = 0; poll < 2; poll++) {
        const { status } = await world.resolve();
        expect(status.artifact).toEqual(artifact);
        expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({
          status: "False",
          reason: "TagMoved",
          message: expect.stringMatching(new RegExp(`was at ${before} and is at ${after} now, and spec.immutableTags`)),
        });
      }
    },
  );

  test.each(rows)(
    "$legend is followed without immutableTags, and Ready says where it was [source.tags.moved]",
    async ({ spec, publish }) => {
      const before = await publish("one");
      await world.put(spec());
      await world.resolve();
      const after = await publish("two");
      for (let poll = 0; poll < 2; poll++) {
        const { status } = await world.resolve();
        expect(status.artifact).toMatchObject({
          revision: expect.stringMatching(new RegExp(`@${after}$`)),
          movedFrom: before,
        });
        expect(status.conditions.find(({ type }) => type === "Ready")).toMatchObject({
          status: "True",
          message: expect.stringContaining(`; the tag moved, and was at ${before} before`),
        });
      }
    },
  );
});

describe("a Source with immutableTags", () => {
  test("a newer tag is followed while an older one moves, and the older one is refused when it is the highest again", async () => {
    const first = await release("v1.0.0", "one");
    await world.put(gitSpec(immutable));
    await world.resolve();
    const second = await release("v1.1.0", "two");
    const moved = await release("v1.0.0", "three");
    expect((await world.resolve()).status.artifact?.revision).toBe(`v1.1.0@sha1:${second}`);
    await server.deleteRef(repository, "refs/tags/v1.1.0");
    expect(await world.ready()).toMatchObject({
      reason: "TagMoved",
      message: expect.stringContaining(`was at sha1:${first} and is at sha1:${moved} now`),
    });
    expect(await textOf()).toEqual(["two"]);
  });

  test("a tag that moved before immutableTags was set is compared from then on", async () => {
    await release("v1.0.0", "one");
    await world.put(gitSpec());
    await world.resolve();
    await world.put(gitSpec(immutable));
    await release("v1.0.0", "two");
    expect(await world.ready()).toMatchObject({ reason: "TagMoved" });
  });

  test("the move counts after immutableTags was false once [source.tags.immutable]", async () => {
    await release("v1.0.0", "one");
    await world.put(gitSpec(immutable));
    await world.resolve();
    await release("v1.0.0", "two");
    expect(await world.ready()).toMatchObject({ reason: "TagMoved" });
    await world.put(gitSpec());
    expect(await world.ready()).toMatchObject({ status: "True" });
    await world.put(gitSpec(immutable));
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(await textOf()).toEqual(["two"]);
    await release("v1.0.0", "three");
    expect(await world.ready()).toMatchObject({ reason: "TagMoved" });
  });

  test("a tag of the same name in another repository is another tag", async () => {
    await release("v1.0.0", "one");
    await world.put(gitSpec(immutable));
    await world.resolve();
    repository = `other-${number}`;
    await server.createRepository(repository, { "a.yaml": "a: 0" });
    await release("v1.0.0", "two");
    await world.put(gitSpec(immutable));
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(await textOf()).toEqual(["two"]);
  });

  test("at most 50 tags are remembered, the newest ones [source.tags.immutable]", async () => {
    await world.put(gitSpec(immutable, { semver: "*" }));
    for (let minor = 0; minor < 53; minor++) {
      await pushManifests(`1.${minor}.0`, `${minor}`);
      if (minor === 0)
        await world.put({
          oci: { url: `oci://${registry.host}/acme/${repository}`, ref: { semver: "*" } },
          ...immutable,
        });
      await world.resolve();
    }
    const { seen = [] } = (await world.resolve()).status.followedTags ?? {};
    expect(seen.map((each) => each.split("@")[0])).toEqual(
      Array.from({ length: 50 }, (_, index) => `1.${52 - index}.0`),
    );
  });

  test("the artifact that stays is kept in the storage, and is fetched by its own commit if it is lost", async () => {
    await release("v1.0.0", "one");
    await world.put(gitSpec(immutable));
    await world.resolve();
    await server.commitFiles(repository, { "a.yaml": "one" }, { message: "Keep the commit", branch: "kept" });
    await release("v1.0.0", "two");
    for (let days = 0; days < 90; days += 30) {
      world.passDays(30);
      await world.resolve();
    }
    expect(await textOf()).toEqual(["one"]);
    world.passDays(70);
    const { status } = await world.resolve();
    expect(status).toMatchObject({ conditions: [{ type: "Ready", reason: "TagMoved" }, {}, {}] });
    expect(status.lost).toBeUndefined();
    expect(await textOf()).toEqual(["one"]);
  });
});
