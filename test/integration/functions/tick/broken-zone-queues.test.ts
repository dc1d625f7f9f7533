/** Zones whose queues refuse, do not exist, or do not answer keep nothing else waiting. */

import { CreateQueueCommand, ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { wireTick } from "#functions/tick/wire.ts";
import { createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { dueAttributes, later } from "#shared/fleet/rows/due.ts";
import { keys, rowTypeOf } from "#shared/fleet/rows/keys.ts";
import { type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";

let emulated: EmulatedClients;
let table: DynamoTable;
let urls: Record<string, string>;
const tableName = "rows";
beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 7 });
  const plan = readPlan(await synthesize());
  await createTable(emulated.aws.dynamo, { ...only(plan.tables, "table"), name: tableName });
  table = new DynamoTable(emulated.aws.dynamo, tableName);
  const made = await Promise.all(
    ["apply", "other", "mute", "far"].map(async (QueueName) => {
      const { QueueUrl = "" } = await emulated.aws.sqs.send(new CreateQueueCommand({ QueueName }));
      return [QueueName, QueueUrl] as const;
    }),
  );
  urls = Object.fromEntries(made);
});
afterAll(() => emulated.stop());

async function put(key: RowKey, more: object): Promise<void> {
  await table.write([
    { put: { ...key, type: rowTypeOf(key) ?? "", schema: rowSchema, version: 1, ...more } as unknown as Row },
  ]);
}

/** Clusters whose leases are due, all in one shard. */
async function due(count: number, zone: string | undefined): Promise<void> {
  for (let index = 0; index < count; index++) {
    const name = `${zone ?? "home"}-${index}`;
    await put(keys.fleet(name), { name, labels: {}, values: {}, ...(zone === undefined ? {} : { zone }) });
    const lease = keys.lease(name);
    await put(lease, { ...dueAttributes(lease, later(new Date().toISOString(), -60)), dueShard: "DUE#03" });
  }
}

async function received(QueueUrl = ""): Promise<readonly string[]> {
  const clusters: string[] = [];
  for (;;) {
    const { Messages = [] } = await emulated.aws.sqs.send(
      new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }),
    );
    if (Messages.length === 0) return clusters.sort();
    for (const { Body = "{}" } of Messages) clusters.push(JSON.parse(Body).cluster);
  }
}

test("one tick reaches every cluster of the other zones, and ends as one that succeeded", async () => {
  await due(60, "gone");
  await due(60, "mute");
  await due(30, undefined);
  await due(30, "far");
  const tries = new Map<string, number>();
  const stop = emulated.proxy.intercept({
    before: ({ operation, request }) => {
      if (operation !== "SendMessageBatch") return;
      const queue = String(request.QueueUrl).split("/").at(-1) ?? "";
      tries.set(queue, (tries.get(queue) ?? 0) + 1);
      return queue === "mute" ? new Promise(() => {}) : undefined;
    },
  });
  const lines: string[] = [];
  const other = urls.other ?? "";
  const tick = wireTick(
    {
      STARLING_TABLE: tableName,
      STARLING_INSTALLATION: "i",
      STARLING_QUEUE_RESOLVE: other,
      STARLING_QUEUE_RENDER: other,
      STARLING_QUEUE_DISCOVER: other,
      STARLING_QUEUE_ROLLOUT: other,
      STARLING_QUEUE_APPLY: urls.apply ?? "",
      STARLING_ZONE_QUEUES: `gone=${urls.far}-gone,mute=${urls.mute},far=${urls.far}`,
    },
    { ...emulated.aws, alarms: undefined as never },
    { output: (line) => lines.push(line) },
  );
  await tick();
  stop();
  const names = (zone: string) => Array.from({ length: 30 }, (_, index) => `${zone}-${index}`).sort();
  expect(await received(urls.apply)).toEqual(names("home"));
  expect(await received(urls.far)).toEqual(names("far"));
  // A broken queue is asked once, and not once for each page of rows. Three batches of a page may go side by side.
  expect(tries.get("far-gone")).toBeLessThanOrEqual(3);
  expect(tries.get("mute")).toBeLessThanOrEqual(3);
  const logged = lines.map((line) => JSON.parse(line));
  const errors = logged
    .filter(({ level }) => level === "ERROR")
    .map(({ zone, code, message }) => ({ zone, code, message }));
  const text = (zone: string) => `the queue of zone ${zone} takes no messages; its clusters wait`;
  expect(errors).toHaveLength(2);
  expect(errors).toEqual(
    expect.arrayContaining([
      { zone: "gone", code: "QueueDoesNotExist", message: text("gone") },
      { zone: "mute", code: "NoAnswer", message: text("mute") },
    ]),
  );
  // The alarms of the two zones ring, and no other.
  const alarms = logged.flatMap(({ SilentZones, zone }) => (SilentZones === undefined ? [] : [zone]));
  expect(alarms.sort()).toEqual(["gone", "mute"]);
  expect(await table.get(keys.tick)).toBeDefined();
}, 60_000);
