/** The stack of a zone that is elsewhere may be older than the control stack, which sends it clusters of names that it does not know. */

import { CreateQueueCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { wireApply } from "#functions/apply/wire.ts";
import { createBucket, createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { clusterClients } from "#shared/lambda/cluster-clients.ts";
import { configMap } from "#test/support/cluster-fixture.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { startScriptedServer } from "#test/support/scripted-server.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

let emulated: EmulatedClients;
let table: DynamoTable;
beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 7 });
  const plan = readPlan(await synthesize());
  await createTable(emulated.aws.dynamo, { ...only(plan.tables, "table"), name: "rows" });
  for (const QueueName of ["apply", "slow", "report"])
    await emulated.aws.sqs.send(new CreateQueueCommand({ QueueName }));
  await createBucket(emulated.aws.s3, "blobs");
  table = new DynamoTable(emulated.aws.dynamo, "rows");
});
afterAll(() => emulated.stop());

/** The worker of the zone `spoke`, whose stack knows names `eu-*` only. @param dynamo - the endpoint of the table. */
function worker(lines: string[], dynamo = emulated.proxy.endpoints.dynamodb) {
  const queue = (name: string) => `${emulated.proxy.endpoints.sqs}/000000000000/${name}`;
  const { sqs, s3 } = emulated.proxy.endpoints;
  const nowhere = "http://127.0.0.1:1";
  return wireApply(
    {
      STARLING_TABLE: "rows",
      STARLING_BUCKET: "blobs",
      STARLING_INSTALLATION: "i",
      STARLING_SECRET_PREFIX: "starling/clusters/",
      STARLING_QUEUE_RENDER: queue("render"),
      STARLING_QUEUE_APPLY: queue("apply"),
      STARLING_QUEUE_APPLY_SLOW: queue("slow"),
      STARLING_QUEUE_REPORT: queue("report"),
      STARLING_ZONE: "spoke",
      STARLING_ZONE_CLUSTERS: "spoke=eu-*",
    },
    clusterClients({
      region: "us-east-1",
      credentials: { accessKeyId: "local", secretAccessKey: "local" },
      endpoints: { dynamo, sqs, s3, secrets: nowhere, sts: nowhere, eks: nowhere },
    }),
    { output: (line) => lines.push(line) },
  );
}

const about = (body: object) => ({
  Records: [
    {
      messageId: "m1",
      receiptHandle: "r1",
      body: JSON.stringify({ to: "apply", cluster: "c1", ...body }),
      attributes: { ApproximateReceiveCount: "1" },
    },
  ],
});
const context = { getRemainingTimeInMillis: () => 300_000 };

test("the worker says so on the cluster, so that its slot is free, and asks the cluster nothing", async () => {
  const world = new WorkerWorld({ connect: () => Promise.reject(new Error("unused")), distrust() {} });
  await world.assign("web", [configMap("shop/c")]);
  const token = { secret: "starling/clusters/c1" };
  const cluster = clusterRow({ endpoint: { server: "https://127.0.0.1:1", token }, access: { zone: "spoke" } });
  await table.write([...world.table.all(), cluster].map((put) => ({ put })));
  await worker([])(about({}), context);
  const problem = {
    reason: "NameNotServed",
    message: expect.stringMatching(
      /^zone spoke of the Cluster serves clusters named eu-\*, and not c1; .* and deploys$/,
    ),
  };
  expect((await table.get(keys.cluster("c1")))?.status.conditions).toMatchObject([
    { type: "Reachable", status: "False", ...problem },
  ]);
  expect((await table.get(keys.sync("c1", "tests", "web")))?.observed).toMatchObject({
    phase: "Unreachable",
    ...problem,
  });
});

test("a message that was sent before the zone lost the name is left to the workers of home, when the role is refused the rows", async () => {
  const denying = await startScriptedServer();
  denying.restart(({ body }) =>
    body.includes("ZONE#")
      ? { status: 200, body: "{}", headers: { "content-type": "application/x-amz-json-1.0" } }
      : {
          status: 400,
          headers: { "content-type": "application/x-amz-json-1.0" },
          body: JSON.stringify({ __type: "com.amazon.coral.service#AccessDeniedException", message: "not authorized" }),
        },
  );
  const lines: string[] = [];
  for (const body of [{}, { check: true }])
    expect(await worker(lines, denying.endpoint)(about(body), context)).toEqual({ batchItemFailures: [] });
  await denying.stop();
  const warned = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === "WARN");
  expect(warned).toMatchObject([
    { cluster: "c1", message: "left a cluster whose name this zone does not serve to the workers of home" },
    { cluster: "c1" },
  ]);
});
