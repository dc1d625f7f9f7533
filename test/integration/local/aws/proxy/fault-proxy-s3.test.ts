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
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { quiet, type S3Faults } from "#local/aws/wire/fault-options.ts";
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

test("only one of many simultaneous creations of an object succeeds", async () => {
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

test("an object of 20 MiB is stored and read unchanged", async () => {
  const Body = Buffer.alloc(20 * 1024 ** 2, "starling");
  await aws.s3.send(new PutObjectCommand({ Bucket, Key: "large", Body }));
  const large = await aws.s3.send(new GetObjectCommand({ Bucket, Key: "large" }));
  expect(Buffer.from((await large.Body?.transformToByteArray()) ?? []).equals(Body)).toBe(true);
});

test("list, head and delete requests pass the proxy", async () => {
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

test("the SDK repeats a call that is answered 503 SlowDown", async () => {
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

test("conditional writes may conflict, and other writes cannot", async () => {
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

test("a hundred writes and reads through a quiet proxy have no faults", async () => {
  const before = aws.proxy.injected();
  for (let count = 0; count < 100; count++) {
    await impatient.send(new PutObjectCommand({ Bucket, Key: `quiet/${count}`, Body: `${count}`, IfNoneMatch: "*" }));
    expect(await read(`quiet/${count}`)).toBe(`${count}`);
  }
  expect(aws.proxy.injected()).toEqual(before);
});

describe("a presigned URL", () => {
  const signed = (Key: string, expiresIn = 60) =>
    getSignedUrl(aws.s3, new GetObjectCommand({ Bucket, Key }), { expiresIn });
  beforeAll(async () => {
    for (const Key of ["plans/a b+c (1)", "plans/other"]) {
      await aws.s3.send(new PutObjectCommand({ Bucket, Key, Body: `body of ${Key}` }));
    }
  });

  test("a presigned URL allows the read that it is for, or one conditional write", async () => {
    const got = await fetch(await signed("plans/a b+c (1)"));
    expect([got.status, await got.text()]).toEqual([200, "body of plans/a b+c (1)"]);
    const command = new PutObjectCommand({ Bucket, Key: "plans/new", IfNoneMatch: "*" });
    const put = await getSignedUrl(aws.s3, command, { unhoistableHeaders: new Set(["if-none-match"]) });
    const send = (body: string) => fetch(put, { method: "PUT", body, headers: { "if-none-match": "*" } });
    expect([(await send("one")).status, (await send("two")).status]).toEqual([200, 412]);
    expect(await read("plans/new")).toBe("one");
  });

  test.each<[string, (url: string) => string, RequestInit?]>([
    ["another key", (url) => url.replace(/\/plans\/[^?]+/, "/plans/other")],
    ["a key behind two slashes", (url) => url.replace("/plans/", "//plans/")],
    ["another method", (url) => url, { method: "DELETE" }],
    ["a write", (url) => url, { method: "PUT", body: "x" }],
    ["a longer validity", (url) => url.replace("X-Amz-Expires=60", "X-Amz-Expires=600")],
    ["a further parameter", (url) => `${url}&response-content-type=text%2Fhtml`],
    ["a repeated parameter", (url) => `${url}&X-Amz-Expires=60`],
    ["an unsigned x-amz header", (url) => url, { headers: { "x-amz-copy-source": `${Bucket}/plans/other` } }],
    ["another access key", (url) => url.replace(/Credential=[^%]+/, "Credential=AKIAOTHER")],
    ["no signature", (url) => url.replace(/&X-Amz-Signature=[0-9a-f]+/, "")],
  ])("a presigned URL with %s is refused", async (_what, change, init) => {
    const answer = await fetch(change(await signed("plans/a b+c (1)")), init);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(await answer.text()).toContain("<Error>");
  });

  test("a presigned URL expires", async () => {
    const command = new GetObjectCommand({ Bucket, Key: "plans/other" });
    const past = new Date(Date.now() - 61_000);
    const ended = await fetch(await getSignedUrl(aws.s3, command, { expiresIn: 60, signingDate: past }));
    expect([ended.status, await ended.text()]).toEqual([403, expect.stringContaining("RequestTimeTooSkewed")]);
    const lasting = await fetch(await getSignedUrl(aws.s3, command, { expiresIn: 70, signingDate: past }));
    expect(lasting.status).toBe(200);
  });
});
