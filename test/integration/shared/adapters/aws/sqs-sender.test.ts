import { CreateQueueCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import type { OwnerRef } from "#shared/messages.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

/** The limit of SQS; the emulator accepts more. */
const longestGroupId = 128;

let aws: AwsEmulators;
let client: SQSClient;
beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 1 });
  client = aws.sqs;
});
afterAll(() => aws.stop());

test("owners with the longest names have different message groups, each within the limit of SQS", async () => {
  const created = await client.send(
    new CreateQueueCommand({ QueueName: "rollout.fifo", Attributes: { FifoQueue: "true" } }),
  );
  const QueueUrl = created.QueueUrl ?? "";
  const owners = ["a", "b"].map(
    (end): OwnerRef => ({ namespace: "n".repeat(63), kind: "SyncGroup", name: `${"g".repeat(62)}${end}` }),
  );
  const short: OwnerRef = { namespace: "shop", kind: "Sync", name: "web" };

  const sender = new SqsSender(client, { rollout: QueueUrl });
  await sender.send([...owners, short].map((owner) => ({ to: "rollout", owner })));

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
  for (const group of groups) expect(group.length).toBeLessThanOrEqual(longestGroupId);
});

test("the error of the sender is transient if no server answers", async () => {
  const nowhere = "http://127.0.0.1:1";
  const credentials = { accessKeyId: "key", secretAccessKey: "secret" };
  const silent = new SQSClient({ region: "us-east-1", endpoint: nowhere, credentials, maxAttempts: 1 });
  const sent = new SqsSender(silent, { apply: `${nowhere}/1/apply` }).send([{ to: "apply", cluster: "c1" }]);
  await expect(sent).rejects.toMatchObject({ code: "SendFailed", retry: "transient" });
});
