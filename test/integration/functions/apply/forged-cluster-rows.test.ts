/**
 * The role of a zone writes the rows of its own clusters. A row there that calls itself another cluster must not open that one: the
 * external id, by which the role of a cluster knows the Cluster, follows from the name.
 */

import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { CreateQueueCommand } from "@aws-sdk/client-sqs";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { wireApply } from "#functions/apply/wire.ts";
import { claimDue } from "#functions/tick/claim-due.ts";
import { createBucket, createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { dueAttributes } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { clusterClients } from "#shared/lambda/cluster-clients.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { applyArn, installation, spokeCluster, startEksWorld } from "#test/support/eks-world.ts";
import { startEmulatedClients } from "#test/support/emulated-clients.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { silentLog } from "#test/support/planner-world.ts";

const eks = forEachTest(startEksWorld);
const emulated = forEachTest(() => startEmulatedClients({ seed: 7 }));
const arn = spokeCluster("spoke");
const credentials = { accessKeyId: "local", secretAccessKey: "local" };

/** Has the worker of `home` check a cluster, and returns its answer. */
async function checked(cluster: string): Promise<unknown> {
  const { aws, proxy } = emulated;
  const queue = (name: string) => `${proxy.endpoints.sqs}/000000000000/${name}`;
  const table = new DynamoTable(aws.dynamo, "rows");
  const asked = { id: "q1", at: "2026-11-20T08:00:00.000Z", by: "ana" };
  await table.write([
    { put: { ...keys.check(cluster), type: "Check", schema: rowSchema, version: 1, asked } as never },
  ]);
  const nowhere = "http://127.0.0.1:1";
  const { dynamodb: dynamo, sqs, s3 } = proxy.endpoints;
  const endpoints = { dynamo, sqs, s3, secrets: nowhere, sts: nowhere, eks: nowhere };
  const work = wireApply(
    {
      STARLING_TABLE: "rows",
      STARLING_BUCKET: "blobs",
      STARLING_INSTALLATION: installation,
      STARLING_SECRET_PREFIX: "starling/clusters/",
      STARLING_QUEUE_RENDER: queue("render"),
      STARLING_QUEUE_APPLY: queue("apply"),
      STARLING_QUEUE_APPLY_SLOW: queue("slow"),
      STARLING_QUEUE_REPORT: queue("report"),
      STARLING_ZONE: "home",
      STARLING_ZONES: "spoke",
      STARLING_ZONE_CLUSTERS: "spoke=eu-*",
    },
    { ...clusterClients({ region: "us-east-1", credentials, endpoints }), sts: eks.aws.sts, eks: eks.aws.eks },
    { output: () => {} },
  );
  const body = JSON.stringify({ to: "apply", cluster, check: true });
  const message = { messageId: "m1", receiptHandle: "r1", body, attributes: { ApproximateReceiveCount: "1" } };
  await work({ Records: [message] }, { getRemainingTimeInMillis: () => 300_000 });
  return (await table.get(keys.check(cluster)))?.answer;
}

async function store(key: object): Promise<void> {
  const plan = readPlan(await synthesize());
  await createTable(emulated.aws.dynamo, { ...only(plan.tables, "table"), name: "rows" });
  await createBucket(emulated.aws.s3, "blobs");
  for (const QueueName of ["apply", "slow", "report"])
    await emulated.aws.sqs.send(new CreateQueueCommand({ QueueName }));
  const row = clusterRow({ eks: { arn }, access: { role: { name: "starling/clusters/apply" } } });
  await emulated.aws.dynamo.send(new PutCommand({ TableName: "rows", Item: { ...row, ...key } }));
}

test("the row of a cluster itself opens the cluster by its role", async () => {
  eks.addCluster(arn);
  await store({});
  await checked("c1");
  const [assumed] = eks.server.calls();
  expect(assumed).toMatchObject({ operation: "AssumeRole", principalArn: applyArn });
  expect(eks.operations()).toContain("eks DescribeCluster");
});

test("a row below another cluster that calls itself c1 opens nothing: STS and EKS are not asked", async () => {
  eks.addCluster(arn);
  await store(keys.cluster("eu-1"));
  const answer = await checked("eu-1");
  expect(eks.operations()).toEqual([]);
  expect(answer).toMatchObject({ links: [{ link: "cluster", state: "broken" }] });
});

test("a number that JavaScript does not have, in one row, keeps no other row from being read", async () => {
  await store({});
  const { dynamo } = emulated.aws;
  const odd = keys.cluster("eu-1");
  await dynamo.send(new PutCommand({ TableName: "rows", Item: { ...clusterRow(), ...odd, name: "eu-1" } }));
  await dynamo.send(
    new UpdateItemCommand({
      ...{ TableName: "rows", Key: { pk: { S: odd.pk }, sk: { S: odd.sk } } },
      ...{
        UpdateExpression: "SET generation = :g",
        ExpressionAttributeValues: { ":g": { N: "12345678901234567890.5" } },
      },
    }),
  );
  const rows = await new DynamoTable(dynamo, "rows").getMany([odd, keys.cluster("c1")]);
  expect(rows.map(({ name }) => name).sort()).toEqual(["c1", "eu-1"]);
});

test("a due row that DynamoDB does not update keeps no other row waiting", async () => {
  const now = new Date("2026-11-20T09:00:00.000Z");
  const timer = { ...dueAttributes(keys.cluster("c1"), "2026-11-20T08:59:00.000Z") };
  await store(timer);
  const odd = { ...keys.cluster("eu-1"), type: "Cluster", schema: rowSchema, name: "eu-1", dispatches: "x" };
  await emulated.aws.dynamo.send(
    new PutCommand({ TableName: "rows", Item: { ...odd, ...timer, dueKey: "2026-11-20T08:00:00.000Z#odd" } }),
  );
  const sender = new MemorySender();
  const metrics = { count() {}, seconds() {} };
  const table = new DynamoTable(emulated.aws.dynamo, "rows");
  await claimDue({ table, sender, clock: { now: () => now }, log: silentLog, metrics });
  expect(sender.take()).toEqual([{ to: "apply", cluster: "c1" }]);
});
