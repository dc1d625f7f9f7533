import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createBucket } from "#local/aws/services/create-resources.ts";
import { quiet, type S3Faults } from "#local/aws/wire/fault-options.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import type { BlobStore } from "#shared/ports.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

/** What every implementation of `BlobStore` does. */
function blobStoreContract(made: () => BlobStore): void {
  let blobs: BlobStore;
  let key: string;
  beforeEach(() => {
    blobs = made();
    key = `artifacts/${randomUUID()}.tar.gz`;
  });
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

  test("gives back what was stored, byte for byte", async () => {
    const bytes = new Uint8Array(randomBytes(300_000));
    await blobs.overwrite(key, bytes);
    expect(Buffer.from(await blobs.get(key)).equals(bytes)).toBe(true);
  });

  test("keeps what is not text, and nothing at all", async () => {
    await blobs.overwrite(key, Uint8Array.from([0, 255, 13, 10, 128]));
    expect([...(await blobs.get(key))]).toEqual([0, 255, 13, 10, 128]);
    await blobs.overwrite(`${key}.empty`, new Uint8Array());
    expect(await blobs.get(`${key}.empty`)).toHaveLength(0);
  });

  test("stores over what was changed, and over what is gone", async () => {
    await blobs.overwrite(key, Buffer.from("tampered"));
    await blobs.overwrite(key, Buffer.from("mended"));
    expect(text(await blobs.get(key))).toBe("mended");
    await blobs.overwrite(`${key}.gone`, Buffer.from("again"));
    expect(text(await blobs.get(`${key}.gone`))).toBe("again");
  });

  test("of many that store a key at once, all are done, and it is there", async () => {
    await Promise.all(Array.from({ length: 8 }, () => blobs.overwrite(key, Buffer.from("same"))));
    expect(text(await blobs.get(key))).toBe("same");
  });

  test("what is stored once more is as it was, how often, and by how many at once, that is done", async () => {
    const bytes = new Uint8Array(randomBytes(300_000));
    await blobs.overwrite(key, bytes);
    const later = new Date(Date.now() + 60_000);
    await Promise.all(Array.from({ length: 8 }, () => blobs.renew(key, later)));
    await blobs.renew(key, new Date(0));
    expect(Buffer.from(await blobs.get(key)).equals(bytes)).toBe(true);
  });

  test("what is not there is not stored once more, and named", async () => {
    for (const before of [new Date(0), new Date(Date.now() + 60_000)]) {
      await expect(blobs.renew(key, before)).rejects.toMatchObject({
        code: "BlobNotFound",
        retry: "permanent",
        message: expect.stringContaining(key),
      });
    }
    await expect(blobs.get(key)).rejects.toMatchObject({ code: "BlobNotFound" });
  });

  test("what was given and what was taken are copies", async () => {
    const bytes = Buffer.from("abc");
    await blobs.overwrite(key, bytes);
    bytes[0] = 0;
    const taken = await blobs.get(key);
    taken[1] = 0;
    expect(text(await blobs.get(key))).toBe("abc");
  });

  test("more bytes than the reader takes are refused, just as many are not", async () => {
    await blobs.overwrite(key, Buffer.from("12345"));
    expect(text(await blobs.get(key, { maxBytes: 5 }))).toBe("12345");
    await expect(blobs.get(key, { maxBytes: 4 })).rejects.toMatchObject({ code: "BlobTooLarge", retry: "permanent" });
  });

  test("a key that was never stored is named", async () => {
    await expect(blobs.get(key)).rejects.toMatchObject({
      code: "BlobNotFound",
      retry: "permanent",
      message: expect.stringContaining(key),
    });
  });
}

describe("MemoryBlobStore", () => {
  blobStoreContract(() => new MemoryBlobStore());
});

describe("S3BlobStore", () => {
  let emulated: EmulatedClients;
  let blobs: BlobStore;
  beforeAll(async () => {
    emulated = await startEmulatedClients({ seed: 11 });
    await createBucket(emulated.aws.s3, "blobs");
    blobs = new S3BlobStore(emulated.aws.s3, "blobs");
  });
  afterAll(() => emulated.stop());
  afterEach(() => emulated.proxy.setFaults(quiet));

  function disturb(faults: Partial<S3Faults>): void {
    emulated.proxy.setFaults({ ...quiet, s3: { ...quiet.s3, ...faults } });
  }

  describe("on a good day", () => {
    blobStoreContract(() => blobs);
  });

  describe("where the first try of every call breaks", () => {
    const tried = new Set<string>();
    let undisturbed: () => void;
    beforeEach(() => {
      undisturbed = emulated.proxy.intercept({
        before: async ({ service, invocationId }) => {
          if (service !== "s3" || tried.has(invocationId)) return undefined;
          tried.add(invocationId);
          return "reset";
        },
      });
    });
    afterEach(() => undisturbed());
    blobStoreContract(() => blobs);
  });

  test("failures of the service are borne, as often as the SDK tries", async () => {
    const where = (call: { readonly operation: string }) => call.operation === "PutObject";
    const failed = [1, 2].map((n) => emulated.proxy.failCall(n, "before", { where, as: "serverError" }));
    await blobs.overwrite(randomUUID(), Buffer.from("x"));
    expect(failed.map((failure) => failure.fired())).toEqual([true, true]);
  });

  test("a put whose answer was lost has stored the blob, whoever is said to have done it", async () => {
    const key = randomUUID();
    const lost = emulated.proxy.failCall(1, "after", { where: (call) => call.operation === "PutObject" });
    await blobs.overwrite(key, Buffer.from("here"));
    expect(lost.fired()).toBe(true);
    expect(Buffer.from(await blobs.get(key)).toString()).toBe("here");
  });

  test.each<{ readonly name: string; readonly faults: Partial<S3Faults> }>([
    { name: "slow downs that do not end", faults: { slowDown: 1 } },
    { name: "a network that is down", faults: { resetBefore: 1 } },
  ])("$name are a transient error, in Starling's words", async ({ faults }) => {
    disturb(faults);
    await expect(blobs.overwrite(randomUUID(), Buffer.from("x"))).rejects.toMatchObject({
      name: "StarlingError",
      code: "BlobStoreBusy",
      retry: "transient",
    });
  });

  test.each<{ readonly name: string; readonly act: (blobs: BlobStore, key: string) => Promise<unknown> }>([
    { name: "read", act: (store, key) => store.get(key) },
    { name: "stored", act: (store, key) => store.overwrite(key, Buffer.from("x")) },
    { name: "stored once more", act: (store, key) => store.renew(key, new Date()) },
  ])("what may not be $name is not taken for missing, and says where to look", async ({ act }) => {
    const key = randomUUID();
    const lifted = emulated.proxy.intercept({ before: ({ service }) => (service === "s3" ? "denied" : undefined) });
    try {
      await expect(act(blobs, key)).rejects.toMatchObject({
        name: "StarlingError",
        code: "BlobDenied",
        retry: "transient",
        message: expect.stringMatching(
          new RegExp(`${key} in the bucket blobs .*(AccessDenied|403).*s3:ListBucket.*Deny`),
        ),
        data: { bucket: "blobs", key },
      });
    } finally {
      lifted();
    }
  });

  test("a bucket that does not exist is not taken for a missing blob", async () => {
    const elsewhere = new S3BlobStore(emulated.aws.s3, "no-such-bucket");
    await expect(elsewhere.get("a")).rejects.toMatchObject({ name: "NoSuchBucket" });
  });
});
