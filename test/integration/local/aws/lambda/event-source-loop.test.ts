import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  type QueueAttributeName,
  SendMessageBatchCommand,
  SendMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { accountPool } from "#local/aws/lambda/account-pool.ts";
import {
  type EventSourceLoop,
  type EventSourceOptions,
  type InvocationReport,
  startEventSource,
} from "#local/aws/lambda/event-source-loop.ts";
import type { LambdaContext } from "#local/aws/lambda/lambda-context.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import type { SqsLambdaEvent } from "#local/aws/lambda/sqs-event.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

let aws: AwsEmulators;
let sqs: SQSClient;
const loops: EventSourceLoop[] = [];

beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 1 });
  sqs = aws.sqs;
});

afterAll(() => aws.stop());

afterEach(async () => {
  for (const loop of loops.splice(0)) {
    loop.kill();
    await loop.stop();
  }
});

async function createQueue(
  attributes: Partial<Record<QueueAttributeName, string>> = {},
  suffix: "" | ".fifo" = "",
): Promise<string> {
  const { QueueUrl } = await sqs.send(
    new CreateQueueCommand({ QueueName: `q-${randomUUID()}${suffix}`, Attributes: attributes }),
  );
  return QueueUrl ?? "";
}

async function queueArn(queueUrl: string): Promise<string> {
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ["QueueArn"] }),
  );
  return Attributes?.QueueArn ?? "";
}

async function remaining(queueUrl: string): Promise<number> {
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: queueUrl,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    }),
  );
  return Number(Attributes.ApproximateNumberOfMessages) + Number(Attributes.ApproximateNumberOfMessagesNotVisible);
}

async function send(queueUrl: string, bodies: readonly string[]): Promise<void> {
  for (let first = 0; first < bodies.length; first += 10) {
    const Entries = bodies.slice(first, first + 10).map((body, index) => ({ Id: `${index}`, MessageBody: body }));
    await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
  }
}

interface RunOptions extends Partial<EventSourceOptions> {
  readonly queueUrl: string;
  readonly functionName?: string;
  readonly timeoutSeconds?: number;
}

async function run(
  handler: (event: SqsLambdaEvent, context: LambdaContext) => unknown,
  { functionName = "worker", timeoutSeconds = 1, ...options }: RunOptions,
): Promise<{ readonly loop: EventSourceLoop; readonly reports: InvocationReport[] }> {
  const reports: InvocationReport[] = [];
  const loop = await startEventSource({
    sqs,
    lambda: lambdaFunction({
      functionName,
      timeoutSeconds,
      newSandbox: () => sharedSandbox((event, context) => handler(event as SqsLambdaEvent, context)),
    }),
    onInvocation: (report) => reports.push(report),
    ...options,
  });
  loops.push(loop);
  return { loop, reports };
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Not within 15 s: ${what}`);
    await sleep(10);
  }
}

test("the function gets the event and the context of Lambda", async () => {
  const queueUrl = await createQueue();
  let seen: { event: SqsLambdaEvent; context: LambdaContext; remainingMs: number } | undefined;
  await run(
    (event, context) => {
      seen = { event, context, remainingMs: context.getRemainingTimeInMillis() };
    },
    { queueUrl, functionName: "apply", timeoutSeconds: 20 },
  );
  await sqs.send(
    new SendMessageCommand({
      QueueUrl: queueUrl,
      MessageBody: '{"cluster":"a"}',
      MessageAttributes: {
        hops: { DataType: "Number", StringValue: "3" },
        raw: { DataType: "Binary", BinaryValue: Buffer.from([1, 2]) },
      },
    }),
  );
  await until("an invocation", () => seen !== undefined);
  expect(seen?.event).toEqual({
    Records: [
      {
        messageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        receiptHandle: expect.any(String),
        body: '{"cluster":"a"}',
        attributes: expect.objectContaining({
          ApproximateReceiveCount: "1",
          SentTimestamp: expect.stringMatching(/^\d{13}$/),
          ApproximateFirstReceiveTimestamp: expect.stringMatching(/^\d{13}$/),
          SenderId: expect.any(String),
        }),
        messageAttributes: {
          hops: { stringValue: "3", stringListValues: [], binaryListValues: [], dataType: "Number" },
          raw: { binaryValue: "AQI=", stringListValues: [], binaryListValues: [], dataType: "Binary" },
        },
        md5OfBody: expect.stringMatching(/^[0-9a-f]{32}$/),
        eventSource: "aws:sqs",
        eventSourceARN: await queueArn(queueUrl),
        awsRegion: "us-east-1",
      },
    ],
  });
  expect(seen?.context).toMatchObject({
    functionName: "apply",
    invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:apply",
  });
  expect(seen?.remainingMs).toBeGreaterThan(15_000);
  expect(seen?.remainingMs).toBeLessThanOrEqual(20_000);
  await until("an empty queue", async () => (await remaining(queueUrl)) === 0);
});

test("only the listed failures return to the queue, after the visibility timeout", async () => {
  const queueUrl = await createQueue({ VisibilityTimeout: "1" });
  const attempts = new Map<string, number[]>();
  const { reports } = await run(
    ({ Records }) => {
      for (const { body, attributes } of Records) {
        attempts.set(body, [...(attempts.get(body) ?? []), Number(attributes.ApproximateReceiveCount)]);
      }
      const failed = Records.filter(
        ({ body, attributes }) => body === "b" && attributes.ApproximateReceiveCount === "1",
      );
      return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) };
    },
    { queueUrl },
  );
  await send(queueUrl, ["a", "b", "c"]);
  await until("an empty queue", async () => attempts.size === 3 && (await remaining(queueUrl)) === 0);
  expect(Object.fromEntries(attempts)).toEqual({ a: [1], b: [1, 2], c: [1] });
  expect(reports.flatMap(({ failedMessageIds }) => failedMessageIds)).toHaveLength(1);
});

const wholeBatch: [string, unknown][] = [
  ["an unknown id", { batchItemFailures: [{ itemIdentifier: "nobody" }] }],
  ["an empty id", { batchItemFailures: [{ itemIdentifier: "" }] }],
  ["an entry without an id", { batchItemFailures: [{}] }],
  ["a null entry", { batchItemFailures: [null] }],
  ["something that is not a list", { batchItemFailures: "all" }],
];
test.each(wholeBatch)("%s in batchItemFailures fails the whole batch", async (_, result) => {
  const queueUrl = await createQueue();
  const { reports } = await run(() => result, { queueUrl });
  await send(queueUrl, ["a", "b"]);
  await until("two messages reported", () => reports.flatMap(({ messageIds }) => messageIds).length === 2);
  expect(reports.flatMap(({ failedMessageIds }) => failedMessageIds)).toHaveLength(2);
  expect(await remaining(queueUrl)).toBe(2);
});

test.each([
  ["null", null],
  ["undefined", undefined],
  ["an empty list", { batchItemFailures: [] }],
  ["null failures", { batchItemFailures: null }],
])("the result %s is a success of the whole batch", async (_, result) => {
  const queueUrl = await createQueue();
  const { reports } = await run(() => result, { queueUrl });
  await send(queueUrl, ["a", "b"]);
  await until("two messages reported", () => reports.flatMap(({ messageIds }) => messageIds).length === 2);
  expect(await remaining(queueUrl)).toBe(0);
});

test("an error returns the whole batch until the dead-letter queue takes it", async () => {
  const deadLetters = await createQueue();
  const queueUrl = await createQueue({
    VisibilityTimeout: "1",
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: await queueArn(deadLetters), maxReceiveCount: 2 }),
  });
  const { reports } = await run(
    async () => {
      throw new Error("boom");
    },
    { queueUrl },
  );
  await send(queueUrl, ["a"]);
  await until("a dead letter", async () => (await remaining(deadLetters)) === 1);
  expect(reports.map(({ outcome, error }) => [outcome, String(error)])).toEqual([
    ["failed", "Error: boom"],
    ["failed", "Error: boom"],
  ]);
  expect(await remaining(queueUrl)).toBe(0);
});

test("the maximum concurrency is reached and never exceeded", async () => {
  const queueUrl = await createQueue();
  let now = 0;
  let most = 0;
  let done = 0;
  await run(
    async ({ Records }) => {
      now += 1;
      most = Math.max(most, now);
      // No invocation continues before the maximum number runs.
      while (most < 3) await sleep(1);
      await sleep(15);
      now -= 1;
      done += Records.length;
    },
    { queueUrl, batchSize: 1, maximumConcurrency: 3 },
  );
  await send(
    queueUrl,
    Array.from({ length: 40 }, (_, index) => `${index}`),
  );
  await until("40 messages", () => done === 40);
  expect(most).toBe(3);
});

test("a function that overruns its timeout is abandoned and its result ignored", async () => {
  const queueUrl = await createQueue({ VisibilityTimeout: "2" });
  const wokeUp = Promise.withResolvers<void>();
  const receives: string[] = [];
  const { reports } = await run(
    async ({ Records }) => {
      receives.push(Records[0]?.attributes.ApproximateReceiveCount ?? "");
      if (receives.length > 1) return;
      await sleep(1500);
      wokeUp.resolve();
    },
    { queueUrl, timeoutSeconds: 1 },
  );
  await send(queueUrl, ["a"]);
  await wokeUp.promise;
  expect(reports.map(({ outcome }) => outcome)).toEqual(["timeout"]);
  await until("a second delivery that succeeds", async () => (await remaining(queueUrl)) === 0);
  expect(receives).toEqual(["1", "2"]);
});

test("killing the sandboxes returns their messages and frees their slots", async () => {
  const queueUrl = await createQueue({ VisibilityTimeout: "1" });
  const hang = Promise.withResolvers<void>();
  const receives: string[] = [];
  const { loop, reports } = await run(
    async ({ Records }) => {
      receives.push(Records[0]?.attributes.ApproximateReceiveCount ?? "");
      if (receives.length === 1) await hang.promise;
    },
    { queueUrl, maximumConcurrency: 1 },
  );
  await send(queueUrl, ["a"]);
  await until("an invocation", () => receives.length === 1);
  loop.kill();
  await until("the invocation to be dropped", () => loop.running() === 0);
  hang.resolve();
  await until("an empty queue", async () => (await remaining(queueUrl)) === 0);
  expect(receives).toEqual(["1", "2"]);
  expect(reports.map(({ outcome }) => outcome)).toEqual(["killed", "returned"]);
});

test("a FIFO queue keeps the order of each group through failures", async () => {
  const queueUrl = await createQueue({ FifoQueue: "true", VisibilityTimeout: "1" }, ".fifo");
  const order: Record<string, string[]> = {};
  await run(
    ({ Records }) => {
      const failed: { itemIdentifier: string }[] = [];
      for (const { body, messageId, attributes } of Records) {
        const group = attributes.MessageGroupId ?? "";
        if (body === `${group}2` && attributes.ApproximateReceiveCount === "1") {
          failed.push({ itemIdentifier: messageId });
          continue;
        }
        order[group] = [...(order[group] ?? []), body];
      }
      return { batchItemFailures: failed };
    },
    { queueUrl },
  );
  for (const number of [1, 2, 3, 4]) {
    for (const group of ["x", "y"]) {
      await sqs.send(
        new SendMessageCommand({
          QueueUrl: queueUrl,
          MessageBody: `${group}${number}`,
          MessageGroupId: group,
          MessageDeduplicationId: randomUUID(),
        }),
      );
    }
  }
  await until("an empty queue", async () => (await remaining(queueUrl)) === 0);
  expect(order).toEqual({ x: ["x1", "x2", "x3", "x4"], y: ["y1", "y2", "y3", "y4"] });
});

test("a batching window collects messages that were sent one by one", async () => {
  const queueUrl = await createQueue();
  const batches: number[] = [];
  await run(({ Records }) => void batches.push(Records.length), { queueUrl, batchingWindowSeconds: 1 });
  for (const body of ["a", "b", "c"]) await send(queueUrl, [body]);
  await until("an invocation", () => batches.length > 0);
  expect(batches).toEqual([3]);
});

test("pause stops the receives, resume starts them again, and stop waits for running invocations", async () => {
  const queueUrl = await createQueue();
  const bodies: string[] = [];
  const { loop } = await run(
    async ({ Records }) => {
      await sleep(50);
      bodies.push(...Records.map(({ body }) => body));
    },
    { queueUrl, batchSize: 1 },
  );
  await loop.pause();
  await loop.pause();
  loop.resume();
  loop.resume();
  await send(queueUrl, ["a"]);
  await until("an invocation", () => loop.running() === 1);
  await loop.stop();
  expect(bodies).toEqual(["a"]);
  await send(queueUrl, ["b"]);
  expect(loop.running()).toBe(0);
  expect(await remaining(queueUrl)).toBe(1);
});

test("a function timeout above the visibility timeout is refused, as Lambda refuses it", async () => {
  const queueUrl = await createQueue({ VisibilityTimeout: "30" });
  await expect(run(() => undefined, { queueUrl, timeoutSeconds: 31 })).rejects.toThrow(
    /timeout of worker, 31 s, exceeds the visibility timeout .*30 s/,
  );
});

test("a batching window on a FIFO queue is refused", async () => {
  const queueUrl = await createQueue({ FifoQueue: "true" }, ".fifo");
  await expect(run(() => undefined, { queueUrl, batchingWindowSeconds: 1 })).rejects.toThrow(
    "A FIFO queue has no batching window",
  );
});

test("a message waits while the account has no free concurrency, and is received once", async () => {
  const account = accountPool(1);
  const gate = Promise.withResolvers<void>();
  const other = lambdaFunction({
    functionName: "other",
    timeoutSeconds: 60,
    newSandbox: () => sharedSandbox(() => gate.promise),
    account,
  });
  const busy = other.invoke({ event: {}, killed: new AbortController().signal });
  const tries = Promise.withResolvers<void>();
  const received: string[] = [];
  const lambda = lambdaFunction({
    functionName: "worker",
    timeoutSeconds: 60,
    newSandbox: () =>
      sharedSandbox(({ Records }: SqsLambdaEvent) => {
        for (const { attributes } of Records) received.push(attributes.ApproximateReceiveCount ?? "");
      }),
    account: {
      enter() {
        const entered = account.enter();
        if (!entered) tries.resolve();
        return entered;
      },
      leave: account.leave,
    },
  });
  const queueUrl = await createQueue({ VisibilityTimeout: "60" });
  loops.push(await startEventSource({ lambda, sqs, queueUrl }));
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: "one" }));
  await tries.promise;
  expect(received).toEqual([]);
  gate.resolve();
  await busy;
  await expect.poll(() => received, { timeout: 20_000 }).toEqual(["1"]);
});
