import { randomUUID } from "node:crypto";
import { CreateQueueCommand, SendMessageBatchCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type EventSourceLoop, startEventSource } from "#local/aws/lambda/event-source-loop.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import type { SqsLambdaEvent, SqsRecord } from "#local/aws/lambda/sqs-event.ts";
import { hostile, quiet } from "#local/aws/wire/fault-options.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

let aws: AwsEmulators;
let loop: EventSourceLoop | undefined;

beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 11 });
});
afterAll(() => aws.stop());
afterEach(async () => {
  aws.proxy.setFaults(quiet);
  loop?.kill();
  await loop?.stop();
});

async function consume(queueUrl: string): Promise<SqsRecord[]> {
  const records: SqsRecord[] = [];
  loop = await startEventSource({
    sqs: aws.sqs,
    queueUrl,
    lambda: lambdaFunction({
      functionName: "worker",
      timeoutSeconds: 1,
      newSandbox: () => sharedSandbox((event) => void records.push(...(event as SqsLambdaEvent).Records)),
    }),
  });
  return records;
}

const mostTries = 10;

/** Repeats a send that the SDK gave up after three tries, because the test is only about the consumer. */
async function sendPatiently(command: SendMessageBatchCommand): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await aws.sqs.send(command);
      return;
    } catch (error) {
      if (tries === mostTries) throw error;
    }
  }
}

test.each(["", ".fifo"])(
  "a hostile queue%s delivers everything at least once, in the order of its groups",
  async (suffix) => {
    const { QueueUrl = "" } = await aws.sqs.send(
      new CreateQueueCommand({
        QueueName: `${randomUUID()}${suffix}`,
        Attributes: { VisibilityTimeout: "1", ...(suffix === "" ? {} : { FifoQueue: "true" }) },
      }),
    );
    const bodies = Array.from({ length: 60 }, (_, index) => `${index}`.padStart(2, "0"));
    const records = await consume(QueueUrl);
    aws.proxy.setFaults({
      ...hostile,
      sqs: { ...hostile.sqs, lose: 0, maxDelaySeconds: 1, resetBefore: 0.1, resetAfter: 0.1 },
    });
    for (let first = 0; first < bodies.length; first += 10) {
      const Entries = bodies.slice(first, first + 10).map((body, index) => ({
        Id: `${index}`,
        MessageBody: body,
        ...(suffix === "" ? {} : { MessageGroupId: `${index % 3}`, MessageDeduplicationId: body }),
      }));
      await sendPatiently(new SendMessageBatchCommand({ QueueUrl, Entries }));
    }
    const seen = () => [...new Set(records.map(({ body }) => body))];
    await expect.poll(() => seen().length, { timeout: 30_000 }).toBe(bodies.length);
    if (suffix === "") return;
    for (const group of ["0", "1", "2"]) {
      const inGroup = bodies.filter((_, index) => `${(index % 10) % 3}` === group);
      expect(seen().filter((body) => inGroup.includes(body))).toEqual(inGroup);
    }
  },
);

test("a message that is sent while the source is paused is received once, soon after the pause", async () => {
  const { QueueUrl = "" } = await aws.sqs.send(new CreateQueueCommand({ QueueName: randomUUID() }));
  const records = await consume(QueueUrl);
  await expect.poll(() => aws.proxy.calls()["sqs:ReceiveMessage"] ?? 0).toBeGreaterThan(0);
  await loop?.pause();
  loop?.resume();
  await aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }));
  await expect.poll(() => records.length, { timeout: 5000 }).toBe(1);
  expect(records[0]?.attributes.ApproximateReceiveCount).toBe("1");
});
