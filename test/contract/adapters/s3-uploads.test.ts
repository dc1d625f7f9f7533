import { afterAll, beforeAll, expect, test } from "vitest";
import { createBucket } from "#local/aws/services/create-resources.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { S3Uploads } from "#shared/adapters/aws/s3-uploads.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";

/** Uploads through the front that verifies signatures, as those of CI. */
let emulated: EmulatedClients;
let uploads: S3Uploads;

beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 1, faults: quiet });
  await createBucket(emulated.aws.s3, "blobs");
  uploads = new S3Uploads(emulated.aws.s3, "blobs");
});
afterAll(() => emulated.stop());

test("a place takes the announced bytes, and tells their size", async () => {
  const url = await uploads.place("uploads/shop/app/1", 5);
  expect(await uploads.size("uploads/shop/app/1")).toBeUndefined();
  await new HttpTransfer().upload(url, Buffer.from("12345"));
  expect(await uploads.size("uploads/shop/app/1")).toBe(5);
});

test("a place takes no other number of bytes, and no second upload", async () => {
  const url = await uploads.place("uploads/shop/app/2", 5);
  await expect(new HttpTransfer().upload(url, Buffer.from("123456"))).rejects.toMatchObject({ code: "TransferFailed" });
  expect(await uploads.size("uploads/shop/app/2")).toBeUndefined();
  await new HttpTransfer().upload(url, Buffer.from("12345"));
  const answer = await fetch(url, { method: "PUT", body: "54321", headers: { "if-none-match": "*" } });
  expect(answer.status).toBe(412);
});
