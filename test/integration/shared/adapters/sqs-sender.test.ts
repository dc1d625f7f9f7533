import { CreateQueueCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SqsAndS3Server, startSqsAndS3 } from "#local/aws/sqs-s3-server.ts";
import { SqsSender } from "#shared/adapters/sqs-sender.ts";
import type { SubjectRef } from "#shared/messages.ts";

/** What SQS takes; the emulator takes more. */
const LONGEST_GROUP_ID = 128;

let server: SqsAndS3Server;
let client: SQSClient;
beforeAll(async () => {
  server = await startSqsAndS3();
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  client = new SQSClient({ endpoint: server.endpoint, region: "us-east-1", credentials });
});
afterAll(async () => {
  client.destroy();
  await server.stop();
});

test("subjects with the longest names have groups that SQS takes, each its own", async () => {
  const created = await client.send(
    new CreateQueueCommand({ QueueName: "rollout.fifo", Attributes: { FifoQueue: "true" } }),
  );
  const QueueUrl = created.QueueUrl ?? "";
  const subjects = ["a", "b"].map(
    (end): SubjectRef => ({ namespace: "n".repeat(63), kind: "SyncGroup", name: `${"g".repeat(62)}${end}` }),
  );
  const short: SubjectRef = { namespace: "shop", kind: "Sync", name: "web" };

  const sender = new SqsSender(client, { rollout: QueueUrl });
  await sender.send([...subjects, short].map((subject) => ({ to: "rollout", subject })));

  const received = await client.send(
    new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ["MessageGroupId"],
    }),
  );
  const groups = (received.Messages ?? []).map((message) => message.Attributes?.MessageGroupId ?? "");
  expect(new Set(groups).size).toBe(3);
  expect(groups).toContain("shop/Sync/web");
  for (const group of groups) expect(group.length).toBeLessThanOrEqual(LONGEST_GROUP_ID);
});
