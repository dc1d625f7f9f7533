import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createBucket } from "#local/aws/services/create-resources.ts";
import { quiet, type S3Faults } from "#local/aws/wire/fault-options.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import type { BlobStore } from "#shared/ports.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

/** The behaviour that every implementation of `BlobStore` has. */
function blobStoreContract(made: () => BlobStore): void {
  let blobs: BlobStore;
  let key: string;
  beforeEach(() => {
    blobs = made();
    key = `artifacts/${randomUUID()}.tar.gz`;
  });
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

  test("a stored blob is read byte for byte", async () => {
    const bytes = new Uint8Array(randomBytes(300_000));
    await blobs.overwrite(key, bytes);
    expect(Buffer.from(await blobs.get(key)).equals(bytes)).toBe(true);
  });

  test("a binary blob and an empty blob are kept", async () => {
    await blobs.overwrite(key, Uint8Array.from([0, 255, 13, 10, 128]));
    expect([...(await blobs.get(key))]).toEqual([0, 255, 13, 10, 128]);
    await blobs.overwrite(`${key}.empty`, new Uint8Array());
    expect(await blobs.get(`${key}.empty`)).toHaveLength(0);
  });

  test("an overwrite replaces a blob that was changed, and stores one that is missing", async () => {
    await blobs.overwrite(key, Buffer.from("tampered"));
    await blobs.overwrite(key, Buffer.from("repaired"));
    expect(text(await blobs.get(key))).toBe("repaired");
    await blobs.overwrite(`${key}.gone`, Buffer.from("again"));
    expect(text(await blobs.get(`${key}.gone`))).toBe("again");
  });

  test("many writers of one key at once all succeed, and the blob exists", async () => {
    await Promise.all(Array.from({ length: 8 }, () => blobs.overwrite(key, Buffer.from("same"))));
    expect(text(await blobs.get(key))).toBe("same");
  });

  test("a renewed blob keeps its bytes, however often and by however many callers at once it is renewed", async () => {
    const bytes = new Uint8Array(randomBytes(300_000));
    await blobs.overwrite(key, bytes);
    const later = new Date(Date.now() + 60_000);
    await Promise.all(Array.from({ length: 8 }, () => blobs.renew(key, later)));
    await blobs.renew(key, new Date(0));
    expect(Buffer.from(await blobs.get(key)).equals(bytes)).toBe(true);
  });

  test("the renewal of a missing blob stores nothing, and its error names the key", async () => {
    for (const before of [new Date(0), new Date(Date.now() + 60_000)]) {
      await expect(blobs.renew(key, before)).rejects.toMatchObject({
        code: "BlobNotFound",
        retry: "permanent",
        message: expect.stringContaining(key),
      });
    }
    await expect(blobs.get(key)).rejects.toMatchObject({ code: "BlobNotFound" });
  });

  test("the store keeps a copy of the bytes that it is given, and returns a copy", async () => {
    const bytes = Buffer.from("abc");
    await blobs.overwrite(key, bytes);
    bytes[0] = 0;
    const taken = await blobs.get(key);
    taken[1] = 0;
    expect(text(await blobs.get(key))).toBe("abc");
  });

  test("a blob that is larger than maxBytes is refused, and one of exactly maxBytes is read", async () => {
    await blobs.overwrite(key, Buffer.from("12345"));
    expect(text(await blobs.get(key, { maxBytes: 5 }))).toBe("12345");
    await expect(blobs.get(key, { maxBytes: 4 })).rejects.toMatchObject({ code: "BlobTooLarge", retry: "permanent" });
  });

  test("the error for a key that was never stored names the key", async () => {
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

  describe("without faults", () => {
    blobStoreContract(() => blobs);
  });

  describe("when the connection breaks on the first try of every call", () => {
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

  test("a put succeeds at the third try after two errors of the service", async () => {
    const where = (call: { readonly operation: string }) => call.operation === "PutObject";
    const failed = [1, 2].map((n) => emulated.proxy.failCall(n, "before", { where, as: "serverError" }));
    await blobs.overwrite(randomUUID(), Buffer.from("x"));
    expect(failed.map((failure) => failure.fired())).toEqual([true, true]);
  });

  test("a put whose answer was lost has stored the blob, and succeeds", async () => {
    const key = randomUUID();
    const lost = emulated.proxy.failCall(1, "after", { where: (call) => call.operation === "PutObject" });
    await blobs.overwrite(key, Buffer.from("here"));
    expect(lost.fired()).toBe(true);
    expect(Buffer.from(await blobs.get(key)).toString()).toBe("here");
  });

  test.each<{ readonly name: string; readonly faults: Partial<S3Faults> }>([
    { name: "endless SlowDown answers", faults: { slowDown: 1 } },
    { name: "endless connection resets", faults: { resetBefore: 1 } },
  ])("$name become Starling's transient error BlobStoreBusy", async ({ faults }) => {
    disturb(faults);
    await expect(blobs.overwrite(randomUUID(), Buffer.from("x"))).rejects.toMatchObject({
      name: "StarlingError",
      code: "BlobStoreBusy",
      retry: "transient",
    });
  });

  test.each<{ readonly name: string; readonly act: (blobs: BlobStore, key: string) => Promise<unknown> }>([
    { name: "read", act: (store, key) => store.get(key) },
    { name: "overwrite", act: (store, key) => store.overwrite(key, Buffer.from("x")) },
    { name: "renewal", act: (store, key) => store.renew(key, new Date()) },
  ])(
    "a denied $name is not taken for a missing blob, and its error names the permissions to check",
    async ({ act }) => {
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
    },
  );

  test("a bucket that does not exist is not taken for a missing blob", async () => {
    const elsewhere = new S3BlobStore(emulated.aws.s3, "no-such-bucket");
    await expect(elsewhere.get("a")).rejects.toMatchObject({ name: "NoSuchBucket" });
  });
});
