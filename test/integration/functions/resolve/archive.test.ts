import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { type TarEntry, tarGz } from "#test/support/tar-gz.ts";

const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

let server: FileServer;
let answer: (asked: AskedFile) => FileAnswer;
let world: SourceWorld;

beforeEach(async () => {
  server = await startFileServer((asked) => answer(asked));
  world = new SourceWorld();
});

afterEach(() => server.stop());

const specOf = (bytes: Uint8Array, more: object = {}, rest: object = {}) => ({
  archive: { url: `${server.url}/shop-1.4.0.tar.gz`, sha256: sha256(bytes), ...more },
  ...rest,
});

describe("a Source of an archive", () => {
  test("the files below its paths are stored, and the server is asked once [source.archive.once]", async () => {
    const bytes = await tarGz([
      { name: "shop/", type: "directory" },
      { name: "shop/deploy/a.yaml", body: config },
      { name: "shop/README.md", body: "not wanted" },
    ]);
    answer = () => ({ body: bytes });
    await world.put(specOf(bytes, {}, { paths: ["shop/deploy"] }));
    const { status } = await world.resolve();
    expect(status.artifact).toMatchObject({
      revision: `sha256:${sha256(bytes)}`,
      files: 1,
      subject: "shop-1.4.0.tar.gz",
      author: "",
    });
    expect((await world.files()).map(({ path }) => path)).toEqual(["shop/deploy/a.yaml"]);
    await world.resolve();
    await world.resolve();
    expect(server.asked.length).toBe(1);
  });

  test("an artifact that was lost is fetched again [source.artifact.lost]", async () => {
    const bytes = await tarGz([{ name: "a.yaml", body: config }]);
    answer = () => ({ body: bytes });
    await world.put(specOf(bytes));
    await world.resolve();
    world.passDays(90);
    await expect(world.files()).rejects.toMatchObject({ code: "BlobNotFound" });
    await world.resolve();
    await world.resolve();
    expect((await world.files()).map(({ path }) => path)).toEqual(["a.yaml"]);
    expect(server.asked.length).toBe(2);
  });

  test("another file than that of the checksum is never stored, and the last good artifact stays [source.archive.checksum]", async () => {
    const bytes = await tarGz([{ name: "a.yaml", body: config }]);
    answer = () => ({ body: bytes });
    await world.put(specOf(bytes));
    const before = (await world.resolve()).status.artifact;
    const other = await tarGz([{ name: "a.yaml", body: "changed" }]);
    await world.put(specOf(other));
    expect(await world.ready()).toMatchObject({
      status: "False",
      reason: "ChecksumMismatch",
      message: expect.stringContaining(
        `has the checksum ${sha256(bytes)}, and spec.archive.sha256 is ${sha256(other)}`,
      ),
    });
    expect((await world.resolve()).status.artifact).toEqual(before);
    expect(server.asked.length).toBe(2);
  });

  test.each<[string, readonly TarEntry[], string]>([
    ["a symbolic link", [{ name: "a.yaml", type: "symlink" }], '"a.yaml" is a symlink; only regular files are allowed'],
    ["a hard link", [{ name: "a.yaml", type: "link" }], '"a.yaml" is a link; only regular files are allowed'],
    [
      "a device",
      [{ name: "a", type: "character-device" }],
      '"a" is a character-device; only regular files are allowed',
    ],
    ["a name that leads out", [{ name: "../a.yaml", body: config }], '"../a.yaml" leads out of the archive'],
    ["an absolute name", [{ name: "/a.yaml", body: config }], '"/a.yaml" is an absolute path'],
    ["a name twice", [{ name: "a.yaml" }, { name: "a.yaml" }], '"a.yaml" occurs twice'],
  ])("an archive with %s is refused [source.archive.entries]", async (_, entries, message) => {
    const bytes = await tarGz(entries);
    answer = () => ({ body: bytes });
    await world.put(specOf(bytes));
    expect(await world.ready()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringContaining(message),
    });
  });

  test("an archive that unpacks to more than its five-hundredfold is refused [source.archive.entries]", async () => {
    const bytes = gzipSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 });
    answer = () => ({ body: bytes });
    await world.put(specOf(bytes));
    expect(await world.ready()).toMatchObject({ reason: "ArchiveInvalid" });
  });

  test("a path that the archive lacks is named [source.files.missing-path]", async () => {
    const bytes = await tarGz([{ name: "a.yaml", body: config }]);
    answer = () => ({ body: bytes });
    await world.put(specOf(bytes, {}, { paths: ["deploy"] }));
    expect(await world.ready()).toMatchObject({
      reason: "PathNotFound",
      message: expect.stringContaining('has no files in "deploy"'),
    });
  });

  test.each([
    [404, "UpstreamNotFound"],
    [401, "AuthenticationFailed"],
    [503, "UpstreamUnavailable"],
  ])("the answer %i is the reason %s [source.archive.answers]", async (status, reason) => {
    answer = () => ({ status, body: "no" });
    await world.put(specOf(Buffer.from("x")));
    expect(await world.ready()).toMatchObject({ reason });
  });
});

describe("the credentials of an archive", () => {
  const credentials = { secret: "starling/files", kind: "bearer" };

  test("they are sent to the host that their secret names", async () => {
    const bytes = await tarGz([{ name: "a.yaml", body: config }]);
    answer = ({ headers }) => (headers.authorization === "Bearer s3cret" ? { body: bytes } : { status: 401 });
    world.secrets.set(credentials.secret, JSON.stringify({ host: new URL(server.url).host, token: "s3cret" }));
    await world.put(specOf(bytes, { credentials }));
    expect(await world.ready()).toMatchObject({ status: "True" });
  });

  test("they are sent to no other host", async () => {
    answer = () => ({ status: 401 });
    world.secrets.set(credentials.secret, JSON.stringify({ host: "downloads.example", token: "s3cret" }));
    await world.put(specOf(Buffer.from("x"), { credentials }));
    expect(await world.ready()).toMatchObject({
      reason: "SecretMismatch",
      message: expect.stringContaining("correct spec.archive.url"),
    });
    expect(server.asked).toEqual([]);
  });
});
