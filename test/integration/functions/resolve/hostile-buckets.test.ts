/** A server in the place of S3 lies: bounded bytes are taken, each refusal has a name, and the last artifact stays. */
import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { regionalClients } from "#shared/lambda/resolve-clients.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const bucket = "acme-manifests";
const mib = 1024 * 1024;
const content = "a: 1\n";
const etagOf = (text: string) => createHash("md5").update(text).digest("hex");

let server: FileServer;
let world: SourceWorld;
let answer: (asked: AskedFile) => FileAnswer;

beforeEach(async () => {
  server = await startFileServer((asked) => answer(asked));
  const { s3In } = regionalClients({
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    endpoints: { s3: server.url },
  });
  world = new SourceWorld();
  world.buckets = new S3BucketReader((region) => {
    const client = s3In(region);
    onTestFinished(() => client.destroy());
    return client;
  });
  world.bucketRules = { allowed: parseAllowedBuckets(bucket), own: "starling-blobs" };
});
afterEach(() => server.stop());

interface Listed {
  readonly key?: string;
  readonly etag?: string;
  readonly size?: string;
}

const object = ({ key = "a.yaml", etag = etagOf(content), size = `${content.length}` }: Listed = {}) =>
  `<Contents><Key>${key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;${etag}&quot;</ETag><Size>${size}</Size></Contents>`;
const beginning = '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult><Name>b</Name>';
const page = (objects: string, more = "") => ({ body: `${beginning}${objects}${more}</ListBucketResult>` });
const tokenOf = (token: string) =>
  `<IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>`;
const isListing = ({ url }: AskedFile) => url.includes("list-type=2");
const objectAnswer = (body = content, etag = etagOf(body)) => ({
  body,
  headers: { etag: `"${etag}"`, "content-length": `${body.length}` },
});

/** A first artifact, of an honest server; then this answer. @returns what the Source says of it. */
async function against(lie: (asked: AskedFile) => FileAnswer) {
  answer = (asked) => (isListing(asked) ? page(object()) : objectAnswer());
  await world.put({ s3: { bucket } });
  const { artifact } = (await world.resolve()).status;
  expect(artifact).toMatchObject({ files: 1 });
  const before = server.asked.length;
  answer = lie;
  const { status } = await world.resolve();
  expect(status.artifact).toEqual(artifact);
  expect(world.errors).toEqual([]);
  return { ready: status.conditions.find(({ type }) => type === "Ready"), asked: server.asked.length - before };
}

const other = (listed: Listed = {}) => page(object({ key: "b.yaml", ...listed }));

describe("answers without an end", () => {
  const tooLong = (action: string) => ({
    reason: "UpstreamTooLarge",
    message: `bucket ${bucket}: the answer to ${action} has more than 8 MiB, and S3 sends less: ask who runs the endpoint or the proxy between, or correct spec.s3.bucket`,
  });

  test.each<[string, Exclude<FileAnswer, string>]>([
    ["objects", { body: beginning, endless: object() }],
    ["one key", { body: `${beginning}<Contents><Key>`, endless: "k" }],
    ["spaces", { body: beginning, endless: " " }],
    ["elements in elements", { body: beginning, endless: "<a>" }],
    ["an error", { status: 403, body: "<Error><Code>AccessDenied</Code><Message>", endless: "m" }],
    ["an error of the server", { status: 500, body: "<Error><Code>InternalError</Code><Message>", endless: "m" }],
  ])("a listing with %s for ever is left after 8 MiB [source.hostile.endless]", async (_what, lie) => {
    const { ready, asked } = await against(() => lie);
    expect(ready).toMatchObject(tooLong("s3:ListBucket"));
    // The SDK asks again after an error of the server.
    const asks = lie.status === 500 ? 3 : 1;
    expect(asked).toBe(asks);
    // The server has also written the bytes that are on their way in the sockets.
    expect(server.written()).toBeLessThan(asks * (8 + 16) * mib);
  });

  test("an object for ever, without a length, is not read", async () => {
    const { ready } = await against((asked) =>
      isListing(asked) ? other() : { headers: { etag: `"${etagOf(content)}"` }, endless: "x" },
    );
    expect(ready).toMatchObject({ reason: "UpstreamUnavailable" });
    expect(server.written()).toBeLessThan(16 * mib);
  });

  test("the error of an object for ever is left after 8 MiB", async () => {
    const { ready } = await against((asked) =>
      isListing(asked) ? other() : { status: 403, body: "<Error><Code>AccessDenied</Code><Message>", endless: "m" },
    );
    expect(ready).toMatchObject(tooLong("s3:GetObject"));
    expect(server.written()).toBeLessThan(8 * mib + 16 * mib);
  });

  test("a page that follows itself is asked for twice", async () => {
    const { ready, asked } = await against(() => page("", tokenOf("same")));
    expect(ready).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringContaining("the page that follows a page is that page again"),
    });
    expect(asked).toBe(2);
  });
});

describe("lies about an object", () => {
  test.each([
    ["longer than it is listed", objectAnswer(`${content}${content}`, etagOf(content))],
    ["shorter than it is listed", objectAnswer("a", etagOf(content))],
    ["another one, of the same length", objectAnswer("b: 2\n")],
    ["without an ETag", { body: content, headers: { "content-length": `${content.length}` } }],
  ])("one that is %s is none of the revision", async (_what, lie) => {
    const { ready, asked } = await against((each) => (isListing(each) ? other() : lie));
    expect(ready).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringContaining("its objects change faster than they can be read"),
    });
    // Three rounds of a listing and an object.
    expect(asked).toBe(6);
  });

  test.each([
    ["a size below zero", { size: "-1" }],
    ["a size beyond all numbers", { size: "99999999999999999999" }],
    ["an ETag with a line feed", { etag: "a&#10;b" }],
    ["an ETag of 1 MiB", { etag: "e".repeat(mib) }],
    ["no ETag", { etag: "" }],
  ])("%s is refused before anything is read", async (_what, listed) => {
    const { ready } = await against(() => other(listed));
    expect(ready).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringMatching(/the answer to s3:ListBucket cannot be read: .+; Starling tries again/),
    });
    expect(ready?.message.length).toBeLessThan(1000);
    expect(ready?.message).not.toContain("Deserialization");
    expect(server.asked.filter(({ url }) => url.includes("b.yaml"))).toEqual([]);
  });

  test.each([
    ["../b.yaml", "leads out of the prefix"],
    ["b//c.yaml", "leads out of the prefix"],
    ["b&#0;.yaml", "has a control character"],
    ["of 1,025 bytes", "is longer than 1024 bytes"],
  ])("the key %s is refused by name", async (key, problem) => {
    const { ready } = await against(() => other({ key: key.startsWith("of") ? "k".repeat(1025) : key }));
    expect(ready).toMatchObject({ reason: "BucketKeyRefused", message: expect.stringContaining(problem) });
  });

  test("a key of 1,024 bytes is a file", async () => {
    const key = `${"long/".repeat(203)}many.yaml`;
    answer = (asked) => (isListing(asked) ? page(object({ key })) : objectAnswer());
    await world.put({ s3: { bucket } });
    expect(await world.ready()).toMatchObject({ status: "True" });
    expect((await world.files()).map(({ path }) => path)).toEqual([key]);
  });
});

test.each([
  ["no XML", { body: "{}" }],
  ["the page of a proxy", { body: "<html><body>Sign in</body></html>" }],
  ["half a page", { body: `${beginning}<Contents><Key>a` }],
])("%s instead of a listing is refused by name", async (_what, lie) => {
  const { ready } = await against(() => lie);
  expect(ready).toMatchObject({
    reason: "UpstreamUnavailable",
    message: expect.stringContaining("the answer to s3:ListBucket cannot be read"),
  });
});

test("entities that a listing defines stand for nothing", async () => {
  const entities = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>';
  answer = (asked) =>
    isListing(asked) ? { body: `${entities}${page(object({ key: "&b;.yaml" })).body}` } : objectAnswer();
  await world.put({ s3: { bucket } });
  await world.resolve();
  expect((await world.files()).map(({ path }) => path)).toEqual([".yaml"]);
});

test("the name of an error is cut in the message", async () => {
  const { ready } = await against(() => ({ status: 403, body: `<Error><Code>${"N".repeat(5000)}</Code></Error>` }));
  expect(ready).toMatchObject({
    reason: "BucketDenied",
    message: expect.stringMatching(/\(N{90,100}\.\.\.\): the setting/),
  });
});
