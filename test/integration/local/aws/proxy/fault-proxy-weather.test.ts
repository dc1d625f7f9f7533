/** Faults after which the SDK does not repeat the call itself, or not at once. */
import { CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { CreateQueueCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import { renewedCredentials } from "#local/aws/iam/renewed-credentials.ts";
import { type FaultOptions, quiet } from "#local/aws/wire/fault-options.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

const principals = new Principals();
const role = "arn:aws:sts::000000000000:assumed-role/apply/apply";
const TableName = "weather";
const Bucket = "weather";
let aws: AwsEmulators;
let QueueUrl: string | undefined;

beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 7, principals });
  await aws.dynamodb.send(
    new CreateTableCommand({
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    }),
  );
  await aws.s3.send(new CreateBucketCommand({ Bucket }));
  QueueUrl = (await aws.sqs.send(new CreateQueueCommand({ QueueName: "q" }))).QueueUrl;
});

afterEach(() => aws.proxy.setFaults(quiet));
afterAll(() => aws.stop());

function having(faults: { readonly [S in keyof FaultOptions]?: Partial<FaultOptions[S]> }): void {
  aws.proxy.setFaults({
    dynamodb: { ...quiet.dynamodb, ...faults.dynamodb },
    sqs: { ...quiet.sqs, ...faults.sqs },
    s3: { ...quiet.s3, ...faults.s3 },
    lambda: { ...quiet.lambda, ...faults.lambda },
  });
}

const put = (pk: string) => new PutItemCommand({ TableName, Item: { pk: { S: pk } } });
const get = (pk: string) => new GetItemCommand({ TableName, Key: { pk: { S: pk } }, ConsistentRead: true });

test("a create is answered 412 if a rival has just created the same object", async () => {
  having({ s3: { preconditionFailed: 1 } });
  const creation = aws.s3.send(new PutObjectCommand({ Bucket, Key: "rival", Body: "text", IfNoneMatch: "*" }));
  await expect(creation).rejects.toMatchObject({ name: "PreconditionFailed", $metadata: { httpStatusCode: 412 } });
  const found = await aws.s3.send(new GetObjectCommand({ Bucket, Key: "rival" }));
  expect(await found.Body?.transformToString()).toBe("text");
  expect(aws.proxy.injected()["s3:preconditionFailed"]).toBe(1);
});

test("a conditional overwrite is answered 412 without a change to the object, and unconditional writes succeed", async () => {
  const { ETag = "" } = await aws.s3.send(new PutObjectCommand({ Bucket, Key: "own", Body: "first" }));
  having({ s3: { preconditionFailed: 1 } });
  const change = aws.s3.send(new PutObjectCommand({ Bucket, Key: "own", Body: "second", IfMatch: ETag }));
  await expect(change).rejects.toMatchObject({ name: "PreconditionFailed" });
  await aws.s3.send(new PutObjectCommand({ Bucket, Key: "other", Body: "x" }));
  having({});
  const found = await aws.s3.send(new GetObjectCommand({ Bucket, Key: "own" }));
  expect(await found.Body?.transformToString()).toBe("first");
});

test.each(["dynamodb", "sqs", "s3"] as const)("a failing %s answers 5xx", async (service) => {
  const once = aws.clients({ maxAttempts: 1 });
  having({ [service]: { serverError: 1 } });
  const sends = {
    dynamodb: () => once.dynamodb.send(put("failing")),
    sqs: () => once.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "failing" })),
    s3: () => once.s3.send(new PutObjectCommand({ Bucket, Key: "failing", Body: "x" })),
  };
  const error = await sends[service]().catch((caught: unknown) => caught);
  expect(error).toMatchObject({ $metadata: { httpStatusCode: service === "sqs" ? 503 : 500 } });
});

test.each(["before", "after"] as const)("a chosen call can be answered 5xx %s its effect", async (when) => {
  const once = aws.clients({ maxAttempts: 1 });
  aws.proxy.failCall(1, when, { as: "serverError", where: ({ operation }) => operation === "PutItem" });
  await expect(once.dynamodb.send(put(`chosen ${when}`))).rejects.toMatchObject({ name: "InternalServerError" });
  expect((await aws.dynamodb.send(get(`chosen ${when}`))).Item !== undefined).toBe(when === "after");
});

test("the SDK repeats a call that is answered 5xx", async () => {
  aws.proxy.failCall(1, "before", { as: "serverError" });
  await aws.dynamodb.send(put("repeated"));
  expect((await aws.dynamodb.send(get("repeated"))).Item).toBeDefined();
});

test("every service refuses expired credentials until the caller has new ones", async () => {
  const options = { region: "us-east-1", credentials: renewedCredentials(principals, role) };
  const dynamodb = new DynamoDBClient({ ...options, endpoint: aws.proxy.endpoints.dynamodb });
  const sqs = new SQSClient({ ...options, endpoint: aws.proxy.endpoints.sqs });
  const s3 = new S3Client({ ...options, endpoint: aws.proxy.endpoints.s3, forcePathStyle: true });
  having({ dynamodb: { expiredCredentials: 1 } });
  await expect(dynamodb.send(put("late"))).rejects.toMatchObject({ name: "ExpiredTokenException" });
  having({});
  await dynamodb.send(put("late"));

  const stale = { ...(await options.credentials()), expiration: new Date(Date.now() + 3_600_000) };
  principals.expire(stale.accessKeyId);
  const of = (endpoint: string) => ({ region: "us-east-1", credentials: stale, endpoint });
  await expect(new DynamoDBClient(of(aws.proxy.endpoints.dynamodb)).send(get("late"))).rejects.toMatchObject({
    name: "ExpiredTokenException",
  });
  const send = new SendMessageCommand({ QueueUrl, MessageBody: "late" });
  await expect(new SQSClient(of(aws.proxy.endpoints.sqs)).send(send)).rejects.toMatchObject({
    name: "ExpiredTokenException",
  });
  const read = new GetObjectCommand({ Bucket, Key: "other" });
  const staleS3 = new S3Client({ ...of(aws.proxy.endpoints.s3), forcePathStyle: true });
  await expect(staleS3.send(read)).rejects.toMatchObject({ name: "ExpiredToken" });
  await sqs.send(send);
  await s3.send(read);
});

test("a blob is stored and read even if the session ends in between", async () => {
  const renewed = renewedCredentials(principals, role);
  let session: "ended" | "lives" = "ended";
  const credentials = async () => {
    const given = await renewed();
    if (session === "ended") principals.expire(given.accessKeyId);
    return given;
  };
  const { s3: endpoint } = aws.proxy.endpoints;
  const client = () => new S3Client({ region: "us-east-1", credentials, endpoint, forcePathStyle: true });
  const sent: string[] = [];
  const stop = aws.proxy.intercept({
    before(call) {
      sent.push(call.operation);
      session = "lives";
    },
  });
  await new S3BlobStore(client(), Bucket).overwrite("through-the-end", Buffer.from("text"));
  session = "ended";
  await new S3BlobStore(client(), Bucket).renew("through-the-end", new Date(Date.now() + 60_000));
  session = "ended";
  const read = await new S3BlobStore(client(), Bucket).get("through-the-end");
  expect(Buffer.from(read).toString()).toBe("text");
  const again = ["HeadObject", "HeadObject", "CopyObject"];
  expect(sent).toEqual(["PutObject", "PutObject", ...again, "GetObject", "GetObject"]);
  stop();
});

test("permanent credentials do not expire", async () => {
  having({ dynamodb: { expiredCredentials: 1 } });
  await aws.dynamodb.send(put("lasting"));
});

test("a silent region answers no call, or accepts messages and delivers none, until it recovers", async () => {
  const seen = new Set<string>();
  for (let round = 0; round < 40 && seen.size < 2; round++) {
    const before = { ...aws.proxy.injected() };
    const once = aws.clients({ maxAttempts: 1 });
    having({ sqs: { silence: 1, maxSilenceMs: 200 } });
    const sending = once.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: `round ${round}` })).then(
      () => "accepted",
      () => "broken",
    );
    const outcome = await sending;
    having({});
    const after = aws.proxy.injected();
    const kind = after["sqs:silence:mute"] !== before["sqs:silence:mute"] ? "mute" : "deaf";
    expect(outcome).toBe(kind === "mute" ? "broken" : "accepted");
    seen.add(kind);
    const poll = await aws.sqs.send(
      new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 1, MaxNumberOfMessages: 10 }),
    );
    const received = (poll.Messages ?? []).some(({ Body }) => Body === `round ${round}`);
    expect(received).toBe(kind === "deaf");
  }
  expect([...seen].sort()).toEqual(["deaf", "mute"]);
});
