import { randomUUID } from "node:crypto";
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { quiet, type SqsFaults } from "#local/aws/wire/fault-options.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

let aws: AwsEmulators;
beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 42 });
});
afterAll(() => aws.stop());
afterEach(() => aws.proxy.setFaults(quiet));

function disturb(faults: Partial<SqsFaults>): void {
  aws.proxy.setFaults({ ...quiet, sqs: { ...quiet.sqs, ...faults } });
}

async function createQueue(kind: "standard" | "fifo"): Promise<string> {
  const { QueueUrl } = await aws.sqs.send(
    new CreateQueueCommand(
      kind === "fifo"
        ? { QueueName: `${randomUUID()}.fifo`, Attributes: { FifoQueue: "true" } }
        : { QueueName: randomUUID() },
    ),
  );
  return QueueUrl ?? "";
}

async function sendAll(queueUrl: string, bodies: readonly string[]): Promise<number> {
  const fifo = queueUrl.endsWith(".fifo");
  const { Successful = [] } = await aws.sqs.send(
    new SendMessageBatchCommand({
      QueueUrl: queueUrl,
      Entries: bodies.map((body, index) => ({
        Id: `${index}`,
        MessageBody: body,
        ...(fifo ? { MessageGroupId: "g", MessageDeduplicationId: randomUUID() } : {}),
      })),
    }),
  );
  return Successful.length;
}

async function sendOne(queueUrl: string, body: string): Promise<void> {
  const fifo = queueUrl.endsWith(".fifo");
  await aws.sqs.send(
    new SendMessageCommand({
      QueueUrl: queueUrl,
      MessageBody: body,
      ...(fifo ? { MessageGroupId: "g", MessageDeduplicationId: randomUUID() } : {}),
    }),
  );
}

/** Receives bodies in order, until the expected number has come and then none for a second. */
async function drain(queueUrl: string, expected: number): Promise<string[]> {
  const bodies: string[] = [];
  const deadline = Date.now() + 15_000;
  while (Date.now() < deadline) {
    const { Messages = [] } = await aws.sqs.send(
      new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
    );
    for (const { Body = "", ReceiptHandle } of Messages) {
      bodies.push(Body);
      await aws.sqs.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle }));
    }
    if (Messages.length === 0 && bodies.length >= expected) break;
  }
  return bodies;
}

const ten = Array.from({ length: 10 }, (_, index) => `${index}`);

test.each(["standard", "fifo"] as const)("a %s queue without faults delivers once and in order", async (kind) => {
  const queueUrl = await createQueue(kind);
  expect(await sendAll(queueUrl, ten)).toBe(10);
  await sendOne(queueUrl, "last");
  expect(await drain(queueUrl, 11)).toEqual([...ten, "last"]);
});

test.each(["standard", "fifo"] as const)("lost messages of a %s queue are accepted and never arrive", async (kind) => {
  const queueUrl = await createQueue(kind);
  disturb({ lose: 0.5 });
  const before = aws.proxy.injected()["sqs:lose"] ?? 0;
  expect(await sendAll(queueUrl, ten)).toBe(10);
  const lost = (aws.proxy.injected()["sqs:lose"] ?? 0) - before;
  disturb({ lose: 1 });
  await sendOne(queueUrl, "single");
  expect((aws.proxy.injected()["sqs:lose"] ?? 0) - before).toBe(lost + 1);
  expect(lost).toBeGreaterThan(0);
  expect(lost).toBeLessThan(10);
  const received = await drain(queueUrl, 10 - lost);
  expect(received).toHaveLength(10 - lost);
  expect(ten).toEqual(expect.arrayContaining(received));
});

test.each(["standard", "fifo"] as const)("duplicated messages of a %s queue arrive twice", async (kind) => {
  const queueUrl = await createQueue(kind);
  disturb({ duplicate: 1 });
  await sendOne(queueUrl, "a");
  expect(await sendAll(queueUrl, ["b", "c"])).toBe(2);
  expect((await drain(queueUrl, 6)).sort()).toEqual(["a", "a", "b", "b", "c", "c"]);
});

test("later messages overtake a delayed one on a standard queue", async () => {
  const queueUrl = await createQueue("standard");
  disturb({ delay: 1, maxDelaySeconds: 1 });
  await sendOne(queueUrl, "late");
  disturb({});
  await sendOne(queueUrl, "early");
  expect(await drain(queueUrl, 2)).toEqual(["early", "late"]);
});

test("a delayed message on a FIFO queue holds its group back, in order", async () => {
  const queueUrl = await createQueue("fifo");
  disturb({ delay: 1, maxDelaySeconds: 1 });
  await sendOne(queueUrl, "1");
  disturb({});
  await sendOne(queueUrl, "2");
  expect(await sendAll(queueUrl, ["3", "4"])).toBe(2);
  const { Messages } = await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl: queueUrl }));
  expect(Messages).toBeUndefined();
  expect(await drain(queueUrl, 4)).toEqual(["1", "2", "3", "4"]);
});

test("messages on a standard queue change places, and none is lost", async () => {
  const queueUrl = await createQueue("standard");
  disturb({ reorder: 0.5, maxReorderMs: 50 });
  await sendAll(queueUrl, ten);
  const received = await drain(queueUrl, 10);
  expect(received).not.toEqual(ten);
  expect(received.sort()).toEqual(ten);
});

test("a FIFO queue is never reordered", async () => {
  const queueUrl = await createQueue("fifo");
  disturb({ reorder: 1, maxReorderMs: 50 });
  await sendAll(queueUrl, ten);
  expect(await drain(queueUrl, 10)).toEqual(ten);
});

test("the same seed disturbs the same messages", async () => {
  async function survivors(): Promise<string[]> {
    const other = await startAwsEmulators({ seed: 7, faults: { ...quiet, sqs: { ...quiet.sqs, lose: 0.5 } } });
    try {
      const { QueueUrl } = await other.sqs.send(new CreateQueueCommand({ QueueName: "seeded" }));
      const Entries = ten.map((body, index) => ({ Id: `${index}`, MessageBody: body }));
      await other.sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
      const { Messages = [] } = await other.sqs.send(
        new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
      );
      return Messages.map(({ Body = "" }) => Body);
    } finally {
      await other.stop();
    }
  }
  const first = await survivors();
  expect(first.length).toBeGreaterThan(0);
  expect(first.length).toBeLessThan(ten.length);
  expect(await survivors()).toEqual(first);
});
