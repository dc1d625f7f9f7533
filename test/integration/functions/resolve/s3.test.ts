import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { s3Error } from "#local/aws/wire/aws-error-replies.ts";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { type BucketServer, startBucketServer } from "#test/support/bucket-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const bucket = "acme-manifests";
const config = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\n`;
const md5 = (text: string) => createHash("md5").update(text).digest("hex");
const sha256 = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

let server: BucketServer;
let world: SourceWorld;

beforeEach(async () => {
  server = await startBucketServer();
  world = new SourceWorld();
  world.buckets = new S3BucketReader((region) => server.s3In(region));
  world.bucketRules = { allowed: parseAllowedBuckets(bucket), own: "starling-blobs" };
});

afterEach(() => server.stop());

const specOf = (more: object = {}, rest: object = {}) => ({ s3: { bucket, ...more }, ...rest });
const lines = () => server.requests.map(({ line }) => line);
const reads = () => lines().filter((line) => line.startsWith(`GET /${bucket}/`) && line !== `GET /${bucket}/`);
const pathsOf = async () => (await world.files()).map(({ path }) => path);

describe("a Source of a bucket", () => {
  test("the objects are its files, and the revision is the digest of their keys and ETags [source.s3.revision]", async () => {
    await server.put(bucket, { "deploy/b.yaml": config("b"), "deploy/a.yaml": config("a"), "deploy/": "x" });
    await world.put(specOf());
    const { status } = await world.resolve();
    expect(status.artifact).toMatchObject({
      revision: sha256(`deploy/a.yaml ${md5(config("a"))}\ndeploy/b.yaml ${md5(config("b"))}\n`),
      files: 2,
      subject: "2 objects of s3://acme-manifests",
      committedAt: expect.stringMatching(/^\d{4}-/),
    });
    expect(await pathsOf()).toEqual(["deploy/a.yaml", "deploy/b.yaml"]);
  });

  test("without a change, a poll is one listing [source.poll.unchanged]", async () => {
    await server.put(bucket, { "a.yaml": config("a") });
    await world.put(specOf());
    await world.resolve();
    server.requests.length = 0;
    await world.resolve();
    expect(server.requests.map(({ line, query }) => `${line} ${query.get("list-type")}`)).toEqual([
      `GET /${bucket}/ 2`,
    ]);
  });

  test("an object that spec.ignore names is neither read nor in the revision, and .sourceignore counts [source.ignore.kinds]", async () => {
    await server.put(bucket, {
      ".sourceignore": "*.txt",
      "a.yaml": config("a"),
      "a.md": "A",
      "a.txt": "A",
      "logo.png": "P",
    });
    await world.put(specOf({}, { ignore: "*.md" }));
    const { artifact } = (await world.resolve()).status;
    expect(await pathsOf()).toEqual([".sourceignore", "a.yaml"]);
    expect(reads().some((line) => line.includes(".md"))).toBe(false);
    await server.put(bucket, { "a.md": "B" });
    expect((await world.resolve()).status.artifact).toEqual(artifact);
    await world.put(specOf({}, { ignore: "*.md\n!logo.png" }));
    await world.resolve();
    expect(await pathsOf()).toEqual([".sourceignore", "a.yaml", "logo.png"]);
  });

  test("equal content that is uploaded again is no new revision, and other content is [source.s3.revision]", async () => {
    await server.put(bucket, { "a.yaml": config("a") });
    await world.put(specOf());
    const { artifact: first } = (await world.resolve()).status;
    await server.put(bucket, { "a.yaml": config("a") });
    expect((await world.resolve()).status.artifact).toEqual(first);
    expect(reads()).toHaveLength(1);
    await server.put(bucket, { "a.yaml": config("other") });
    const { artifact: second } = (await world.resolve()).status;
    expect(second?.revision).not.toBe(first?.revision);
    expect(second?.digest).not.toBe(first?.digest);
  });

  test("paths are relative to the prefix, and nothing beside them is read or counts [source.s3.prefix]", async () => {
    await server.put(bucket, {
      "releases/1.4/deploy/a.yaml": config("a"),
      "releases/1.4/deploy-old/b.yaml": config("b"),
      "releases/1.4/docs/c.md": "c",
      "releases/1.40/deploy/d.yaml": config("d"),
      "deploy/e.yaml": config("e"),
    });
    for (const prefix of ["releases/1.4", "releases/1.4/"]) {
      await world.put(specOf({ prefix }, { paths: ["deploy/a.yaml", "deploy"] }));
      const { status } = await world.resolve();
      expect(status.artifact?.revision).toBe(sha256(`deploy/a.yaml ${md5(config("a"))}\n`));
      expect(await pathsOf()).toEqual(["deploy/a.yaml"]);
    }
    const prefixes = server.requests.flatMap(({ query }) => query.get("prefix") ?? []);
    expect(new Set(prefixes)).toEqual(new Set(["releases/1.4/deploy"]));
    expect(new Set(reads())).toEqual(new Set([`GET /${bucket}/releases/1.4/deploy/a.yaml`]));
    const before = (await world.resolve()).status.artifact?.revision;
    await server.put(bucket, { "releases/1.4/docs/c.md": "other" });
    expect((await world.resolve()).status.artifact?.revision).toBe(before);
  });

  test("each object is read only if it is the listed one [source.s3.reading]", async () => {
    await server.put(bucket, { "a.yaml": config("a") });
    await world.put(specOf());
    await world.resolve();
    const read = server.requests.find(({ line }) => line === `GET /${bucket}/a.yaml`);
    expect(read?.headers["if-match"]).toBe(`"${md5(config("a"))}"`);
  });

  test("a listing of several pages is read to its end [source.s3.reading]", async () => {
    const names = Array.from({ length: 1003 }, (_, index) => `m/${`${index}`.padStart(4, "0")}.yaml`);
    await server.put(bucket, Object.fromEntries(names.map((name) => [name, "x"])));
    await world.put(specOf());
    expect((await world.resolve()).status.artifact?.files).toBe(1003);
    expect(lines().filter((line) => line === `GET /${bucket}/`)).toHaveLength(2);
  });

  test("at most sixteen objects are read at once [source.s3.reading]", async () => {
    await server.put(bucket, Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`${index}.yaml`, "x"])));
    let running = 0;
    let most = 0;
    let open: () => void = () => {};
    const isFull = new Promise<void>((resolve) => {
      open = resolve;
    });
    server.before = async ({ line }) => {
      if (line === `GET /${bucket}/`) return undefined;
      most = Math.max(most, ++running);
      // The first sixteen are answered when all of them have come.
      if (running === 16) open();
      await isFull;
      running--;
      return undefined;
    };
    await world.put(specOf());
    expect((await world.resolve()).status.artifact?.files).toBe(60);
    expect(most).toBe(16);
  });

  test("an artifact that was lost is read again while the objects are the same [source.artifact.lost]", async () => {
    await server.put(bucket, { "a.yaml": config("a") });
    await world.put(specOf());
    await world.resolve();
    world.passDays(90);
    await world.resolve();
    await world.resolve();
    expect(await pathsOf()).toEqual(["a.yaml"]);
  });
});

describe("a bucket that changes while it is read", () => {
  test("an object that is gone by then is left out, and the revision is that of the others [source.s3.reading]", async () => {
    await server.put(bucket, { "a.yaml": config("a"), "b.yaml": config("b") });
    let first = true;
    server.before = async ({ line }) => {
      if (line.endsWith("/b.yaml") && first) {
        first = false;
        await server.remove(bucket, "b.yaml");
      }
      return undefined;
    };
    await world.put(specOf());
    expect((await world.resolve()).status.artifact?.revision).toBe(sha256(`a.yaml ${md5(config("a"))}\n`));
    expect(await pathsOf()).toEqual(["a.yaml"]);
    server.requests.length = 0;
    await world.resolve();
    expect(lines()).toEqual([`GET /${bucket}/`]);
  });

  test("an object that is another one by then is read as it is listed anew, and what was read is not read again [source.s3.reading]", async () => {
    await server.put(bucket, { "a.yaml": config("a"), "b.yaml": config("b") });
    let first = true;
    server.before = async ({ line, headers }) => {
      if (!line.endsWith("/b.yaml") || !first) return undefined;
      first = false;
      await server.put(bucket, { "b.yaml": config("new") });
      expect(headers["if-match"]).toBe(`"${md5(config("b"))}"`);
      return s3Error({ status: 412, code: "PreconditionFailed", message: "no" });
    };
    await world.put(specOf());
    expect((await world.resolve()).status.artifact?.revision).toBe(
      sha256(`a.yaml ${md5(config("a"))}\nb.yaml ${md5(config("new"))}\n`),
    );
    expect(reads().filter((line) => line.endsWith("a.yaml"))).toHaveLength(1);
  });

  test("one that never rests is a passing failure, and the last good artifact stays [source.s3.reading]", async () => {
    await server.put(bucket, { "a.yaml": config("a") });
    await world.put(specOf());
    const { artifact } = (await world.resolve()).status;
    await server.put(bucket, { "a.yaml": config("b") });
    server.before = ({ line }) =>
      line.endsWith("a.yaml") ? s3Error({ status: 412, code: "PreconditionFailed", message: "no" }) : undefined;
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringContaining("its objects change faster than they can be read"),
    });
    expect(reads()).toHaveLength(4);
    expect((await world.resolve()).status.artifact).toEqual(artifact);
  });
});

/** A page of a listing, as S3 writes it. */
const listing = (
  keys: readonly string[],
  { next, size = 1 }: { readonly next?: string; readonly size?: number } = {},
) => {
  const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("\0", "&#0;").replaceAll("\n", "&#10;");
  const contents = keys.map(
    (key) =>
      `<Contents><Key>${escaped(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>${size}</Size></Contents>`,
  );
  const more = next === undefined ? "" : `<NextContinuationToken>${next}</NextContinuationToken>`;
  const body = Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult><Name>b</Name><IsTruncated>${next !== undefined}</IsTruncated>${contents.join("")}${more}</ListBucketResult>`,
  );
  return { status: 200, headers: { "content-type": "application/xml" }, body };
};

describe("keys that are no files", () => {
  test.each([
    ["../a.yaml", "leads out of the prefix"],
    ["deploy/../a.yaml", "leads out of the prefix"],
    ["/a.yaml", "is an absolute path"],
    ["deploy//a.yaml", "leads out of the prefix"],
    ["./a.yaml", "leads out of the prefix"],
    ["deploy\\a.yaml", "is not a file name"],
    ["deploy/a\n.yaml", "has a control character"],
    [`${"a".repeat(1025)}`, "is longer than 1024 bytes"],
  ])("the key %j refuses the revision by name [source.s3.keys]", async (key, problem) => {
    server.before = () => listing(["b.yaml", key]);
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "BucketKeyRefused",
      message: expect.stringContaining(problem),
    });
    expect(reads()).toEqual([]);
  });

  test("a key twice, and a file that is a folder as well, refuse the revision [source.s3.keys]", async () => {
    await world.put(specOf());
    server.before = () => listing(["a.yaml", "a.yaml"]);
    expect(await world.ready()).toMatchObject({
      reason: "BucketKeyRefused",
      message: expect.stringContaining("twice"),
    });
    server.before = () => listing(["a", "a-b/c.yaml", "a/b.yaml"]);
    expect(await world.ready()).toMatchObject({
      reason: "BucketKeyRefused",
      message: expect.stringContaining('the object "a/b.yaml" is below an object that is a file'),
    });
  });

  test("keys that differ in case are two files, and objects of folders and of version control are none [source.s3.keys]", async () => {
    await server.put(bucket, { "A.yaml": "A", "a.yaml": "a", "folder/": "x", ".git/config": "x", "logo.png": "x" });
    await world.put(specOf());
    await world.resolve();
    expect(await pathsOf()).toEqual(["A.yaml", "a.yaml"]);
  });
});

describe("the limits of a bucket", () => {
  test("more than 20,000 files, and more than 100 MiB, are refused before anything is read [source.s3.limits]", async () => {
    await world.put(specOf());
    let page = 0;
    server.before = () =>
      listing(
        Array.from({ length: 1000 }, (_, index) => `${++page}-${index}.yaml`),
        { next: `${page}` },
      );
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamTooLarge",
      message: expect.stringContaining("more than 20000 files are in spec.paths; narrow spec.s3.prefix or spec.paths"),
    });
    expect(server.requests).toHaveLength(21);
    server.before = () => listing(["a.yaml", "b.yaml"], { size: 60 * 1024 * 1024 });
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamTooLarge",
      message: expect.stringContaining("spec.paths has more than 100 MiB"),
    });
    expect(reads()).toEqual([]);
  });

  test("a listing that never ends is left after 100 pages", async () => {
    await world.put(specOf({}, { paths: ["deploy"] }));
    let page = 0;
    server.before = () => listing(["deploy-other/a.yaml"], { next: `${++page}` });
    expect(await world.ready()).toMatchObject({
      reason: "UpstreamTooLarge",
      message: expect.stringContaining("more than 100000 objects would be looked through"),
    });
    expect(server.requests).toHaveLength(100);
  });
});

describe("a bucket that cannot be read", () => {
  test("a bucket that does not exist", async () => {
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({
      reason: "BucketNotFound",
      message: "bucket acme-manifests: there is no such bucket: create it, or correct spec.s3.bucket",
    });
  });

  test("denied access names the right, the setting and the policies [source.s3.unreadable]", async () => {
    await server.put(bucket, { "a.yaml": "x" });
    await world.put(specOf());
    server.before = () => s3Error({ status: 403, code: "AccessDenied", message: "Access Denied" });
    expect(await world.ready()).toMatchObject({
      reason: "BucketDenied",
      message: expect.stringMatching(
        /S3 denies s3:ListBucket \(AccessDenied\).*sourceBuckets.*ResolveRole.*kms:Decrypt/,
      ),
    });
    server.before = ({ line }) =>
      line === `GET /${bucket}/` ? undefined : s3Error({ status: 403, code: "AccessDenied", message: "no" });
    expect(await world.ready()).toMatchObject({ message: expect.stringContaining("S3 denies s3:GetObject") });
  });

  test("a bucket of another region names the region [source.s3.unreadable]", async () => {
    await world.put(specOf());
    server.before = () => ({
      ...s3Error({ status: 301, code: "PermanentRedirect", message: "elsewhere" }),
      headers: { "content-type": "application/xml", "x-amz-bucket-region": "eu-central-1" },
    });
    expect(await world.ready()).toMatchObject({
      reason: "BucketElsewhere",
      message: "bucket acme-manifests: it is not in the region of the installation: write spec.s3.region: eu-central-1",
    });
    server.before = () =>
      s3Error({
        status: 400,
        code: "AuthorizationHeaderMalformed",
        message: "the region 'us-east-1' is wrong; expecting 'eu-west-3'",
        elements: { Region: "eu-west-3" },
      });
    expect(await world.ready()).toMatchObject({
      reason: "BucketElsewhere",
      message: expect.stringContaining("write spec.s3.region: eu-west-3"),
    });
  });

  test("the region of the spec signs the requests", async () => {
    await server.put(bucket, { "a.yaml": "x" });
    await world.put(specOf({ region: "eu-central-1" }));
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect(new Set(server.requests.map(({ headers }) => headers.authorization?.split("/")[2]))).toEqual(
      new Set(["eu-central-1"]),
    );
  });

  test("archived objects are told apart from denied ones", async () => {
    await server.put(bucket, { "a.yaml": "x" });
    await world.put(specOf());
    server.before = ({ line }) =>
      line.endsWith("a.yaml") ? s3Error({ status: 403, code: "InvalidObjectState", message: "no" }) : undefined;
    expect(await world.ready()).toMatchObject({
      reason: "BucketDenied",
      message: expect.stringContaining("some objects are archived"),
    });
  });

  test("S3 that is away is a passing failure, and the last good artifact stays [source.s3.unreadable]", async () => {
    await server.put(bucket, { "a.yaml": "x" });
    await world.put(specOf());
    const { artifact } = (await world.resolve()).status;
    server.before = () => s3Error({ status: 503, code: "SlowDown", message: "Please reduce your request rate." });
    expect(await world.ready()).toMatchObject({ status: "False", reason: "UpstreamUnavailable" });
    expect((await world.resolve()).status.artifact).toEqual(artifact);
  });
});

describe("the buckets that a Source may read", () => {
  const allow = (text: string) => {
    world.bucketRules = { allowed: parseAllowedBuckets(text), own: "starling-blobs" };
  };

  test.each([
    [
      "another bucket than those of the setting",
      "acme-other",
      bucket,
      "is not among the buckets that this installation",
    ],
    ["a bucket of other namespaces", `${bucket}:payments+billing`, bucket, "is not for Sources of the namespace shop"],
    ["Starling's own bucket", "starling-blobs", "starling-blobs", "is Starling's own bucket"],
  ])("%s is refused by name without a request [source.s3.allowed]", async (_, allowed, name, problem) => {
    allow(allowed);
    await world.put(specOf({ bucket: name }));
    expect(await world.ready()).toMatchObject({
      reason: "BucketNotAllowed",
      message: expect.stringContaining(`spec.s3.bucket ${name} ${problem}`),
    });
    expect(server.requests).toEqual([]);
  });

  test("a bucket for the Source's namespace is read [source.s3.allowed]", async () => {
    allow(`111122223333/${bucket}:payments+shop`);
    await server.put(bucket, { "a.yaml": "x" });
    await world.put(specOf());
    expect(await world.ready()).toMatchObject({ status: "True" });
  });
});
