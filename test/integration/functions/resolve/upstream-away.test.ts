/** An upstream takes connections and never answers: what a Source had before is served without it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { GuardedHttpRemote } from "#shared/adapters/net/guarded-http-remote.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { type BlackHole, startBlackHole } from "#test/support/black-hole.ts";
import { type FileServer, startFileServer } from "#test/support/file-server.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const rules = addressRules("127.0.0.1");
/** A reader waits shortly where no answer comes, and long where a server answers, however busy the machine is. */
const timeouts = { away: 0.5, there: 30 };
let world: SourceWorld;
let hole: BlackHole;

beforeEach(() => {
  world = new SourceWorld();
  waitFor("there");
});
afterEach(() => hole.stop());

function waitFor(upstream: keyof typeof timeouts): void {
  const timeoutSeconds = timeouts[upstream];
  world.git = new IsomorphicGitRemote({ rules, limits: { timeoutSeconds } });
  world.http = new GuardedHttpRemote({ rules, timeoutSeconds });
}

/** From now on nothing answers, and no connection is counted yet. */
function goAway(): void {
  hole.swallow();
  waitFor("away");
}

const readyOf = ({ status: { conditions } }: SourceRow) => conditions.find(({ type }) => type === "Ready");
const textsOf = async () => (await world.files()).map(({ path, content }) => `${path}: ${Buffer.from(content)}`);

describe("git", () => {
  let server: OwnGitServer;
  let first: string;
  let number = 0;
  let specOf: (more?: object, rest?: object) => object;

  beforeAll(async () => {
    server = await startOwnGitServer();
  });
  afterAll(async () => {
    await server?.stop();
  });

  beforeEach(async () => {
    const name = `app-${++number}`;
    const at = new Date("2026-01-01T00:00:00Z");
    await server.createRepository(name);
    first = await server.commitFiles(name, { "deploy/a.yaml": "one", "other/b.yaml": "b" }, { message: "One", at });
    const url = new URL(server.url(name));
    hole = await startBlackHole(Number(url.port));
    url.port = String(hole.port);
    specOf = (more = { ref: { branch: "main" } }, rest = {}) => ({
      git: { url: url.href, ...more },
      paths: ["deploy"],
      ...rest,
    });
    await world.put(specOf());
    await world.resolve();
    await server.commitFiles(name, { "deploy/a.yaml": "two" }, { message: "Two", at });
    world.now = new Date(world.now.getTime() + 60_000);
    await world.resolve();
    expect(await textsOf()).toEqual(["deploy/a.yaml: two"]);
    goAway();
  });

  test("the branch fails within its time, and its artifact stays [source.away.last-good]", async () => {
    const row = await world.resolve();
    expect(readyOf(row)).toMatchObject({ status: "False", reason: "GitOperationFailed" });
    expect(await textsOf()).toEqual(["deploy/a.yaml: two"]);
  });

  test("a commit that the Source had is pinned without a connection, and its owners hear of it [source.reference.stored]", async () => {
    await world.resolve();
    await world.put(specOf({ ref: { commit: first } }));
    goAway();
    const row = await world.resolve();
    expect(hole.taken()).toBe(0);
    expect(readyOf(row)).toMatchObject({ status: "True" });
    expect(row.status.artifact?.revision).toBe(`sha1:${first}`);
    expect(row.status.failures).toBeUndefined();
    expect(row.status.announced).toContain(first);
    expect(await textsOf()).toEqual(["deploy/a.yaml: one"]);
    await world.resolve();
    expect(hole.taken()).toBe(0);
  });

  test("other credentials and another interval are no other content", async () => {
    world.secrets.set("starling/git/a", JSON.stringify({ host: "127.0.0.1", token: "t" }));
    const credentials = { secret: "starling/git/a", kind: "bearer" };
    await world.put(specOf({ ref: { commit: first }, credentials }, { interval: "1h" }));
    expect(readyOf(await world.resolve())).toMatchObject({ status: "True" });
    expect(hole.taken()).toBe(0);
  });

  test.each<[string, () => object]>([
    ["other paths", () => specOf({ ref: { commit: first } }, { paths: ["deploy", "other"] })],
    ["a commit that it never had", () => specOf({ ref: { commit: "f".repeat(40) } })],
  ])("%s ask git", async (_, spec) => {
    const before = (await world.resolve()).status.artifact;
    await world.put(spec());
    goAway();
    const row = await world.resolve();
    expect(hole.taken()).toBe(1);
    expect(readyOf(row)).toMatchObject({ status: "False", reason: "GitOperationFailed" });
    expect(row.status.artifact).toEqual(before);
  });

  test("a commit whose artifact is gone from the storage is fetched, when git answers", async () => {
    for (const key of world.blobs.keys()) world.blobs.lose(key);
    await world.put(specOf({ ref: { commit: first } }));
    expect(readyOf(await world.resolve())).toMatchObject({ status: "False" });
    hole.release();
    waitFor("there");
    expect(readyOf(await world.resolve())).toMatchObject({ status: "True" });
    expect(await textsOf()).toEqual(["deploy/a.yaml: one"]);
  });
});

describe("a registry", () => {
  let registry: RegistryServer;
  afterEach(() => registry.stop());

  async function behindHole(): Promise<string> {
    registry = await startRegistryServer();
    hole = await startBlackHole(Number(registry.host.split(":")[1]));
    return `127.0.0.1:${hole.port}`;
  }

  test("a digest that the Source had is pinned without a connection [source.reference.stored]", async () => {
    const host = await behindHole();
    const mediaType = "application/vnd.cncf.flux.content.v1.tar+gzip";
    const push = async (text: string) =>
      registry.push("acme/shop", "latest", {
        layers: [{ mediaType, content: await tarGz([{ name: "a.yaml", body: text }]) }],
      });
    const url = `oci://${host}/acme/shop`;
    const one = await push("one");
    await world.put({ oci: { url } });
    await world.resolve();
    await push("two");
    await world.resolve();
    expect(await textsOf()).toEqual(["a.yaml: two"]);
    goAway();
    expect(readyOf(await world.resolve())).toMatchObject({ status: "False", reason: "UpstreamUnavailable" });
    expect(await textsOf()).toEqual(["a.yaml: two"]);
    await world.put({ oci: { url, ref: { digest: one } } });
    goAway();
    expect(readyOf(await world.resolve())).toMatchObject({ status: "True" });
    expect(hole.taken()).toBe(0);
    expect(await textsOf()).toEqual(["a.yaml: one"]);
  });

  test("a version of a chart that the Source had is pinned while the registry is away", async () => {
    const host = await behindHole();
    const push = async (version: string) => registry.pushChart("charts/web", version, await chartOf(version));
    await push("1.0.0");
    const helm = { url: `oci://${host}/charts`, chart: "web" };
    await world.put({ helm });
    await world.resolve();
    await push("1.1.0");
    await world.resolve();
    goAway();
    await world.put({ helm: { ...helm, ref: { semver: "1.0.0" } } });
    const row = await world.resolve();
    expect(hole.taken()).toBeGreaterThan(0);
    expect(row.status.artifact?.revision).toMatch(/^1\.0\.0@/);
    expect(readyOf(row)).toMatchObject({ status: "True" });
  });
});

test("a version of a chart that the Source had is pinned while its repository is away, and a range is not [source.reference.stored]", async () => {
  const files: Record<string, Uint8Array | string> = {};
  const server: FileServer = await startFileServer(({ url }) => {
    const body = files[url];
    return body === undefined ? { status: 404 } : { body };
  });
  try {
    hole = await startBlackHole(Number(new URL(server.url).port));
    const publish = async (...versions: readonly string[]) => {
      for (const version of versions) files[`/web-${version}.tgz`] = await chartOf(version);
      const entries = versions.map((version) => `  - {version: ${version}, urls: [web-${version}.tgz]}`);
      files["/index.yaml"] = ["apiVersion: v1", "entries:", "  web:", ...entries, ""].join("\n");
    };
    const helm = { url: `http://127.0.0.1:${hole.port}`, chart: "web" };
    await publish("1.0.0");
    await world.put({ helm });
    await world.resolve();
    await publish("1.0.0", "1.1.0");
    expect((await world.resolve()).status.artifact?.revision).toBe("1.1.0");
    goAway();
    for (const semver of ["1.0.0", "=v1.0.0"]) {
      await world.put({ helm: { ...helm, ref: { semver } } });
      const row = await world.resolve();
      expect(readyOf(row)).toMatchObject({ status: "True" });
      expect(row.status.artifact?.revision).toBe("1.0.0");
    }
    await world.put({ helm: { ...helm, ref: { semver: ">=1.1.0" } } });
    const row = await world.resolve();
    expect(readyOf(row)).toMatchObject({ status: "False", reason: "HostSilent" });
    expect(row.status.artifact?.revision).toBe("1.0.0");
    await world.put({ helm: { ...helm, ref: { semver: "1.1.0" } } });
    expect((await world.resolve()).status.artifact?.revision).toBe("1.1.0");
  } finally {
    await server.stop();
  }
});

const chartOf = (version: string) =>
  tarGz([
    { name: "web/Chart.yaml", body: `apiVersion: v2\nname: web\nversion: ${version}\n` },
    { name: "web/templates/a.yaml", body: `a: "${version}"\n` },
  ]);
