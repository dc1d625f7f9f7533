import { randomUUID } from "node:crypto";
import {
  CreateTableCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import {
  ChangeMessageVisibilityBatchCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

let aws: AwsEmulators;
let patient: ReturnType<AwsEmulators["clients"]>;
let impatient: ReturnType<AwsEmulators["clients"]>;

beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 1, capacity: "measured" });
  patient = aws.clients({ maxAttempts: 3 });
  impatient = aws.clients({ maxAttempts: 1 });
  await aws.dynamodb.send(
    new CreateTableCommand({
      TableName: "rows",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    }),
  );
  await aws.s3.send(new CreateBucketCommand({ Bucket: "artifacts" }));
});
afterAll(() => aws.stop());
beforeEach(() => aws.proxy.resetCalls());
afterEach(() => aws.proxy.setFaults(quiet));

const add = (pk: string) =>
  new UpdateItemCommand({
    TableName: "rows",
    Key: { pk: { S: pk } },
    UpdateExpression: "ADD n :one",
    ExpressionAttributeValues: { ":one": { N: "1" } },
  });

async function countOf(pk: string): Promise<string | undefined> {
  const { Item } = await aws.dynamodb.send(
    new GetItemCommand({ TableName: "rows", Key: { pk: { S: pk } }, ConsistentRead: true }),
  );
  return Item?.n?.N;
}

test("every call is counted by service and operation, and empty receives separately", async () => {
  const { QueueUrl } = await aws.sqs.send(new CreateQueueCommand({ QueueName: "counted" }));
  await aws.dynamodb.send(add("counted"));
  await aws.dynamodb.send(add("counted"));
  await aws.s3.send(new PutObjectCommand({ Bucket: "artifacts", Key: "a/b c+ä", Body: "x" }));
  const { Body } = await aws.s3.send(new GetObjectCommand({ Bucket: "artifacts", Key: "a/b c+ä" }));
  expect(await Body?.transformToString()).toBe("x");
  await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl }));
  await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }));
  const { Messages = [] } = await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl }));
  await aws.sqs.send(
    new DeleteMessageBatchCommand({
      QueueUrl,
      Entries: Messages.map(({ ReceiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle })),
    }),
  );
  expect(aws.proxy.calls()).toEqual({
    "dynamodb:UpdateItem": 2,
    "s3:GetObject": 1,
    "s3:PutObject": 1,
    "sqs:CreateQueue": 1,
    "sqs:DeleteMessageBatch": 1,
    "sqs:ReceiveMessage": 2,
    "sqs:ReceiveMessage:empty": 1,
    "sqs:SendMessage": 1,
  });
  aws.proxy.resetCalls();
  expect(aws.proxy.calls()).toEqual({});
  expect(aws.proxy.injected()).toEqual({});
});

test("consumed capacity is summed, reported for each write, and hidden from callers that did not ask for it", async () => {
  const writes: unknown[] = [];
  const stop = aws.proxy.intercept({ wrote: ({ operation }, units) => writes.push({ operation, ...units }) });
  const put = await aws.dynamodb.send(
    new PutItemCommand({ TableName: "rows", Item: { pk: { S: "big" }, data: { S: "x".repeat(3000) } } }),
  );
  const query = await aws.dynamodb.send(
    new QueryCommand({
      TableName: "rows",
      KeyConditionExpression: "pk = :pk",
      ExpressionAttributeValues: { ":pk": { S: "big" } },
      ReturnConsumedCapacity: "TOTAL",
    }),
  );
  expect(put).not.toHaveProperty("ConsumedCapacity");
  expect(query.ConsumedCapacity?.CapacityUnits).toBe(0.5);
  expect(aws.proxy.capacity()).toEqual({ readUnits: 0.5, writeUnits: 3 });
  stop();
  expect(writes).toEqual([{ operation: "PutItem", written: 3, writtenToIndexes: 0 }]);
});

test("queue URLs have the endpoint of the request, and lead back to it", async () => {
  const { QueueUrl } = await aws.sqs.send(new CreateQueueCommand({ QueueName: "addressed" }));
  expect(QueueUrl).toBe(`${aws.proxy.endpoints.sqs}/000000000000/addressed`);
  expect((await aws.sqs.send(new GetQueueUrlCommand({ QueueName: "addressed" }))).QueueUrl).toBe(QueueUrl);
  expect((await aws.sqs.send(new ListQueuesCommand({ QueueNamePrefix: "addr" }))).QueueUrls).toEqual([QueueUrl]);
});

test.each([
  ["before", "1"],
  ["after", "2"],
] as const)("the SDK repeats a call that fails %s its effect, and the effect counts", async (when, expected) => {
  const pk = randomUUID();
  const failure = aws.proxy.failCall(2, when, { where: ({ operation }) => operation === "UpdateItem" });
  await patient.dynamodb.send(add("other"));
  expect(failure.fired()).toBe(false);
  await patient.dynamodb.send(add(pk));
  expect(failure.fired()).toBe(true);
  expect(await countOf(pk)).toBe(expected);
  expect(aws.proxy.calls()["dynamodb:UpdateItem"]).toBe(3);
});

test.each([
  ["before", undefined],
  ["after", "1"],
] as const)("the caller gets an error if every attempt of a call fails %s its effect", async (when, expected) => {
  const pk = randomUUID();
  const failure = aws.proxy.failCall(1, when, { everyAttempt: true });
  await expect(patient.dynamodb.send(add(pk))).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(failure.fired()).toBe(true);
  expect(aws.proxy.calls()).toEqual({ "dynamodb:UpdateItem": 3 });
  expect(await countOf(pk)).toBe(expected);
  await patient.dynamodb.send(add(pk));
});

test("a planned failure that is cancelled does not happen", async () => {
  const failure = aws.proxy.failCall(1, "before");
  failure.cancel();
  await impatient.dynamodb.send(add("cancelled"));
  expect(failure.fired()).toBe(false);
});

test("an interceptor sees the parsed call, delays it, and lets it continue", async () => {
  const pk = randomUUID();
  const reached = Promise.withResolvers<unknown>();
  const gate = Promise.withResolvers<void>();
  const seen: string[] = [];
  const remove = aws.proxy.intercept({
    before: async ({ service, operation, request }) => {
      seen.push(`before ${service}:${operation}`);
      if (operation !== "UpdateItem") return;
      reached.resolve(request.Key);
      await gate.promise;
    },
    after: ({ service, operation }, { status }) => seen.push(`after ${service}:${operation} ${status}`),
  });
  const update = impatient.dynamodb.send(add(pk));
  expect(await reached.promise).toEqual({ pk: { S: pk } });
  expect(await countOf(pk)).toBeUndefined();
  gate.resolve();
  await update;
  remove();
  expect(await countOf(pk)).toBe("1");
  expect(seen).toEqual([
    "before dynamodb:UpdateItem",
    "before dynamodb:GetItem",
    "after dynamodb:GetItem 200",
    "after dynamodb:UpdateItem 200",
  ]);
});

test("an interceptor may break the connection", async () => {
  const remove = aws.proxy.intercept({ before: () => "reset" });
  await expect(impatient.dynamodb.send(add("reset"))).rejects.toMatchObject({ code: "ECONNRESET" });
  remove();
  await impatient.dynamodb.send(add("reset"));
});

const connectionFaults: [string, "resetBefore" | "resetAfter", string | undefined][] = [
  ["before the effect", "resetBefore", undefined],
  ["after the effect", "resetAfter", "1"],
];
test.each(connectionFaults)("every service can have random resets %s", async (_, fault, expected) => {
  const pk = randomUUID();
  const { QueueUrl } = await aws.sqs.send(new CreateQueueCommand({ QueueName: pk }));
  aws.proxy.setFaults({
    dynamodb: { ...quiet.dynamodb, [fault]: 1 },
    sqs: { ...quiet.sqs, [fault]: 1 },
    s3: { ...quiet.s3, [fault]: 1 },
    lambda: { ...quiet.lambda, [fault]: 1 },
  });
  const reset = { code: "ECONNRESET" };
  await expect(impatient.dynamodb.send(add(pk))).rejects.toMatchObject(reset);
  await expect(impatient.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }))).rejects.toMatchObject(reset);
  const put = impatient.s3.send(new PutObjectCommand({ Bucket: "artifacts", Key: pk, Body: "x" }));
  await expect(put).rejects.toMatchObject(reset);
  aws.proxy.setFaults(quiet);
  expect(await countOf(pk)).toBe(expected);
  const { Messages = [] } = await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl }));
  expect(Messages).toHaveLength(expected === undefined ? 0 : 1);
  expect(aws.proxy.injected()).toMatchObject({ [`dynamodb:${fault}`]: 1, [`sqs:${fault}`]: 1, [`s3:${fault}`]: 1 });
});

test("messages of a broken receive are visible again at once", async () => {
  const { QueueUrl } = await aws.sqs.send(new CreateQueueCommand({ QueueName: "taken" }));
  await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }));
  aws.proxy.failCall(1, "after");
  await expect(impatient.sqs.send(new ReceiveMessageCommand({ QueueUrl }))).rejects.toMatchObject({
    code: "ECONNRESET",
  });
  const { Messages = [] } = await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 5 }));
  expect(Messages.map(({ Body }) => Body)).toEqual(["m"]);
});

test("the message of an abandoned long poll goes to the next poll, or returns to the queue", async () => {
  const { QueueUrl } = await aws.sqs.send(new CreateQueueCommand({ QueueName: "left" }));
  const receive = new ReceiveMessageCommand({
    QueueUrl,
    WaitTimeSeconds: 20,
    MessageSystemAttributeNames: ["ApproximateReceiveCount"],
  });
  const left = () => aws.proxy.calls()["sqs:ReceiveMessage:left"] ?? 0;
  async function leavePoll(): Promise<void> {
    const before = left();
    const abort = new AbortController();
    const begun = Promise.withResolvers<void>();
    const remove = aws.proxy.intercept({
      before: ({ operation }) => operation === "ReceiveMessage" && begun.resolve(),
    });
    const poll = aws.sqs.send(receive, { abortSignal: abort.signal });
    await begun.promise;
    remove();
    abort.abort();
    await expect(poll).rejects.toThrow("abort");
    await expect.poll(left).toBe(before + 1);
  }

  await leavePoll();
  const next = aws.sqs.send(receive);
  await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "first" }));
  const first = (await next).Messages?.[0];
  expect([first?.Body, first?.Attributes?.ApproximateReceiveCount]).toEqual(["first", "1"]);

  await leavePoll();
  await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "second" }));
  await expect
    .poll(async () => (await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl }))).Messages?.[0]?.Body, {
      timeout: 5000,
    })
    .toBe("second");
});

test("hidden messages return earlier if time runs faster", async () => {
  const fast = await startAwsEmulators({ seed: 1, rate: 50 });
  try {
    const { QueueUrl = "" } = await fast.sqs.send(new CreateQueueCommand({ QueueName: "hurried" }));
    await fast.sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { VisibilityTimeout: "3600" } }));
    await fast.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }));
    const receive = new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20 });
    const { Messages: [first] = [] } = await fast.sqs.send(receive);
    const hidden = { Id: "0", ReceiptHandle: first?.ReceiptHandle ?? "", VisibilityTimeout: 50 };
    const said = await fast.sqs.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: [hidden] }));
    expect(said.Successful).toEqual([{ Id: "0" }]);
    const { Messages: [again] = [] } = await fast.sqs.send(receive);
    expect(again?.MessageId).toBe(first?.MessageId);
  } finally {
    await fast.stop();
  }
});
