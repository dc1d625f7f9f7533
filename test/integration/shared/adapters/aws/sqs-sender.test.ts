import { CreateQueueCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AwsAccountReader } from "#shared/adapters/aws/aws-account-reader.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { regionOfQueue } from "#shared/base/queue-place.ts";
import type { Message, OwnerRef } from "#shared/messages.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";
import { silentLog } from "#test/support/planner-world.ts";

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

test("a request about a queue of another region is signed for that region, and any other for the client's own", async () => {
  const created = await client.send(new CreateQueueCommand({ QueueName: "apply" }));
  const { credentials } = client.config;
  const north = new SQSClient({ region: "eu-north-1", endpoint: aws.proxy.endpoints.sqs, credentials });
  await north.send(new CreateQueueCommand({ QueueName: "apply" }));
  const path = new URL(created.QueueUrl ?? "").pathname;
  const seen: string[] = [];
  const stop = aws.proxy.intercept({
    before: ({ operation, http }) => {
      const [, region = ""] = /Credential=[^/]+\/\d+\/([^/]+)\/sqs/.exec(String(http.headers.authorization)) ?? [];
      seen.push(`${operation} ${region}`);
    },
  });
  const sentTo = async (QueueUrl: string) => {
    await new SqsSender(client, { apply: QueueUrl }).send([{ to: "apply", cluster: "c1" }]);
    const { secrets, lambda } = {} as ConstructorParameters<typeof AwsAccountReader>[0];
    const counted = await new AwsAccountReader({ sqs: client, secrets, lambda }).queueLength(QueueUrl);
    return { messages: counted.messages, seen: seen.splice(0) };
  };
  const signedFor = (region: string) => [`SendMessageBatch ${region}`, `GetQueueAttributes ${region}`];
  expect(await sentTo(created.QueueUrl ?? "")).toEqual({ messages: 1, seen: signedFor("us-east-1") });
  expect(await sentTo(`https://sqs.us-east-1.amazonaws.com${path}`)).toEqual({
    messages: 2,
    seen: signedFor("us-east-1"),
  });
  expect(await sentTo(`https://sqs.eu-north-1.amazonaws.com${path}`)).toEqual({
    messages: 1,
    seen: signedFor("eu-north-1"),
  });
  stop();
});

test.each([
  ["https://sqs.eu-north-1.amazonaws.com/111122223333/apply", "eu-north-1"],
  ["https://sqs.cn-north-1.amazonaws.com.cn/111122223333/apply", "cn-north-1"],
  ["https://sqs.us-gov-west-1.amazonaws.com/111122223333/apply", "us-gov-west-1"],
  ["https://sqs-fips.us-east-2.amazonaws.com/111122223333/apply", "us-east-2"],
  ["https://sqs.ap-southeast-2.api.aws/111122223333/apply", "ap-southeast-2"],
  ["https://vpce-0a1b-2c3d.sqs.eu-west-1.vpce.amazonaws.com/111122223333/apply", "eu-west-1"],
  ["http://127.0.0.1:4566/000000000000/apply", undefined],
  ["http://sqs.eu-north-1.localhost:4566/000000000000/apply", undefined],
  ["https://sqs.eu-north-1.amazonaws.com.example.org/111122223333/apply", undefined],
])("the region of the queue %s is %s", (url, region) => {
  expect(regionOfQueue(url)).toBe(region);
});

test("a queue that does not answer is asked once, and the messages to the others are sent", async () => {
  const made = await Promise.all(
    ["mute", "open"].map((QueueName) => client.send(new CreateQueueCommand({ QueueName }))),
  );
  const [mute = "", open = ""] = made.map(({ QueueUrl = "" }) => QueueUrl);
  const seen: string[] = [];
  const stop = aws.proxy.intercept({
    before: ({ request }) => {
      seen.push(String(request.QueueUrl).split("/").at(-1) ?? "");
      return String(request.QueueUrl).endsWith("mute") ? "reset" : undefined;
    },
  });
  const once = aws.clients({ maxAttempts: 1 });
  const messages = Array.from({ length: 25 }, (_, at) => ({ to: "apply", cluster: `c${at}` }) as const);
  const sender = new SqsSender(once.sqs, { report: open, apply: mute });
  const report = { to: "report", changes: [] } as unknown as Message;
  await expect(sender.send([...messages, report])).rejects.toMatchObject({ code: "SendFailed" });
  expect(seen).toEqual(["mute", "open"]);
  stop();
});

test("a zone is deaf while its queue takes no message, for as long as somebody has one for it, and until it takes one", async () => {
  const { QueueUrl: far = "" } = await client.send(new CreateQueueCommand({ QueueName: "far" }));
  let at = 0;
  const clock = { now: () => new Date(at) };
  const urls = new Map([["far", far]]);
  let isGone = true;
  const asked: string[] = [];
  const stop = aws.proxy.intercept({
    before: ({ request }) => {
      asked.push(String(request.QueueUrl));
      return isGone ? "reset" : undefined;
    },
  });
  const sender = new SqsSender(aws.clients({ maxAttempts: 1 }).sqs, {}, { urls, clock, log: silentLog });
  const messages = [{ to: "apply", cluster: "c1", zone: "far" }] as const;
  await sender.send(messages);
  await sender.send(messages);
  expect(asked).toHaveLength(1);
  expect([...sender.deafZones()]).toEqual(["far"]);
  at += 21 * 60_000;
  expect([...sender.deafZones()]).toEqual([]);
  await sender.send(messages);
  expect([...sender.deafZones()]).toEqual(["far"]);
  isGone = false;
  at += 31_000;
  await sender.send(messages);
  expect([...sender.deafZones()]).toEqual([]);
  expect(asked).toHaveLength(3);
  stop();
});

test("a queue that takes the request and never answers is given up after some seconds when its messages are counted", async () => {
  const stop = aws.proxy.intercept({ before: () => new Promise(() => {}) });
  const { secrets, lambda } = {} as ConstructorParameters<typeof AwsAccountReader>[0];
  const counted = new AwsAccountReader({ sqs: client, secrets, lambda }).queueLength(`${aws.proxy.endpoints.sqs}/1/q`);
  await expect(counted).rejects.toThrow("SQS did not answer within 5 s");
  stop();
}, 20_000);

test("a far queue that answers slowly gets all messages, however long all batches together take", async () => {
  const { QueueUrl: far = "" } = await client.send(new CreateQueueCommand({ QueueName: "slow" }));
  let taken = 0;
  const stop = aws.proxy.intercept({
    before: () => new Promise((resolve) => void setTimeout(resolve, 1000)),
    after: ({ request }, { status }) => {
      if (status === 200) taken += (request.Entries as readonly unknown[]).length;
    },
  });
  const sender = new SqsSender(client, {}, { urls: new Map([["far", far]]), clock: systemClock, log: silentLog });
  await sender.send(Array.from({ length: 300 }, (_, at) => ({ to: "apply", cluster: `c${at}`, zone: "far" }) as const));
  expect(taken).toBe(300);
  expect([...sender.deafZones()]).toEqual([]);
  stop();
}, 30_000);
