/** Senders that deliver without end: the webhook as it is wired, against the emulators. */
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { CreateSecretCommand } from "@aws-sdk/client-secrets-manager";
import { CreateQueueCommand } from "@aws-sdk/client-sqs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { wireWebhook } from "#functions/webhook/wire.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { signed } from "#test/support/webhook-senders.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

interface Entry {
  readonly MessageBody: string;
  readonly DelaySeconds?: number;
}

const table = "table";
const names = Array.from({ length: 10 }, (_, index) => `app-${index}`);

let emulated: EmulatedClients;
let webhook: ReturnType<typeof wireWebhook>;
let at: string;
let now: Date;
/** The messages of requests to SQS. */
let entries: Entry[];

beforeEach(async () => {
  emulated = await startEmulatedClients({ seed: 1 });
  const { aws, proxy } = emulated;
  await aws.dynamo.send(
    new CreateTableCommand({
      TableName: table,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: ["pk", "sk"].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
    }),
  );
  const { QueueUrl = "" } = await aws.sqs.send(new CreateQueueCommand({ QueueName: "resolve" }));
  await aws.secrets.send(new CreateSecretCommand({ Name: "starling/hooks/one", SecretString: '{"token":"s3cret"}' }));
  now = new Date("2026-01-01T01:00:00Z");
  const env = {
    STARLING_TABLE: table,
    STARLING_QUEUE_RESOLVE: QueueUrl,
    STARLING_WEBHOOK_SECRET: "starling/webhook",
    STARLING_SECRET_PREFIX: "starling/hooks/",
    STARLING_RESOLVE_ZONE: "-",
  };
  webhook = wireWebhook(env, aws, { clock: { now: () => now, sleep: async () => undefined }, output: () => undefined });
  const world = new WebhookWorld(new DynamoTable(aws.dynamo, table));
  for (const name of names) await world.addSource(name, { url: `https://github.com/acme/${name}` });
  at = await world.addReceiver("ci", { provider: "generic", sources: names, secrets: ["starling/hooks/one"] });
  entries = [];
  proxy.intercept({
    before({ operation, request }) {
      if (operation === "SendMessageBatch") entries.push(...(request.Entries as Entry[]));
    },
  });
});
afterEach(() => emulated.stop());

async function deliver(times: number): Promise<readonly Entry[]> {
  entries = [];
  const { headers, body } = signed("generic", { body: "" });
  for (let each = 0; each < times; each++) {
    const { statusCode } = await webhook({ rawPath: `/hook/${at}`, headers, body }, {});
    expect(statusCode).toBe(202);
  }
  return entries;
}

const polled = (sent: readonly Entry[]) => sent.map(({ MessageBody }) => JSON.parse(MessageBody).source.name).sort();

test("forty deliveries of one sender request two polls of each Source, and the second comes after all of them [receiver.flood]", async () => {
  const sent = await deliver(40);
  const [atOnce, later] = [sent.filter((one) => !one.DelaySeconds), sent.filter((one) => one.DelaySeconds)];
  expect(polled(atOnce)).toEqual(names.toSorted());
  expect(polled(later)).toEqual(names.toSorted());
  expect(new Set(later.map((one) => one.DelaySeconds))).toEqual(new Set([5]));
  // The delayed poll may have begun by now, so that it says nothing of this delivery.
  now = new Date(now.getTime() + 4500);
  expect(await deliver(10)).toMatchObject(names.map(() => ({ DelaySeconds: 6 })));
  now = new Date(now.getTime() + 60_000);
  expect((await deliver(1)).filter((one) => one.DelaySeconds)).toEqual([]);
  expect(polled(entries)).toEqual(names.toSorted());
}, 60_000);

test("a poll that could not be requested is requested by the next delivery", async () => {
  const { proxy } = emulated;
  const undo = proxy.intercept({ before: ({ operation }) => (operation === "SendMessageBatch" ? "reset" : undefined) });
  const { headers, body } = signed("generic", { body: "" });
  expect((await webhook({ rawPath: `/hook/${at}`, headers, body }, {})).statusCode).toBe(503);
  undo();
  expect((await deliver(1)).filter((one) => one.DelaySeconds)).toEqual([]);
  expect(polled(entries)).toEqual(names.toSorted());
}, 60_000);
