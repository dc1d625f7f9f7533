/** Versions that CI pushes: the command, the API behind its front, the storage over HTTP, and the function that resolves. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ApiAnswer, openApiSession } from "#local/machine/api-session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow, Upload } from "#shared/fleet/rows/object-rows.ts";
import { type CliFixture, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { type TarEntry, tarGz } from "#test/support/tar-gz.ts";
import { rolloutRow, rolloutStateRow } from "#test/unit/functions/api/row-fixture.ts";

const config = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${value} }\n`;
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const key = keys.object("payments", "Source", "shop");
const uploads = "/v1/namespaces/payments/sources/shop/uploads";

let cli: CliFixture;
let world: SourceWorld;

beforeEach(async () => {
  cli = await startCliFixture();
  world = new SourceWorld(cli.table, { blobs: cli.blobs, source: { namespace: "payments", name: "shop" } });
  world.now = new Date();
  await put({ principals: [principal] });
});

afterEach(() => cli.stop());

async function put(external: object): Promise<void> {
  const document = {
    apiVersion: "starling.dev/v1alpha1",
    kind: "Source",
    metadata: { name: "shop", namespace: "payments" },
    spec: { external },
  };
  cli.write("source.yaml", JSON.stringify(document));
  expect(await cli.run("apply -f source.yaml")).toMatchObject({ code: 0 });
}

function folder(name: string, files: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(cli.folder, name, path, ".."), { recursive: true });
    writeFileSync(join(cli.folder, name, path), text);
  }
  return name;
}

const push = (version: string, dir: string, flags = "") =>
  cli.run(`source push shop --as ${version} --dir ${dir}${flags}`);
const row = async () => (await cli.table.get(key)) as SourceRow;
const pushed = async () => ((await row()).operations.uploads ?? []).map(({ version }) => version);

/** The answer of the API, also a refusal. */
async function call(body: object): Promise<Readonly<Record<string, string>>> {
  const credentials = { accessKeyId: "AKTEST", secretAccessKey: "not-a-secret" };
  const api = openApiSession({ endpoint: cli.url, region: "us-east-1", credentials });
  try {
    return await api.call("POST", uploads, body);
  } catch (error) {
    if (error instanceof ApiAnswer) return JSON.parse(error.text);
    throw error;
  }
}

/** Pushes bytes that no command would pack. */
async function pushBytes(version: string, bytes: Uint8Array, announced = bytes) {
  const body = { version, sha256: sha256(announced), bytes: bytes.length };
  const first = await call(body);
  await new HttpTransfer().upload(first.url ?? "", bytes);
  return call({ ...body, upload: first.upload });
}

describe("a version that is pushed", () => {
  test("its files become the artifact, under the label and the digest of the bytes [source.external.push]", async () => {
    folder("out", { "deploy/a.yaml": config("a"), ".git/config": "x" });
    const { code, out } = await push("1.4.0", "out");
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^source\/shop 1\.4\.0@sha256:[0-9a-f]{64} pushed \(1 file\)\n$/),
    });
    const { artifact } = (await world.resolve()).status;
    expect(artifact).toMatchObject({
      revision: out.split(" ")[1],
      subject: "version 1.4.0",
      author: principal,
      files: 1,
    });
    expect((await world.files()).map(({ path }) => path)).toEqual(["deploy/a.yaml"]);
  });

  test("the same folder is the same bytes, so that a repeated push changes nothing [source.external.repeat]", async () => {
    const [first] = [await push("1.4.0", folder("out", { "b.yaml": config("b"), "a.yaml": config("a") }))];
    const before = await row();
    const again = await push("1.4.0", folder("copy", { "a.yaml": config("a"), "b.yaml": config("b") }));
    expect(again.out).toBe(first?.out.replace("pushed (2 files)", "was pushed before"));
    expect(await row()).toEqual(before);
  });

  test("a version with other bytes is refused, and the first ones stay [source.external.other-bytes]", async () => {
    await push("1.4.0", folder("out", { "a.yaml": config("a") }));
    const before = await row();
    const other = await push("1.4.0", folder("other", { "a.yaml": config("other") }));
    expect(other.code).not.toBe(0);
    expect(other.err).toContain("version 1.4.0 of Source payments/shop was pushed with other bytes");
    expect(await row()).toEqual(before);
  });

  test("the newest push counts, and a request that arrives again later does not take it back [source.external.newest]", async () => {
    await push("1.4.0", folder("a", { "a.yaml": config("a") }));
    await push("1.5.0", folder("b", { "a.yaml": config("b") }));
    await push("1.4.0", "a");
    expect(await pushed()).toEqual(["1.4.0", "1.5.0"]);
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.5\.0@/);
  });

  test("a Source stays at a version that was pushed earlier, also when the upload is gone [source.external.pinned]", async () => {
    await push("1.4.0", folder("a", { "a.yaml": config("a") }));
    const first = (await world.resolve()).status.artifact;
    await push("1.5.0", folder("b", { "a.yaml": config("b") }));
    await world.resolve();
    for (const each of cli.blobs.keys()) if (each.startsWith("uploads/")) cli.blobs.lose(each);
    await put({ principals: [principal], version: "1.4.0" });
    const { artifact, conditions } = (await world.resolve()).status;
    expect(conditions.find(({ type }) => type === "Ready")?.status).toBe("True");
    expect([artifact?.revision, artifact?.digest]).toEqual([first?.revision, first?.digest]);
  });

  test("an upload that is gone before it was resolved is pushed again under its version", async () => {
    await push("1.4.0", folder("a", { "a.yaml": config("a") }));
    for (const each of cli.blobs.keys()) cli.blobs.lose(each);
    expect(await world.ready()).toMatchObject({
      reason: "ArtifactGone",
      message: expect.stringContaining("1.4.0 again"),
    });
    expect((await push("1.4.0", "a")).out).toContain("pushed (1 file)");
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("an upload that is never finished leaves the Source as it was [source.external.refused]", async () => {
    const before = await row();
    const body = { version: "1.4.0", sha256: sha256(Buffer.from("x")), bytes: 1 };
    const first = await call(body);
    expect(await row()).toEqual(before);
    expect(await call({ ...body, upload: first.upload })).toMatchObject({
      code: "Conflict",
      message: expect.stringContaining("is not there, or has not 1 bytes"),
    });
    expect(await row()).toEqual(before);
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamNotFound",
      message: "no version was pushed yet: starling source push shop --as VERSION --dir FOLDER",
    });
  });

  test("--wait says that it was accepted", async () => {
    const waiting = cli.run(`source push shop --as 1.4.0 --dir ${folder("a", { "a.yaml": config("a") })} --wait`);
    while ((await pushed()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    await world.resolve();
    expect(await waiting).toMatchObject({ code: 0, out: expect.stringContaining("source/shop Ready") });
  });
});

describe("when more than 200 versions were pushed", () => {
  /** Versions that were pushed after those that are there. */
  async function pushMany(count: number): Promise<void> {
    const before = await row();
    const { uploads = [] } = before.operations;
    const others = Array.from({ length: count }, (_, index): Upload => {
      const about = { by: principal, at: world.now.toISOString(), number: 100 + index };
      return { ...about, version: `many-${index}`, sha256: sha256(Buffer.from(`${index}`)), id: `${index}` };
    });
    const operations = { ...before.operations, uploads: [...uploads, ...others] };
    const next: SourceRow = { ...before, version: before.version + 1, operations };
    await cli.table.write([{ put: next }]);
  }

  const applied = async (document: object) => {
    cli.write("document.yaml", JSON.stringify(document));
    expect(await cli.run("apply -f document.yaml")).toMatchObject({ code: 0 });
  };
  const sync = (name: string, revision?: string) => ({
    apiVersion: "starling.dev/v1alpha1",
    kind: "Sync",
    metadata: { name, namespace: "payments" },
    spec: { cluster: "one", source: "shop", path: ".", ...(revision === undefined ? {} : { revision }) },
  });

  /** A rollout of the Sync that its stage keeps. */
  async function rolledOut(name: string, revision: string): Promise<void> {
    const owner = { namespace: "payments", kind: "Sync", name } as const;
    const [template] = rolloutRow(1).plan.templates;
    if (template === undefined) throw new Error("a rollout has a template");
    const plan = { templates: [{ ...template, source: "shop", revision }], planHash: "sha256:c0" };
    const stages = [{ name, members: 1, changing: 0, failedCatchUps: 0, current: 1 }];
    await cli.table.write([{ put: rolloutRow(1, { owner, plan, revision }) }]);
    await cli.table.write([{ put: rolloutStateRow(stages, { owner }) }]);
  }

  test("a version that a template, a rollout or the spec names is remembered, and no other [source.external.remembered]", async () => {
    for (const version of ["pinned", "rolled", "named", "nobody", "present"])
      await push(version, folder(version, { "a.yaml": config(version) }));
    await world.resolve();
    const rolled = (await row()).operations.uploads?.find(({ version }) => version === "rolled");
    await applied(sync("stays", "pinned"));
    await applied(sync("follows"));
    await rolledOut("follows", `rolled@sha256:${rolled?.sha256}`);
    await put({ principals: [principal], version: "named" });
    await pushMany(199);
    expect((await push("newest", folder("newest", { "a.yaml": config("newest") }))).code).toBe(0);
    expect((await pushed()).slice(0, 4)).toEqual(["pinned", "rolled", "named", "present"]);
    expect(await pushed()).toHaveLength(204);
    for (const version of ["pinned", "rolled", "named", "present"])
      expect((await push(version, folder("other", { "a.yaml": config("other") }))).err).toContain("with other bytes");
  });

  test("a version is forgotten when nothing names it any more", async () => {
    await push("pinned", folder("pinned", { "a.yaml": config("pinned") }));
    await push("present", folder("present", { "a.yaml": config("present") }));
    await world.resolve();
    await applied(sync("stays", "pinned"));
    await pushMany(199);
    await push("one", folder("one", { "a.yaml": config("one") }));
    expect((await pushed())[0]).toBe("pinned");
    await applied(sync("stays"));
    world.now = new Date(world.now.getTime() + 1000);
    await world.resolve({ pin: "pinned" });
    await push("two", folder("two", { "a.yaml": config("two") }));
    expect(await pushed()).not.toContain("pinned");
  });

  test("a rollout that only a newer Starling can read keeps all versions", async () => {
    await push("rolled", folder("rolled", { "a.yaml": config("rolled") }));
    await push("present", folder("present", { "a.yaml": config("present") }));
    await world.resolve();
    await applied(sync("follows"));
    await rolledOut("follows", "unknown");
    const key = keys.rollout({ namespace: "payments", kind: "Sync", name: "follows" }, 1);
    await cli.table.write([{ update: key, set: { schema: 99 } }]);
    await pushMany(199);
    await push("one", folder("one", { "a.yaml": config("one") }));
    expect((await pushed())[0]).toBe("rolled");
  });

  test("a Source stays at a version that it forgot, while its artifact is stored", async () => {
    await push("1.4.0", folder("a", { "a.yaml": config("a") }));
    const first = (await world.resolve()).status.artifact;
    await push("1.5.0", folder("b", { "a.yaml": config("b") }));
    await world.resolve();
    await pushMany(199);
    await push("1.6.0", folder("c", { "a.yaml": config("c") }));
    expect(await pushed()).not.toContain("1.4.0");
    await put({ principals: [principal], version: "1.4.0" });
    const { artifact, conditions } = (await world.resolve()).status;
    expect(conditions.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });
    expect([artifact?.revision, artifact?.digest]).toEqual([first?.revision, first?.digest]);
    const shown = await cli.run("source resolve shop --revision 1.4.0");
    expect(shown).toMatchObject({ code: 0, out: expect.stringContaining(first?.digest ?? "?") });
    await put({ principals: [principal], version: "1.3.0" });
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamNotFound",
      message:
        "spec.external.version 1.3.0 is not among the last 200 pushed versions, and was forgotten if it was older; push it: starling source push shop --as 1.3.0 --dir FOLDER",
    });
  });
});

test("the workflow of the page pushes what it builds", async () => {
  const page = readFileSync("docs/tasks/push-from-ci.md", "utf8");
  const [, line] = /^ +starling (source push .*)$/m.exec(page) ?? [];
  if (line === undefined) throw new Error("the page has no workflow that pushes");
  folder("out", { "deploy/a.yaml": config("a") });
  const command = line
    .replace('"$GITHUB_SHA"', "4be8a9034f1c2d5e6a7b8c9d0e1f2a3b4c5d6e7f")
    .replace("-n shop", "-n payments");
  const waiting = cli.run(command);
  while ((await pushed()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await world.resolve();
  expect(await waiting).toMatchObject({ code: 0, out: expect.stringContaining("source/shop Ready") });
  expect(await pushed()).toEqual(["4be8a9034f1c2d5e6a7b8c9d0e1f2a3b4c5d6e7f"]);
});

test("a push whose answer was lost between the two writes is repeated without a second version", async () => {
  const bytes = await tarGz([{ name: "a.yaml", body: config("a") }]);
  const body = { version: "1.4.0", sha256: sha256(bytes), bytes: bytes.length };
  const first = await call(body);
  await new HttpTransfer().upload(first.url ?? "", bytes);
  const second = { ...body, upload: first.upload };
  const [one, other] = await Promise.all([call(second), call(second)]);
  expect([one?.state, other?.state].toSorted()).toEqual(["accepted", "unchanged"]);
  expect(await pushed()).toEqual(["1.4.0"]);
  expect((await row()).dueKey).toBeDefined();
  expect(await call(second)).toMatchObject({ state: "unchanged" });
  expect((await world.resolve()).status.artifact?.revision).toBe(`1.4.0@sha256:${sha256(bytes)}`);
});

describe("who may push", () => {
  test.each(["arn:aws:iam::000000000000:role/ci", "arn:aws:iam::111122223333:user/*", "arn:aws:iam::*:user/an"])(
    "somebody who is not %s is refused, without a place for bytes [source.external.principals]",
    async (pattern) => {
      await put({ principals: [pattern] });
      const before = await row();
      const { code, err } = await push("1.4.0", folder("a", { "a.yaml": config("a") }));
      expect(code).not.toBe(0);
      expect(err).toContain(`${principal} may not push to Source payments/shop`);
      expect(await row()).toEqual(before);
      expect(cli.blobs.keys()).toEqual([]);
    },
  );

  test("somebody who lost the right between the two requests is refused [source.external.principals]", async () => {
    const bytes = await tarGz([{ name: "a.yaml", body: config("a") }]);
    const body = { version: "1.4.0", sha256: sha256(bytes), bytes: bytes.length };
    const first = await call(body);
    await new HttpTransfer().upload(first.url ?? "", bytes);
    await put({ principals: ["arn:aws:iam::000000000000:role/ci"] });
    expect(await call({ ...body, upload: first.upload })).toMatchObject({ code: "Forbidden" });
    expect(await pushed()).toEqual([]);
  });
});

test.each([
  "https://gitlab-ci-token:s3cret@gitlab.com/acme/shop.git",
  "https://s3cret@github.com/acme/shop",
  "main:ssh://ci:s3cret@git.example.com/acme/shop",
])("an origin with a login is refused, because everybody may see it: %s", async (origin) => {
  const { code, err } = await push("1.4.0", folder("a", { "a.yaml": config("a") }), ` --origin ${origin}`);
  expect([code, err]).toEqual([
    expect.not.stringMatching(/^0$/),
    expect.stringContaining("leave out what stands before the @"),
  ]);
  expect(err).not.toContain("s3cret");
  expect(await pushed()).toEqual([]);
});

describe("a push that is refused", () => {
  test.each<[string, readonly TarEntry[], string]>([
    ["a symbolic link", [{ name: "a.yaml", type: "symlink" }], "is a symlink"],
    ["a name that leads out", [{ name: "../a.yaml", body: "x" }], "leads out of the archive"],
    ["a name twice", [{ name: "a.yaml" }, { name: "a.yaml" }], "occurs twice"],
  ])(
    "%s: the reason says so, and the version may be pushed with other bytes [source.external.refused]",
    async (_, entries, message) => {
      await pushBytes("1.4.0", await tarGz(entries));
      expect(await world.ready()).toMatchObject({
        reason: "ArchiveInvalid",
        message: expect.stringContaining(message),
      });
      expect((await push("1.4.0", folder("a", { "a.yaml": config("a") }))).code).toBe(0);
      expect(await world.ready()).toMatchObject({ status: "True" });
      expect(await pushed()).toEqual(["1.4.0"]);
    },
  );

  test("other bytes than those that were announced are never packaged [source.external.refused]", async () => {
    const bytes = await tarGz([{ name: "a.yaml", body: config("a") }]);
    const other = await tarGz([{ name: "a.yaml", body: config("b") }]);
    await pushBytes("1.4.0", other, bytes);
    expect(await world.ready()).toMatchObject({ reason: "ChecksumMismatch" });
    expect((await row()).status.artifact).toBeUndefined();
  });

  test("a folder with a link, an empty folder, and a file are named by the command", async () => {
    folder("a", { "a.yaml": config("a") });
    symlinkSync("a.yaml", join(cli.folder, "a", "b.yaml"));
    expect((await push("1.4.0", "a")).err).toContain("b.yaml in a is no file, and cannot be pushed");
    mkdirSync(join(cli.folder, "empty"));
    expect((await push("1.4.0", "empty")).err).toContain("empty has no files");
    expect((await push("1.4.0", "source.yaml")).err).toContain("source.yaml is not a folder");
  });

  test("a Source that is fed otherwise takes no pushes [source.external.only]", async () => {
    const git = { url: "https://github.com/acme/shop" };
    cli.write(
      "git.yaml",
      JSON.stringify({
        apiVersion: "starling.dev/v1alpha1",
        kind: "Source",
        metadata: { name: "shop", namespace: "payments" },
        spec: { git },
      }),
    );
    await cli.run("apply -f git.yaml");
    expect((await push("1.4.0", folder("a", { "a.yaml": "x" }))).err).toContain("it has no spec.external");
  });
});
