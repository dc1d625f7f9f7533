import { randomUUID } from "node:crypto";
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { quiet, type S3Faults } from "#local/aws/fault-options.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

const Bucket = "artifacts";
let aws: AwsEmulators;
let impatient: ReturnType<AwsEmulators["clients"]>["s3"];

beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 5 });
  impatient = aws.clients({ maxAttempts: 1 }).s3;
  await aws.s3.send(new CreateBucketCommand({ Bucket }));
});
afterAll(() => aws.stop());
afterEach(() => aws.proxy.setFaults(quiet));

function disturb(faults: Partial<S3Faults>): void {
  aws.proxy.setFaults({ ...quiet, s3: { ...quiet.s3, ...faults } });
}

async function read(Key: string): Promise<string | undefined> {
  const { Body } = await aws.s3.send(new GetObjectCommand({ Bucket, Key }));
  return Body?.transformToString();
}

test("If-None-Match: * writes an object once", async () => {
  const Key = randomUUID();
  await aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: "first", IfNoneMatch: "*" }));
  const second = aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: "second", IfNoneMatch: "*" }));
  await expect(second).rejects.toMatchObject({ name: "PreconditionFailed", $metadata: { httpStatusCode: 412 } });
  expect(await read(Key)).toBe("first");
});

test("of many creators at once exactly one succeeds", async () => {
  const Key = randomUUID();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: `${index}`, IfNoneMatch: "*" })),
    ),
  );
  const winners = outcomes.flatMap(({ status }, index) => (status === "fulfilled" ? [`${index}`] : []));
  expect(winners).toHaveLength(1);
  expect([await read(Key)]).toEqual(winners);
});

test("If-Match replaces only the object it names", async () => {
  const Key = randomUUID();
  const absent = aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: "x", IfMatch: '"0"' }));
  await expect(absent).rejects.toMatchObject({ name: "NoSuchKey" });
  const { ETag } = await aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: "one" }));
  await aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: "two", IfMatch: ETag }));
  const stale = aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: "three", IfMatch: ETag }));
  await expect(stale).rejects.toMatchObject({ name: "PreconditionFailed" });
  expect(await read(Key)).toBe("two");
});

test("an object of 20 MiB goes in and out unchanged", async () => {
  const Body = Buffer.alloc(20 * 1024 ** 2, "starling");
  await aws.s3.send(new PutObjectCommand({ Bucket, Key: "large", Body }));
  const large = await aws.s3.send(new GetObjectCommand({ Bucket, Key: "large" }));
  expect(Buffer.from((await large.Body?.transformToByteArray()) ?? []).equals(Body)).toBe(true);
});

test("list, head and delete pass through", async () => {
  const prefix = randomUUID();
  for (const name of ["a", "b", "c"]) {
    await aws.s3.send(
      new PutObjectCommand({ Bucket, Key: `${prefix}/${name}`, Body: name, Metadata: { digest: name } }),
    );
  }
  const head = await aws.s3.send(new HeadObjectCommand({ Bucket, Key: `${prefix}/b` }));
  expect([head.ContentLength, head.Metadata]).toEqual([1, { digest: "b" }]);
  await aws.s3.send(new DeleteObjectCommand({ Bucket, Key: `${prefix}/a` }));
  await aws.s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: `${prefix}/b` }] } }));
  const { Contents = [] } = await aws.s3.send(new ListObjectsV2Command({ Bucket, Prefix: prefix }));
  expect(Contents.map(({ Key }) => Key)).toEqual([`${prefix}/c`]);
  await expect(aws.s3.send(new HeadObjectCommand({ Bucket, Key: `${prefix}/a` }))).rejects.toMatchObject({
    $metadata: { httpStatusCode: 404 },
  });
});

test("503 SlowDown is repeated by the SDK", async () => {
  disturb({ slowDown: 1 });
  await expect(impatient.send(new PutObjectCommand({ Bucket, Key: "slow", Body: "x" }))).rejects.toMatchObject({
    name: "SlowDown",
    $metadata: { httpStatusCode: 503 },
  });
  aws.proxy.resetCalls();
  const remove = aws.proxy.intercept({ after: () => disturb({}) });
  await aws.s3.send(new PutObjectCommand({ Bucket, Key: "slow", Body: "x" }));
  remove();
  expect(aws.proxy.calls()).toEqual({ "s3:PutObject": 2 });
});

test("conditional writes may conflict, others do not", async () => {
  disturb({ conditionalConflict: 1 });
  const Key = randomUUID();
  const conditional = impatient.send(new PutObjectCommand({ Bucket, Key, Body: "x", IfNoneMatch: "*" }));
  await expect(conditional).rejects.toMatchObject({
    name: "ConditionalRequestConflict",
    $metadata: { httpStatusCode: 409 },
  });
  await impatient.send(new PutObjectCommand({ Bucket, Key, Body: "plain" }));
  expect(await read(Key)).toBe("plain");
});

test("quiet: a hundred writes and reads meet nothing", async () => {
  const before = aws.proxy.injected();
  for (let count = 0; count < 100; count++) {
    await impatient.send(new PutObjectCommand({ Bucket, Key: `quiet/${count}`, Body: `${count}`, IfNoneMatch: "*" }));
    expect(await read(`quiet/${count}`)).toBe(`${count}`);
  }
  expect(aws.proxy.injected()).toEqual(before);
});
