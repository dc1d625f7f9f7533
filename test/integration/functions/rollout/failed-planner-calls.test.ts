/** An owner goes on although a call of its planner throws, or has no time left. */
import { setTimeout as sleep } from "node:timers/promises";
import { GetQueueAttributesCommand, ReceiveMessageCommand, SetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { wireRollout } from "#functions/rollout/wire.ts";
import { type InvocationReport, startEventSource } from "#local/aws/lambda/event-source-loop.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { createQueues, createTable } from "#local/aws/services/create-resources.ts";
import { only, urlsByWorker } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import type { InvocationContext, SqsEvent, SqsHandler } from "#shared/lambda/sqs-handler.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";

let emulated: EmulatedClients;
let plan: ReturnType<typeof readPlan>;
let queueUrl: string;
let handler: SqsHandler;
const owner = { namespace: "shop", kind: "SyncGroup", name: "web" } as const;

beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 5 });
  plan = readPlan(await synthesize());
  const urls = urlsByWorker(plan, await createQueues(emulated.aws.sqs, plan.queues, 1));
  queueUrl = urls.rollout;
  handler = wireRollout(
    {
      STARLING_TABLE: only(plan.tables, "table").name,
      STARLING_BUCKET: "blobs",
      STARLING_INSTALLATION: "installation-1",
      STARLING_GUARD: "none",
      STARLING_QUEUE_ROLLOUT: urls.rollout,
      STARLING_QUEUE_RENDER: urls.render,
      STARLING_QUEUE_APPLY: urls.apply,
      STARLING_QUEUE_REPORT: urls.report,
    },
    emulated.aws,
  );
});
afterAll(() => emulated.stop());

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 110_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not yet: ${what}`);
    await sleep(20);
  }
}

async function left(): Promise<number> {
  const { Attributes = {} } = await emulated.aws.sqs.send(
    new GetQueueAttributesCommand({
      QueueUrl: queueUrl,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    }),
  );
  return Number(Attributes.ApproximateNumberOfMessages) + Number(Attributes.ApproximateNumberOfMessagesNotVisible);
}

test("a planner without time for a step asks for another call, and does not fail", async () => {
  const sender = new SqsSender(emulated.aws.sqs, { rollout: queueUrl });
  await sender.send([{ to: "rollout", owner }]);
  const { Messages: [received] = [] } = await emulated.aws.sqs.send(
    new ReceiveMessageCommand({ QueueUrl: queueUrl, MessageSystemAttributeNames: ["All"], VisibilityTimeout: 1 }),
  );
  const record = {
    messageId: received?.MessageId ?? "",
    receiptHandle: received?.ReceiptHandle ?? "",
    body: received?.Body ?? "",
    attributes: { ApproximateReceiveCount: "1" },
  };
  const outOfTime: InvocationContext = { getRemainingTimeInMillis: () => 10_000 };
  expect(await handler({ Records: [record] }, outOfTime)).toEqual({ batchItemFailures: [] });
  expect(await left()).toBe(2);
});

test("a planner that cannot even change when its message returns fails, so that the message is delivered again", async () => {
  const body = JSON.stringify({ to: "rollout", owner });
  const attributes = { ApproximateReceiveCount: "1" };
  const unknown = { messageId: "m1", receiptHandle: "of-nothing", body, attributes };
  const inTime: InvocationContext = { getRemainingTimeInMillis: () => 30_000 };
  // There is no table yet.
  expect(await handler({ Records: [unknown] }, inTime)).toEqual({ batchItemFailures: [{ itemIdentifier: "m1" }] });
  expect(emulated.proxy.calls()).toHaveProperty("sqs:ChangeMessageVisibilityBatch");
});

test("a planner that throws is called again long before its message would return by itself", async () => {
  const reports: InvocationReport[] = [];
  const Attributes = { VisibilityTimeout: "3600" };
  await emulated.aws.sqs.send(new SetQueueAttributesCommand({ QueueUrl: queueUrl, Attributes }));
  const { timeoutSeconds = 0 } = plan.functions.find(({ folder }) => folder === "rollout") ?? {};
  const loop = await startEventSource({
    sqs: emulated.aws.sqs,
    queueUrl,
    lambda: lambdaFunction({
      functionName: "rollout",
      timeoutSeconds,
      newSandbox: () => sharedSandbox((event, context) => handler(event as SqsEvent, context)),
    }),
    onInvocation: (report) => reports.push(report),
  });
  const failures = () => reports.flatMap(({ failedMessageIds }) => failedMessageIds);
  await until("every message failed twice", () => {
    const counts = Map.groupBy(failures(), (id) => id);
    return counts.size > 0 && [...counts.values()].every((times) => times.length >= 2);
  });
  await createTable(emulated.aws.dynamo, only(plan.tables, "table"));
  await until("the queue is empty", async () => (await left()) === 0);
  await loop.stop();
}, 120_000);
