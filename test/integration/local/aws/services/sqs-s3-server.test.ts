import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

const Bucket = "artifacts";
let stateDir: string;
const servers: AwsEmulators[] = [];

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "starling-s3-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
  await rm(stateDir, { recursive: true });
});

async function start(): Promise<S3Client> {
  const server = await startAwsEmulators({ seed: 1, stateDir });
  servers.push(server);
  return server.s3;
}

test("the next server has the same objects and metadata, and no deleted objects", async () => {
  const first = await start();
  await first.send(new CreateBucketCommand({ Bucket }));
  const bytes = Buffer.from([0, 10, 13, 255, 10]);
  await first.send(
    new PutObjectCommand({
      Bucket,
      Key: "a & b/ü +%.tgz",
      Body: bytes,
      ContentType: "application/gzip",
      Metadata: { digest: "sha256:1" },
    }),
  );
  for (const Key of ["replaced", "deleted", "batch & deleted", "kept"]) {
    await first.send(new PutObjectCommand({ Bucket, Key, Body: "old" }));
  }
  await Promise.all(["1", "2", "3"].map((Body) => first.send(new PutObjectCommand({ Bucket, Key: "replaced", Body }))));
  await first.send(new PutObjectCommand({ Bucket, Key: "replaced", Body: "new" }));
  await first.send(new DeleteObjectCommand({ Bucket, Key: "deleted" }));
  await first.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: "batch & deleted" }] } }));
  await first.send(new CopyObjectCommand({ Bucket, Key: "copied", CopySource: `${Bucket}/replaced` }));
  await servers.pop()?.stop();

  const second = await start();
  const { Contents = [] } = await second.send(new ListObjectsV2Command({ Bucket }));
  expect(Contents.map(({ Key }) => Key)).toEqual(["a & b/ü +%.tgz", "copied", "kept", "replaced"]);
  const restored = await second.send(new GetObjectCommand({ Bucket, Key: "a & b/ü +%.tgz" }));
  expect([...((await restored.Body?.transformToByteArray()) ?? [])]).toEqual([...bytes]);
  expect([restored.ContentType, restored.Metadata]).toEqual(["application/gzip", { digest: "sha256:1" }]);
  const copied = await second.send(new GetObjectCommand({ Bucket, Key: "copied" }));
  expect(await copied.Body?.transformToString()).toBe("new");
});
