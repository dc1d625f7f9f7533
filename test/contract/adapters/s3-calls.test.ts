import { S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { type ScriptedServer, startScriptedServer } from "#test/support/scripted-server.ts";

/** The requests of the store to S3, and its handling of answers that no emulator gives on demand. */
let server: ScriptedServer;
let client: S3Client;
let blobs: S3BlobStore;
beforeAll(async () => {
  server = await startScriptedServer();
  client = new S3Client({
    region: "us-east-1",
    endpoint: server.endpoint,
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    forcePathStyle: true,
    // Without retries of the SDK, this test counts only those of the store.
    maxAttempts: 1,
  });
  blobs = new S3BlobStore(client, "blobs");
});
afterAll(async () => {
  client.destroy();
  await server.stop();
});

const bytes = Buffer.from("x");
const ok = { status: 200 };
const refusal = (status: number, code: string) => ({
  status,
  headers: { "content-type": "application/xml" },
  body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>said so</Message></Error>`,
});
const busy = { name: "StarlingError", code: "BlobStoreBusy", retry: "transient", data: { key: "a" } };
const asked = () => server.requests.map(({ method, url }) => `${method} ${url.split("?")[0]}`);

test("an overwrite has no condition, so that it replaces any blob", async () => {
  server.restart(() => ok);
  await blobs.overwrite("a", bytes);
  expect(asked()).toEqual(["PUT /blobs/a"]);
  expect(server.requests[0]?.headers).not.toHaveProperty("if-none-match");
});

describe("the renewal of a blob", () => {
  const stored = new Date("2026-11-21T08:00:00.000Z");
  const head = { status: 200, headers: { "last-modified": stored.toUTCString() } };
  const copied = {
    status: 200,
    headers: { "content-type": "application/xml" },
    body: "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>",
  };
  const answers = () => server.restart(({ method }) => (method === "HEAD" ? head : copied));

  test("a renewal copies the blob onto itself in S3, without downloading or uploading its bytes", async () => {
    answers();
    await blobs.renew("renderings/a.json", new Date(stored.getTime() + 1000));
    expect(asked()).toEqual(["HEAD /blobs/renderings/a.json", "PUT /blobs/renderings/a.json"]);
    expect(server.requests[1]?.headers).toMatchObject({
      // The condition of the policy names the source in the same form, without a slash before the bucket.
      "x-amz-copy-source": "blobs/renderings/a.json",
      // S3 refuses a copy onto itself in which nothing changes.
      "x-amz-metadata-directive": "REPLACE",
    });
  });

  test.each([0, -1000])("a blob is not renewed if the given time is %i ms after it was stored", async (offsetMs) => {
    answers();
    await blobs.renew("a", new Date(stored.getTime() + offsetMs));
    expect(asked()).toEqual(["HEAD /blobs/a"]);
  });

  test("the renewal of a blob fails if it is missing, or disappears between the HEAD and the copy", async () => {
    const missing = { code: "BlobNotFound", retry: "permanent", data: { key: "a" } };
    server.restart(() => ({ status: 404 }));
    await expect(blobs.renew("a", new Date())).rejects.toMatchObject(missing);
    server.restart(({ method }) => (method === "HEAD" ? head : refusal(404, "NoSuchKey")));
    await expect(blobs.renew("a", new Date())).rejects.toMatchObject(missing);
  });
});

describe.each([
  { verb: "store", act: () => blobs.overwrite("a", bytes) },
  { verb: "read", act: () => blobs.get("a") },
])("$verb", ({ act }) => {
  test.each([
    ["429", refusal(429, "TooManyRequests")],
    ["500", refusal(500, "InternalError")],
    ["503", refusal(503, "SlowDown")],
    ["a connection that breaks off", "reset" as const],
  ])("the answer %s becomes a transient error with its cause", async (_what, answer) => {
    server.restart(() => answer);
    await expect(act()).rejects.toMatchObject({ ...busy, cause: expect.any(Error) });
    expect(server.requests).toHaveLength(1);
  });

  test("a request is sent again in the next session when its session has ended", async () => {
    server.restart((_request, index) => (index === 0 ? refusal(400, "ExpiredToken") : ok));
    await act();
    expect(server.requests).toHaveLength(2);
  });

  test.each([400, 403])(
    "sessions that end again and again (%i) are a transient error, neither missing nor denied",
    async (status) => {
      server.restart(() => refusal(status, "ExpiredToken"));
      await expect(act()).rejects.toMatchObject(busy);
      expect(server.requests).toHaveLength(2);
    },
  );

  test("the answer 403 becomes BlobDenied with the code from S3", async () => {
    server.restart(() => refusal(403, "KMS.DisabledException"));
    await expect(act()).rejects.toMatchObject({
      code: "BlobDenied",
      retry: "transient",
      message: expect.stringContaining("(KMS.DisabledException)"),
      data: { bucket: "blobs", key: "a" },
      cause: expect.any(Error),
    });
    expect(server.requests).toHaveLength(1);
  });

  test("an error that is a defect is passed on unchanged", async () => {
    server.restart(() => refusal(400, "InvalidRequest"));
    await expect(act()).rejects.toMatchObject({ name: "InvalidRequest" });
    expect(server.requests).toHaveLength(1);
  });
});

test("a blob counts as missing only if S3 answers NoSuchKey, and not if it answers NoSuchBucket", async () => {
  server.restart(() => refusal(404, "NoSuchKey"));
  await expect(blobs.get("a")).rejects.toMatchObject({
    code: "BlobNotFound",
    retry: "permanent",
    data: { key: "a" },
    cause: expect.any(Error),
  });
  server.restart(() => refusal(404, "NoSuchBucket"));
  await expect(blobs.get("a")).rejects.toMatchObject({ name: "NoSuchBucket" });
});

test("a blob that is larger than maxBytes is refused with its size, and one of exactly maxBytes is read", async () => {
  server.restart(() => ({ status: 200, body: "12345", headers: { "content-length": "5" } }));
  expect(Buffer.from(await blobs.get("a", { maxBytes: 5 })).toString()).toBe("12345");
  await expect(blobs.get("a", { maxBytes: 4 })).rejects.toMatchObject({
    code: "BlobTooLarge",
    retry: "permanent",
    message: "the blob a has 5 bytes, more than the limit of 4",
    data: { key: "a" },
  });
});

test("the store stops fetching a blob that is too large", async () => {
  const large = Buffer.alloc(32 * 1024 * 1024).toString();
  server.restart(() => ({ status: 200, body: large, headers: { "content-length": `${large.length}` } }));
  await expect(blobs.get("a", { maxBytes: 4 })).rejects.toMatchObject({ code: "BlobTooLarge" });
  await expect.poll(() => server.cutOff(), { timeout: 20_000 }).toBe(1);
});

/** Legend: Node's code of an error that happens before there is an answer, the error of the store. */
test.each([
  ["ECONNRESET", busy],
  ["ECONNREFUSED", busy],
  ["EPIPE", busy],
  ["ETIMEDOUT", busy],
  ["ENOTFOUND", busy],
  ["EAI_AGAIN", busy],
  ["EPROTO", { code: "EPROTO" }],
] as const)("a request that fails with %s becomes the error %j", async (code, expected) => {
  const requestHandler = { handle: async () => Promise.reject(Object.assign(new Error("no answer"), { code })) };
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const cut = new S3Client({ region: "us-east-1", credentials, maxAttempts: 1, requestHandler });
  await expect(new S3BlobStore(cut, "blobs").get("a")).rejects.toMatchObject(expected);
});
