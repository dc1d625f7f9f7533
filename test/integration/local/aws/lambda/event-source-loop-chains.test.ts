/** Event sources stop functions that call themselves through a queue, and survive functions that are killed. */
import { randomUUID } from "node:crypto";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  type QueueAttributeName,
  SendMessageCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type EventSourceLoop, type InvocationReport, startEventSource } from "#local/aws/lambda/event-source-loop.ts";
import { type FunctionOptions, lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { threadSandbox } from "#local/aws/lambda/thread-sandbox.ts";
import { tracedClients } from "#local/machine/function-code.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";

let emulated: EmulatedClients;
const loops: EventSourceLoop[] = [];
const patience = { timeout: 20_000 };

beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 3 });
  tracedClients(emulated.aws);
});
afterAll(() => emulated.stop());
afterEach(async () => {
  for (const loop of loops.splice(0)) await loop.stop();
});

async function createQueue(attributes: Partial<Record<QueueAttributeName, string>> = {}) {
  const { sqs } = emulated.aws;
  const { QueueUrl = "" } = await sqs.send(
    new CreateQueueCommand({ QueueName: randomUUID(), Attributes: { VisibilityTimeout: "2", ...attributes } }),
  );
  const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["QueueArn"] }));
  return { url: QueueUrl, arn: Attributes?.QueueArn ?? "" };
}

async function send(QueueUrl: string, MessageBody: string): Promise<void> {
  await emulated.aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
}

async function visible(QueueUrl: string): Promise<number> {
  const { Attributes } = await emulated.aws.sqs.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["ApproximateNumberOfMessages"] }),
  );
  return Number(Attributes?.ApproximateNumberOfMessages);
}

async function work(
  queueUrl: string,
  options: Pick<FunctionOptions, "functionName" | "newSandbox"> & Partial<FunctionOptions>,
): Promise<readonly InvocationReport[]> {
  const reports: InvocationReport[] = [];
  loops.push(
    await startEventSource({
      lambda: lambdaFunction({ timeoutSeconds: 2, ...options }),
      sqs: emulated.aws.sqs,
      queueUrl,
      onInvocation: (report) => reports.push(report),
    }),
  );
  return reports;
}

/** Makes two functions that send a message to each other for a number of rounds. */
async function circle(rounds: number, recursiveLoop: "terminate" | "allow") {
  const dead = await createQueue();
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: dead.arn, maxReceiveCount: 2 });
  const [there, back] = [await createQueue({ RedrivePolicy }), await createQueue()];
  const sending = (queueUrl: string) => () => sharedSandbox(() => send(queueUrl, "round"));
  let left = rounds;
  const reports = await work(there.url, {
    functionName: "ping",
    recursiveLoop,
    newSandbox: () =>
      sharedSandbox(async () => {
        left -= 1;
        if (left > 0) await send(back.url, "round");
      }),
  });
  await work(back.url, { functionName: "pong", recursiveLoop: "allow", newSandbox: sending(there.url) });
  await send(there.url, "round");
  return { dead, reports };
}

test("the 17th invocation of a chain is stopped and reported, and its message becomes a dead letter", async () => {
  const { dead, reports } = await circle(100, "terminate");
  await expect.poll(() => visible(dead.url), patience).toBe(1);
  const invoked = reports.filter(({ outcome }) => outcome === "returned");
  expect(invoked.map(({ hops }) => hops)).toEqual(Array.from({ length: 16 }, (_, index) => index + 1));
  const stopped = reports.filter(({ outcome }) => outcome === "stopped");
  expect(stopped.map(({ hops }) => hops)).toEqual([16, 16]);
  expect(stopped[0]?.failedMessageIds).toEqual(stopped[0]?.messageIds);
});

test("the chain of a function whose RecursiveLoop is Allow continues", async () => {
  const { reports } = await circle(20, "allow");
  await expect.poll(() => reports.length, patience).toBe(20);
  expect(reports.map(({ hops }) => hops)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
});

test("a message that no invocation sent starts a new chain", async () => {
  const queue = await createQueue();
  const reports = await work(queue.url, { functionName: "worker", newSandbox: () => sharedSandbox(() => undefined) });
  for (let count = 0; count < 18; count++) await send(queue.url, "alone");
  await expect.poll(() => reports.flatMap(({ messageIds }) => messageIds).length, patience).toBe(18);
  expect(new Set(reports.map(({ outcome, hops }) => `${outcome} ${hops}`))).toEqual(new Set(["returned 1"]));
});

test("the message of an invocation that took too much memory returns to the queue", async () => {
  const queue = await createQueue({ VisibilityTimeout: "5" });
  const module = new URL("../../../../support/scripted-function.ts", import.meta.url).href;
  const reports = await work(queue.url, {
    functionName: "hungry",
    newSandbox: () => threadSandbox({ module, data: "", memoryMiB: 32 }),
    timeoutSeconds: 5,
  });
  await send(queue.url, "eat");
  await expect.poll(() => reports.map(({ outcome }) => outcome), patience).toEqual(["failed", "returned"]);
  const [killed, second] = reports;
  expect(killed).toMatchObject({ error: { name: "Runtime.OutOfMemory" }, memory: { peakMiB: 32, of: "sandbox" } });
  expect(killed?.failedMessageIds).toEqual(killed?.messageIds);
  expect(second?.messageIds).toEqual(killed?.messageIds);
});
