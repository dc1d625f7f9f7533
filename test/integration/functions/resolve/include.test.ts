import { beforeEach, describe, expect, test } from "vitest";
import { documentChange } from "#functions/api/write/object-change.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { defined } from "#shared/base/defined.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Condition, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { newestRowSchema } from "#shared/fleet/rows/row.ts";
import type { GitRemote } from "#shared/ports.ts";
import { type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { startOwnGitServer } from "#test/support/own-git-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const server = forAllTests(startOwnGitServer);
let table: MemoryTable;
let worlds: Map<string, SourceWorld>;
let fetches: string[];
let number = 0;

beforeEach(() => {
  number += 1;
  table = new MemoryTable();
  worlds = new Map();
  fetches = [];
});

const repositoryOf = (name: string) => `${name}-${number}`;

/** A repository, and a Source of it. */
async function create(name: string, files: Record<string, string>, spec: object = {}): Promise<void> {
  await server.createRepository(repositoryOf(name), files);
  await apply(name, spec);
}

function commit(name: string, files: Record<string, string>): Promise<string> {
  return server.commitFiles(repositoryOf(name), files, { message: `change of ${name}` });
}

/** Writes the Source as the API does. */
async function apply(name: string, spec: object = {}): Promise<void> {
  const document = {
    apiVersion: "starling.dev/v1alpha1",
    kind: "Source",
    metadata: { namespace: "shop", name },
    spec: { git: { url: server.url(repositoryOf(name)), ref: { branch: "main" } }, ...spec },
  };
  const parsed = parseDocument(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const before = await table.get(keys.object("shop", "Source", name));
  const now = new Date("2026-03-01T10:00:00.000Z");
  await table.write(documentChange(before, parsed.document, { now, uid: `uid-${name}` }).writes);
}

function worldOf(name: string): SourceWorld {
  const known = worlds.get(name);
  if (known !== undefined) return known;
  const [first] = worlds.values();
  const blobs = first === undefined ? {} : { blobs: first.blobs };
  const world = new SourceWorld(table, { source: { namespace: "shop", name }, ...blobs });
  const git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  world.git = {
    listRefs: (repository, prefixes) => git.listRefs(repository, prefixes),
    fetchTree: (repository, desired) => {
      fetches.push(name);
      return git.fetchTree(repository, desired);
    },
  } satisfies GitRemote;
  worlds.set(name, world);
  return world;
}

const resolve = (name: string): Promise<SourceRow> => worldOf(name).resolve();
const ready = ({ status }: SourceRow): Condition | undefined => status.conditions.find(({ type }) => type === "Ready");
const digestIn = ({ status }: SourceRow): string => status.artifact?.digest ?? "none";

/** Delivers the messages from Sources to Sources, until none is left. @returns the names that were polled. */
async function deliver(): Promise<readonly string[]> {
  const polled: string[] = [];
  for (;;) {
    const sent = [...worlds.values()].flatMap(({ sender }) => sender.take());
    const names = sent.flatMap((message) => (message.to === "resolve" ? [message.source.name] : []));
    if (names.length === 0) return polled;
    for (const name of new Set(names)) {
      polled.push(name);
      await resolve(name);
    }
  }
}

async function textsOf(name: string): Promise<Record<string, string>> {
  const files = await worldOf(name).files();
  return Object.fromEntries(files.map(({ path, content }) => [path, `${Buffer.from(content)}`]));
}

async function suspend(name: string): Promise<void> {
  const row = await table.get(keys.object("shop", "Source", name));
  if (row === undefined) throw new Error(`no Source ${name}`);
  const suspended = { number: 1, by: "ana", at: row.createdAt };
  const next: SourceRow = { ...row, version: row.version + 1, operations: { ...row.operations, suspended } };
  await table.write([{ put: next }]);
}

/** Gives a Source an artifact of these files. */
async function replaceArtifact(row: SourceRow, files: readonly ListedFile[]): Promise<void> {
  const digest = treeDigest(files);
  await worldOf(row.name).blobs.overwrite(blobKeys.artifact(digest), await packArtifact(files));
  const artifact = row.status.artifact === undefined ? undefined : { ...row.status.artifact, digest };
  const status = { ...row.status, ...defined({ artifact }) };
  const next: SourceRow = { ...row, version: row.version + 1, status };
  await table.write([{ put: next }]);
}

const includes = (...include: object[]) => ({ include });

describe("files of another Source", () => {
  beforeEach(async () => {
    await create("charts", { "web/Chart.yaml": "name: web", "web/templates/a.yaml": "a: 1", "other.yaml": "o: 1" });
    await create(
      "app",
      { "overlay/values.yaml": "v: 1" },
      includes({ source: "charts", fromPath: "web", toPath: "vendor/web" }),
    );
    await resolve("charts");
  });

  test("files get their new places, and the artifact says of which artifact they are [source.include.files]", async () => {
    const row = await resolve("app");
    expect(await textsOf("app")).toEqual({
      "overlay/values.yaml": "v: 1",
      "vendor/web/Chart.yaml": "name: web",
      "vendor/web/templates/a.yaml": "a: 1",
    });
    const charts = await table.get(keys.object("shop", "Source", "charts"));
    const { revision, digest } = charts?.status.artifact ?? {};
    expect(row.status.artifact?.included).toEqual([
      { source: "charts", fromPath: "web", toPath: "vendor/web", revision, digest },
    ]);
    expect(row.status.artifact?.charts).toEqual(["vendor/web"]);
    expect(row.schema).toBe(newestRowSchema);
  });

  test("a change makes a new artifact of the same revision, at once and without a fetch of the Source's own [source.include.change]", async () => {
    const before = await resolve("app");
    await deliver();
    await commit("charts", { "web/templates/a.yaml": "a: 2" });
    fetches.length = 0;
    await resolve("charts");
    expect(await deliver()).toEqual(["app"]);
    expect(fetches).toEqual(["charts"]);
    const after = await table.get(keys.object("shop", "Source", "app"));
    expect(after?.status.artifact?.revision).toBe(before.status.artifact?.revision);
    expect(after?.status.artifact?.digest).not.toBe(digestIn(before));
    expect((await textsOf("app"))["vendor/web/templates/a.yaml"]).toBe("a: 2");
    expect((await textsOf("app"))["overlay/values.yaml"]).toBe("v: 1");
  });

  test("a change elsewhere in the included Source makes no new artifact [source.include.elsewhere]", async () => {
    const before = await resolve("app");
    await deliver();
    await commit("charts", { "other.yaml": "o: 2" });
    await resolve("charts");
    await deliver();
    expect(digestIn(await resolve("app"))).toBe(digestIn(before));
  });

  test("a Source of the same repository without it shares the fetch, and has none of the files", async () => {
    await apply("plain", { git: { url: server.url(repositoryOf("app")), ref: { branch: "main" } } });
    const besides = [{ namespace: "shop", name: "plain" }];
    for (const text of ["v: 1", "v: 2"]) {
      await commit("app", { "overlay/values.yaml": text });
      fetches.length = 0;
      await worldOf("app").resolve({ besides });
      expect(fetches).toEqual(["app"]);
      expect(await textsOf("plain")).toEqual({ "overlay/values.yaml": text });
      expect(await textsOf("app")).toMatchObject({
        "overlay/values.yaml": text,
        "vendor/web/templates/a.yaml": "a: 1",
      });
    }
    await commit("charts", { "web/templates/a.yaml": "a: 2" });
    await resolve("charts");
    expect(await deliver()).toEqual(["app"]);
    expect(await textsOf("plain")).toEqual({ "overlay/values.yaml": "v: 2" });
  });

  test("changes of both Sources give one digest in any order [source.include.nothing-lost]", async () => {
    await resolve("app");
    await commit("charts", { "web/templates/a.yaml": "a: 2" });
    await commit("app", { "overlay/values.yaml": "v: 2" });
    await resolve("app");
    await resolve("charts");
    await deliver();
    const first = digestIn(await resolve("app"));
    await apply("app2", {
      git: { url: server.url(repositoryOf("app")), ref: { branch: "main" } },
      ...includes({ source: "charts", fromPath: "web", toPath: "vendor/web" }),
    });
    expect(digestIn(await resolve("app2"))).toBe(first);
  });
});

describe("an included Source that cannot be used", () => {
  const unavailable = async (reason: string): Promise<string> => {
    const condition = ready(await resolve("app"));
    expect(condition).toMatchObject({ status: "False", reason });
    return condition?.message ?? "";
  };

  test("a missing one is named, and the Source follows as soon as it has an artifact [source.include.unusable]", async () => {
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    expect(await unavailable("IncludeUnavailable")).toBe(
      "spec.include[0].source: Source charts does not exist in namespace shop; apply it, or take it out of spec.include",
    );
    await create("charts", { "c.yaml": "c: 1" });
    expect(await unavailable("IncludeUnavailable")).toContain("has no artifact yet; starling describe source/charts");
    await resolve("charts");
    expect(await deliver()).toEqual(["app"]);
    expect(Object.keys(await textsOf("app"))).toEqual(["a.yaml", "charts/c.yaml"]);
  });

  test("the last good artifact stays, with the reason of the included Source [source.include.unusable]", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    await resolve("charts");
    const good = digestIn(await resolve("app"));
    await server.createRepository(repositoryOf("more"), { "m.yaml": "m: 1" });
    await apply("more", { git: { url: server.url(repositoryOf("more")), ref: { branch: "none" } } });
    await resolve("more");
    await apply("app", includes({ source: "charts" }, { source: "more" }));
    expect(await unavailable("IncludeUnavailable")).toContain("Source more has no artifact yet (GitRefNotFound)");
    const row = await resolve("app");
    expect(digestIn(row)).toBe(good);
    expect(row.status.failures).toBe(2);
    await apply("more", { git: { url: server.url(repositoryOf("more")), ref: { branch: "main" } } });
    await resolve("more");
    await deliver();
    expect(Object.keys(await textsOf("app"))).toEqual(["a.yaml", "charts/c.yaml", "more/m.yaml"]);
  });

  test("a suspended one is included as it is [source.include.unusable]", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    await resolve("charts");
    await suspend("charts");
    await commit("charts", { "c.yaml": "c: 2" });
    await resolve("charts");
    expect(ready(await resolve("app"))?.status).toBe("True");
    expect((await textsOf("app"))["charts/c.yaml"]).toBe("c: 1");
  });

  test("a suspended one without an artifact is named", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    await suspend("charts");
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    expect(await unavailable("IncludeUnavailable")).toContain(
      "has no artifact and is suspended; starling resume source/charts",
    );
  });

  test("one that is not verified is refused, and the Source is polled when it is verified [source.include.unverified]", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    await resolve("charts");
    const good = digestIn(await resolve("app"));
    await deliver();
    const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL8oVdkvuXyHdH2Ea0G6wtGkkX1mS3rTfOeYCQpG9pCQ ana@acme.io";
    const git = { url: server.url(repositoryOf("charts")), ref: { branch: "main" } };
    await apply("charts", { git: { ...git, verify: { mode: "HEAD", keys: [key] } } });
    expect(await unavailable("IncludeUnavailable")).toContain("Source charts is not verified; starling source verify");
    await resolve("charts");
    expect(await unavailable("IncludeUnavailable")).toContain("is not verified (SignatureMissing)");
    expect(digestIn(await resolve("app"))).toBe(good);
    await apply("charts", { git });
    await resolve("charts");
    expect(await deliver()).toEqual(["app"]);
    expect(ready(await resolve("app"))?.status).toBe("True");
  });

  test("one whose artifact is gone is fetched again [source.include.former]", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    const charts = await resolve("charts");
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    worldOf("app").blobs.lose(blobKeys.artifact(digestIn(charts)));
    expect(await unavailable("IncludeUnavailable")).toContain("is gone, and is fetched again");
    const [asked] = worldOf("app").sender.take();
    expect(asked).toMatchObject({ to: "resolve", source: { name: "charts" }, lost: digestIn(charts) });
    await worldOf("charts").resolve({ lost: digestIn(charts) });
    expect(ready(await resolve("app"))?.status).toBe("True");
  });
});

describe("what cannot be composed", () => {
  test.each([
    ["a file below the place", { "vendor/web/own.yaml": "o: 1" }, "vendor/web/own.yaml"],
    ["a file at the place", { "vendor/web": "o: 1" }, "vendor/web"],
    ["a file above the place", { vendor: "o: 1" }, "vendor"],
  ])("both places are named: %s [source.include.conflict]", async (_, own, file) => {
    await create("charts", { "c.yaml": "c: 1" });
    await resolve("charts");
    await create("app", own, includes({ source: "charts", toPath: "vendor/web" }));
    expect(ready(await resolve("app"))).toMatchObject({
      status: "False",
      reason: "IncludeConflict",
      message: `the Source's own file ${file} is where spec.include puts the files of Source charts, vendor/web; remove it, or choose another toPath`,
    });
  });

  test("nothing is fetched again until one of both has changed [source.poll.refused]", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    await resolve("charts");
    await create("app", { "charts/own.yaml": "o: 1" }, includes({ source: "charts" }));
    await resolve("app");
    fetches.length = 0;
    expect(ready(await resolve("app"))?.reason).toBe("IncludeConflict");
    expect(fetches).toEqual([]);
    await commit("app", { "charts/own.yaml": "", "a.yaml": "a: 1" });
    await resolve("app");
    expect(fetches).toEqual(["app"]);
  });

  test("a folder that the included artifact does not have is named [source.files.missing-path]", async () => {
    await create("charts", { "web/c.yaml": "c: 1" });
    await resolve("charts");
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts", fromPath: "wep" }));
    const condition = ready(await resolve("app"));
    expect(condition?.reason).toBe("PathNotFound");
    expect(condition?.message).toMatch(
      /^spec\.include\[0\]\.fromPath: main@sha1:.* of Source charts .* has no files in "wep"/,
    );
  });

  test("Sources that include each other are refused with the way [source.include.cycle]", async () => {
    await create("a", { "a.yaml": "a: 1" });
    await create("b", { "b.yaml": "b: 1" }, includes({ source: "a" }));
    await create("c", { "c.yaml": "c: 1" }, includes({ source: "b" }));
    await resolve("a");
    await deliver();
    await resolve("c");
    expect(Object.keys(await textsOf("c"))).toEqual(["b/a/a.yaml", "b/b.yaml", "c.yaml"]);
    await apply("a", includes({ source: "c" }));
    const condition = ready(await resolve("a"));
    expect(condition).toMatchObject({ status: "False", reason: "IncludeCycle" });
    expect(condition?.message).toContain("a includes c includes b includes a: a Source cannot be a part of itself");
    expect(await deliver()).toEqual([]);
    expect(ready(await resolve("b"))?.reason).toBe("IncludeCycle");
  });

  test("files that no artifact can have together are refused", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    const charts = await resolve("charts");
    const many = Array.from({ length: 12_000 }, (_, index) => ({
      path: `f/${index}.yaml`,
      executable: false,
      content: new Uint8Array(),
    }));
    await replaceArtifact(charts, many);
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }, { source: "charts", toPath: "again" }));
    expect(ready(await resolve("app"))).toMatchObject({
      reason: "UpstreamTooLarge",
      message:
        "with the files of spec.include there are 24000 files, and an artifact has at most 20000; include less: name a fromPath",
    });
  });
});

describe("a crash", () => {
  test("between the artifact and the messages leaves the Source due, and the next poll tells who includes it [source.include.nothing-lost]", async () => {
    await create("charts", { "c.yaml": "c: 1" });
    await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
    await resolve("charts");
    await deliver();
    await commit("charts", { "c.yaml": "c: 2" });
    const world = worldOf("charts");
    const { send } = world.sender;
    world.sender.send = () => Promise.reject(new Error("killed"));
    await expect(resolve("charts")).rejects.toThrow("killed");
    world.sender.send = send;
    const row = await table.get(keys.object("shop", "Source", "charts"));
    // Long before its interval ends.
    expect(row?.dueKey?.slice(0, 16) ?? "never").toBe("2026-03-01T10:00");
    await resolve("charts");
    expect(await deliver()).toEqual(["app"]);
    expect((await textsOf("app"))["charts/c.yaml"]).toBe("c: 2");
  });
});

test("a former artifact is composed again of what it was made of [source.include.former]", async () => {
  await create("charts", { "c.yaml": "c: 1" });
  await create("app", { "a.yaml": "a: 1" }, includes({ source: "charts" }));
  await resolve("charts");
  const former = await resolve("app");
  await deliver();
  await commit("charts", { "c.yaml": "c: 2" });
  await resolve("charts");
  await deliver();
  const lost = digestIn(former);
  expect(digestIn(await resolve("app"))).not.toBe(lost);
  const { blobs } = worldOf("app");
  blobs.lose(blobKeys.artifact(lost));
  await worldOf("app").resolve({ lost, ...defined({ revision: former.status.artifact?.revision }) });
  expect(blobs.keys()).toContain(blobKeys.artifact(lost));
});
