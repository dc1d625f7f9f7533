import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { DeleteMessageCommand, type Message as Received, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createQueues } from "#local/aws/services/create-resources.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { urlsByWorker } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import type { Message, QueueName } from "#shared/messages.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { MemorySender } from "#test/support/memory-sender.ts";

const owner = (name: string) => ({ namespace: "shop", kind: "SyncGroup" as const, name });
const apply = (count: number): Message[] =>
  Array.from({ length: count }, (_, index) => ({ to: "apply", cluster: `c${String(index).padStart(2, "0")}` }));

describe("MemorySender", () => {
  test("MemorySender keeps messages in order until they are taken", async () => {
    const sender = new MemorySender();
    await sender.send(apply(2));
    await sender.send(apply(1));
    expect(sender.take().map((message) => JSON.stringify(message))).toEqual(
      [...apply(2), ...apply(1)].map((message) => JSON.stringify(message)),
    );
    expect(sender.take()).toEqual([]);
  });
});

describe("SqsSender", () => {
  let emulated: EmulatedClients;
  let urls: Readonly<Record<QueueName, string>>;
  let sender: SqsSender;
  beforeAll(async () => {
    emulated = await startEmulatedClients({ seed: 13 });
    const plan = readPlan(await synthesize());
    urls = urlsByWorker(plan, await createQueues(emulated.aws.sqs, plan.queues, 1));
    sender = new SqsSender(emulated.aws.sqs, urls);
  });
  afterAll(() => emulated.stop());
  beforeEach(() => emulated.proxy.resetCalls());
  afterEach(() => emulated.proxy.setFaults(quiet));

  async function receive(queue: QueueName, count: number): Promise<Received[]> {
    const received: Received[] = [];
    await expect
      .poll(
        async () => {
          const answer = await emulated.aws.sqs.send(
            new ReceiveMessageCommand({
              QueueUrl: urls[queue],
              MaxNumberOfMessages: 10,
              MessageSystemAttributeNames: ["All"],
            }),
          );
          for (const message of answer.Messages ?? []) {
            received.push(message);
            // SQS delivers the next message of a group only after the previous one is deleted.
            const { ReceiptHandle } = message;
            await emulated.aws.sqs.send(new DeleteMessageCommand({ QueueUrl: urls[queue], ReceiptHandle }));
          }
          return received.length;
        },
        { timeout: 10_000 },
      )
      .toBe(count);
    return received;
  }

  test("the sender sends each message to the queue that it names, ten in a call", async () => {
    const messages: Message[] = [...apply(23), { to: "resolve", source: { namespace: "shop", name: "app" } }];
    await sender.send(messages);
    expect(emulated.proxy.calls()).toEqual({ "sqs:SendMessageBatch": 4 });
    const bodies = (await receive("apply", 23)).map((message) => JSON.parse(message.Body ?? ""));
    expect(bodies.sort((a, b) => (a.cluster < b.cluster ? -1 : 1))).toEqual(apply(23));
    expect((await receive("resolve", 1)).map((message) => JSON.parse(message.Body ?? ""))).toEqual(messages.slice(-1));
  });

  test("the sender calls nothing when there is nothing to send", async () => {
    await sender.send([]);
    expect(emulated.proxy.calls()).toEqual({});
  });

  test("all messages of an owner are in one group of the planner's queue, and none is dropped as a duplicate", async () => {
    const message: Message = { to: "rollout", owner: owner("web") };
    await sender.send([message, message, { to: "rollout", owner: owner("db") }]);
    await sender.send([message]);
    const received = await receive("rollout", 4);
    const groups = received.map((one) => one.Attributes?.MessageGroupId).sort();
    expect(groups).toEqual(["shop/SyncGroup/db", "shop/SyncGroup/web", "shop/SyncGroup/web", "shop/SyncGroup/web"]);
    expect(new Set(received.map((one) => one.Attributes?.MessageDeduplicationId)).size).toBe(4);
  });

  test("a delayed message comes later, and its body does not contain the delay", async () => {
    await sender.send([{ to: "apply", cluster: "late", delaySeconds: 1 }]);
    const [late] = await receive("apply", 1);
    expect(JSON.parse(late?.Body ?? "")).toEqual({ to: "apply", cluster: "late" });
    const waited = Number(late?.Attributes?.ApproximateFirstReceiveTimestamp) - Number(late?.Attributes?.SentTimestamp);
    expect(waited).toBeGreaterThanOrEqual(1000);
  });

  test("messages reach the other queues even if one queue refuses", async () => {
    const lame = new SqsSender(emulated.aws.sqs, { ...urls, apply: `${urls.apply}-gone` });
    const stageRun = { rollout: 1, stage: "all", snapshot: 1 };
    const about = { kind: "Rollout" as const, owner: owner("web"), stageRun };
    await expect(lame.send([...apply(1), { to: "report", about }])).rejects.toMatchObject({
      name: "QueueDoesNotExist",
    });
    expect(await receive("report", 1)).toHaveLength(1);
  });

  test("a message for a queue that the function does not have is a defect that names the queue", async () => {
    const poor = new SqsSender(emulated.aws.sqs, { apply: urls.apply });
    await expect(poor.send([{ to: "render", input: "a" }])).rejects.toThrow(/no queue for "render"/);
  });
});

describe("SqsSender, when SQS accepts only a part of a batch", () => {
  let server: Server;
  let client: SQSClient;
  /** The bodies of the entries of each call. */
  let calls: string[][];
  /** Whether the n-th call (from 0) accepts the entry with this body. */
  let takes: (call: number, body: string) => boolean;
  /** Whether the entry with this body is refused by its own fault (`SenderFault`). */
  let atFault: (body: string) => boolean;

  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const { Entries } = JSON.parse(await text(request)) as { Entries: { Id: string; MessageBody: string }[] };
      const call = calls.push(Entries.map((entry) => entry.MessageBody)) - 1;
      const Successful = Entries.filter((entry) => takes(call, entry.MessageBody)).map(({ Id, MessageBody }) => ({
        Id,
        MessageId: Id,
        MD5OfMessageBody: createHash("md5").update(MessageBody).digest("hex"),
      }));
      const Failed = Entries.filter((entry) => !takes(call, entry.MessageBody)).map(({ Id, MessageBody }) => ({
        Id,
        Code: atFault(MessageBody) ? "InvalidParameterValue" : "InternalError",
        SenderFault: atFault(MessageBody),
      }));
      response.writeHead(200, { "content-type": "application/x-amz-json-1.0" });
      // The types of the SDK allow an answer without the list; the emulator always sends it.
      response.end(JSON.stringify({ Successful, ...(Failed.length === 0 ? {} : { Failed }) }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const endpoint = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    client = new SQSClient({ region: "us-east-1", endpoint, credentials });
  });
  afterAll(async () => {
    client.destroy();
    server.close();
    await once(server, "close");
  });
  beforeEach(() => {
    calls = [];
    atFault = () => false;
  });
  const send = (count: number) => new SqsSender(client, { apply: "http://127.0.0.1/apply" }).send(apply(count));
  const bodies = (count: number) => apply(count).map((message) => JSON.stringify(message));

  test("only the entries that SQS did not accept are sent again", async () => {
    takes = (call, body) => call > 0 || !/c0[13]/.test(body);
    await send(5);
    expect(calls).toEqual([bodies(5), bodies(5).filter((body) => /c0[13]/.test(body))]);
  });

  test("an entry that SQS does not accept at the third try is a transient error, after all batches were tried", async () => {
    takes = (_call, body) => !body.includes("c01");
    await expect(send(12)).rejects.toMatchObject({ code: "SendFailed", retry: "transient" });
    expect(calls.map((call) => call.length)).toEqual([10, 1, 1, 2]);
  });

  test("an entry that is refused by its own fault is not sent again", async () => {
    atFault = () => true;
    takes = (_call, body) => !body.includes("c01");
    await expect(send(3)).rejects.toMatchObject({
      code: "SendFailed",
      retry: "permanent",
      message: "SQS refused 1 of 3 messages to apply: InvalidParameterValue",
      data: { codes: ["InvalidParameterValue"] },
    });
    expect(calls).toHaveLength(1);
  });

  test("no entry of a batch is sent again if one is refused by its own fault, because the sender has a defect", async () => {
    atFault = (body) => body.includes("c01");
    takes = (_call, body) => !/c0[12]/.test(body);
    await expect(send(3)).rejects.toMatchObject({
      retry: "permanent",
      message: "SQS refused 2 of 3 messages to apply: InvalidParameterValue, InternalError",
      data: { codes: ["InvalidParameterValue", "InternalError"] },
    });
    expect(calls).toHaveLength(1);
  });
});
