/** Several Sources of one URL are one listing and one fetch, counted at the servers. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { pollMessages } from "#shared/messages.ts";
import { type FileServer, startFileServer } from "#test/support/file-server.ts";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const rules = addressRules("127.0.0.1");
let first: SourceWorld;
let worlds: SourceWorld[];

/** Worlds with a table and a storage in common: one for each Source. */
function putSources(specs: readonly object[]): Promise<unknown> {
  worlds = specs.map((_, index) => {
    const source = { namespace: "shop", name: `app-${index}` };
    const world =
      index === 0 ? first : new SourceWorld(first.table, { source, blobs: first.blobs, uid: `uid-${index}` });
    world.git = first.git;
    return world;
  });
  return Promise.all(specs.map((spec, index) => worlds[index]?.put(spec)));
}

/** Sends what a tick, or a webhook, would send for all Sources, and lets the real function work on it. */
async function pollAll(): Promise<readonly SourceRow[]> {
  for (const message of pollMessages(await rows())) await first.resolve(message);
  return rows();
}

const rows = () => Promise.all(worlds.map((world) => world.row()));
const readyOf = ({ status: { conditions } }: SourceRow) => conditions.find(({ type }) => type === "Ready");
const statusesOf = (all: readonly SourceRow[]) => all.map((row) => readyOf(row)?.status);
const textsOf = async (world: SourceWorld | undefined) =>
  (await world?.files())?.map(({ path, content }) => `${path}: ${Buffer.from(content)}`);

beforeEach(() => {
  first = new SourceWorld(undefined, { source: { namespace: "shop", name: "app-0" }, uid: "uid-0" });
  first.git = new IsomorphicGitRemote({ rules });
});

describe("git", () => {
  let server: OwnGitServer;
  let asked: string[];
  let name: string;
  let number = 0;
  const at = new Date("2026-01-01T00:00:00Z");

  beforeAll(async () => {
    server = await startOwnGitServer({ disturb: ({ method, path }) => void asked.push(`${method} ${path}`) });
  });
  afterAll(async () => {
    await server?.stop();
  });
  beforeEach(async () => {
    asked = [];
    name = `app-${++number}`;
    await server.createRepository(name);
    await commit("One");
  });

  const folders = Array.from({ length: 20 }, (_, index) => `apps/${index}`);
  const commit = (text: string, branch = "main") =>
    server.commitFiles(name, Object.fromEntries(folders.map((folder) => [`${folder}/a.yaml`, `${text} ${folder}`])), {
      message: text,
      at,
      branch,
    });
  const specOf = (folder: string, ref: object = { branch: "main" }) => ({
    git: { url: server.url(name), ref },
    paths: [folder],
  });
  const listings = () => asked.filter((one) => one.includes("/info/refs")).length;

  test("twenty Sources of one branch are listed once, and fetched with the requests of one [source.poll.shared]", async () => {
    await putSources([{ git: { url: server.url(name), ref: { branch: "main" } }, paths: folders }]);
    await pollAll();
    const ofOne = asked.length;
    asked = [];
    await putSources(folders.map((folder) => specOf(folder)));
    expect(statusesOf(await pollAll())).toEqual(folders.map(() => "True"));
    expect(asked.length).toBe(ofOne);
    for (const [index, folder] of folders.entries()) {
      expect(await textsOf(worlds[index])).toEqual([`${folder}/a.yaml: One ${folder}`]);
    }
    asked = [];
    await pollAll();
    expect(listings()).toBe(1);
    expect(asked.length).toBe(2);
  });

  test("Sources of other branches and tags share the listing, and each commit is fetched once", async () => {
    await commit("Two", "next");
    const refs = [{ branch: "main" }, { branch: "next" }];
    const specs = Array.from({ length: 10 }, (_, index) => specOf(folders[index] ?? "", refs[index % 2]));
    await putSources(specs);
    await pollAll();
    // The listing, and one fetch of each commit.
    expect(listings()).toBe(3);
    expect(await textsOf(worlds[8])).toEqual(["apps/8/a.yaml: One apps/8"]);
    expect(await textsOf(worlds[9])).toEqual(["apps/9/a.yaml: Two apps/9"]);
    asked = [];
    await pollAll();
    expect(listings()).toBe(1);
  });

  test("Sources that ignore the same share a fetch, and each has its own files [source.ignore.again]", async () => {
    const ignores = ["other", "*/a.yaml\na.yaml\n!/apps/1*/a.yaml"];
    const specs = folders.map((folder, index) => ({ ...specOf(folder), ignore: ignores[index % 2] }));
    await putSources(specs.slice(10));
    expect(statusesOf(await pollAll())).toEqual(specs.slice(10).map(() => "True"));
    // The listing, and one fetch for each of the two.
    expect(listings()).toBe(3);
    expect(await textsOf(worlds[1])).toEqual(["apps/11/a.yaml: One apps/11"]);
    await putSources(specs.slice(0, 2).map((spec) => ({ ...spec, ignore: "a.yaml" })));
    expect((await pollAll()).map((row) => readyOf(row)?.reason)).toEqual(["PathNotFound", "PathNotFound"]);
  });

  test("a Source that cannot be fetched keeps none of the others [source.poll.alone]", async () => {
    await server.commitFiles(name, { "ok/a.yaml": "fine" }, { message: "Three", at });
    const link = { symlink: "../../outside" };
    await server.commitFiles(name, { "bad/link": link }, { message: "Four", at });
    await putSources([
      specOf("ok"),
      specOf("ok", { branch: "gone" }),
      specOf("nowhere"),
      specOf("bad"),
      specOf("apps/1"),
    ]);
    const all = await pollAll();
    expect(all.map((row) => readyOf(row)?.reason)).toEqual([
      "Succeeded",
      "GitRefNotFound",
      "PathNotFound",
      "GitPathRefused",
      "Succeeded",
    ]);
    expect(await textsOf(worlds[0])).toEqual(["ok/a.yaml: fine"]);
    expect(await textsOf(worlds[4])).toEqual(["apps/1/a.yaml: One apps/1"]);
  });

  test("a Source that is deleted and created again during a poll keeps its new spec", async () => {
    await commit("Two", "next");
    await putSources([specOf("apps/0"), specOf("apps/1")]);
    const again = new SourceWorld(first.table, { source: { namespace: "shop", name: "app-1" }, uid: "another" });
    const { git } = first;
    let isCreated = false;
    first.git = {
      fetchTree: (...args) => git.fetchTree(...args),
      async listRefs(...args) {
        if (!isCreated) {
          isCreated = true;
          await first.table.write([{ delete: keys.object("shop", "Source", "app-1") }]);
          again.now = new Date(first.now.getTime() + 1000);
          await again.put(specOf("apps/2", { branch: "next" }));
        }
        return git.listRefs(...args);
      },
    };
    await pollAll();
    expect(await again.row()).toMatchObject({ uid: "another", spec: { git: { ref: { branch: "next" } } } });
    again.git = git;
    await again.resolve();
    expect(statusesOf(await rows())).toEqual(["True", "True"]);
  });

  test("a listing that fails only for the tags of one Source fails none of the others", async () => {
    const { git } = first;
    let listed = 0;
    let isAway = false;
    first.git = {
      fetchTree: (...args) => git.fetchTree(...args),
      async listRefs(repository, prefixes) {
        listed++;
        if (isAway || prefixes.some((prefix) => prefix.startsWith("refs/tags/"))) {
          throw new StarlingError("no answer within 60 s", { code: "GitOperationFailed", retry: "transient" });
        }
        return git.listRefs(repository, prefixes);
      },
    };
    await putSources([specOf("apps/0"), specOf("apps/1"), specOf("apps/2", { semver: "*" })]);
    for (let turn = 0; turn < 2; turn++) expect(statusesOf(await pollAll())).toEqual(["True", "True", "False"]);
    isAway = true;
    await putSources(folders.slice(0, 10).map((folder, index) => specOf(folder, { branch: `b-${index}` })));
    listed = 0;
    expect(new Set(statusesOf(await pollAll()))).toEqual(new Set(["False"]));
    // Together, and twice alone: the server does not answer anybody.
    expect(listed).toBe(3);
  });

  test("a push that one of them has already is not taken back by an older listing", async () => {
    await putSources(folders.slice(0, 3).map((folder) => specOf(folder)));
    await pollAll();
    const [, , third] = worlds;
    const { git } = first;
    let isListed = false;
    first.git = {
      ...git,
      fetchTree: (...args) => git.fetchTree(...args),
      async listRefs(...args) {
        const listed = await git.listRefs(...args);
        if (!isListed) {
          isListed = true;
          await commit("Five");
          await third?.resolve();
        }
        return listed;
      },
    };
    await commit("Four");
    await pollAll();
    expect(isListed).toBe(true);
    expect(await textsOf(third)).toEqual(["apps/2/a.yaml: Five apps/2"]);
  });

  test("the Sources that the time does not suffice for are asked for again, and a message that comes again is split", async () => {
    await putSources(folders.slice(0, 4).map((folder) => specOf(folder)));
    const [message] = pollMessages(await rows());
    if (message === undefined) throw new Error("no message");
    first.remainingMs = () => (first.blobs.keys().length === 0 ? 180_000 : 50_000);
    await first.resolve(message);
    const done = (await rows()).filter((row) => readyOf(row)?.status === "True");
    const left = first.sender.take().flatMap((one) => (one.to === "resolve" ? [one] : []));
    expect(left.length).toBe(1);
    const names = left.flatMap(({ source, besides = [] }) => [source, ...besides].map((each) => each.name));
    expect([...names, ...done.map((row) => row.name)].toSorted()).toEqual(["app-0", "app-1", "app-2", "app-3"]);
    expect(done.length).toBeGreaterThan(0);
    expect(names.length).toBeGreaterThan(0);
    asked = [];
    await first.resolve({ ...message, receives: 2 });
    expect(asked).toEqual([]);
    expect(first.sender.take()).toEqual(
      worlds.map((_, index) => ({ to: "resolve", source: { namespace: "shop", name: `app-${index}` } })),
    );
  });
});

describe("a Helm repository", () => {
  let server: FileServer;
  let files: Record<string, Uint8Array | string>;
  let denied: string | undefined;

  beforeEach(async () => {
    denied = undefined;
    files = {};
    const lines = ["apiVersion: v1", "entries:"];
    for (let index = 0; index < 10; index++) {
      files[`/web-${index}.tgz`] = await tarGz([
        { name: `web-${index}/Chart.yaml`, body: `apiVersion: v2\nname: web-${index}\nversion: 1.0.0\n` },
      ]);
      lines.push(`  web-${index}:`, `  - {version: 1.0.0, urls: [web-${index}.tgz]}`);
    }
    files["/index.yaml"] = [...lines, ""].join("\n");
    server = await startFileServer(({ url, headers }) => {
      if (denied !== undefined && headers.authorization !== denied) return { status: 401 };
      if (headers["if-none-match"] === '"one"') return { status: 304 };
      const body = files[url];
      return body === undefined ? { status: 404 } : { body, headers: { etag: '"one"' } };
    });
  });
  afterEach(() => server.stop());

  const helmOf = (index: number, more: object = {}) => ({ helm: { url: server.url, chart: `web-${index}`, ...more } });
  const indexes = () => server.asked.filter(({ url }) => url === "/index.yaml").length;

  test("ten charts are one download of the index, and then one question whether it has changed [source.poll.shared]", async () => {
    await putSources([...Array.from({ length: 10 }, (_, index) => helmOf(index)), helmOf(3)]);
    expect(new Set(statusesOf(await pollAll()))).toEqual(new Set(["True"]));
    expect(indexes()).toBe(1);
    // Two Sources have the fourth chart.
    expect(server.asked.length).toBe(11);
    await pollAll();
    expect(indexes()).toBe(2);
    expect(server.asked.length).toBe(12);
  });

  test("a Source gets nothing that only the credentials of another one read, in whatever message they are [source.poll.own-credentials]", async () => {
    const tokenOf = (token: string) => JSON.stringify({ host: new URL(server.url).host, token });
    const secrets: Record<string, string> = { "starling/git/a": tokenOf("right"), "starling/git/b": tokenOf("wrong") };
    first.readSecret = async (secret) => secrets[secret] ?? "";
    denied = "Bearer right";
    const own = (secret: string) => ({ credentials: { secret, kind: "bearer" } });
    await putSources([helmOf(0, own("starling/git/a")), helmOf(0), helmOf(0, own("starling/git/b"))]);
    expect(pollMessages(await rows()).length).toBe(3);
    await first.resolve({
      besides: worlds.slice(1).map((_, index) => ({ namespace: "shop", name: `app-${index + 1}` })),
    });
    expect((await rows()).map((row) => readyOf(row)?.reason)).toEqual([
      "Succeeded",
      "AuthenticationFailed",
      "AuthenticationFailed",
    ]);
  });
});

test("Sources of one tag of a registry are the requests of one", async () => {
  let asked: string[] = [];
  const registry = await startRegistryServer({ onRequest: ({ method, url }) => void asked.push(`${method} ${url}`) });
  try {
    const mediaType = "application/vnd.cncf.flux.content.v1.tar+gzip";
    const content = await tarGz(["a", "b", "c"].map((folder) => ({ name: `${folder}/a.yaml`, body: folder })));
    registry.push("acme/shop", "latest", { layers: [{ mediaType, content }] });
    const specOf = (...paths: readonly string[]) => ({ oci: { url: `oci://${registry.host}/acme/shop` }, paths });
    await putSources([specOf("a")]);
    await pollAll();
    const ofOne = asked;
    asked = [];
    await putSources([specOf("c"), specOf("b"), specOf("a", "b")]);
    expect(statusesOf(await pollAll())).toEqual(["True", "True", "True"]);
    expect(asked.toSorted()).toEqual(ofOne.toSorted());
    expect(await textsOf(worlds[2])).toEqual(["a/a.yaml: a", "b/a.yaml: b"]);
  } finally {
    await registry.stop();
  }
});

test("Sources with credentials are polled together within a namespace only", () => {
  const specs = {
    open: { git: { url: "https://git.example.com/a.git" }, paths: ["."], interval: "5m" },
    closed: {
      git: { url: "https://git.example.com/a.git", credentials: { secret: "starling/git/a", kind: "basic" } },
      paths: ["."],
      interval: "5m",
    },
  } as const;
  const source = (namespace: string, name: string, spec: keyof typeof specs) => ({
    namespace,
    name,
    spec: sourceSpec.parse(specs[spec]),
  });
  const messages = pollMessages([
    source("a", "one", "open"),
    source("b", "two", "open"),
    source("a", "three", "closed"),
    source("b", "four", "closed"),
    source("b", "five", "closed"),
  ]);
  const named = messages.map(({ source: { name }, besides = [] }) => [name, ...besides.map((each) => each.name)]);
  expect(named).toEqual([["one", "two"], ["three"], ["four", "five"]]);
});
