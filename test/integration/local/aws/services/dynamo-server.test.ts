import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateTableCommand, DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, expect, test } from "vitest";
import { type DynamoServer, startDynamo } from "#local/aws/services/dynamo-server.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function clientOf(endpoint: string | undefined): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: endpoint ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
  });
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, "127.0.0.1");
  const outcome = await Promise.race([
    once(server, "listening").then(() => true),
    once(server, "error").then(() => false),
  ]).catch(() => false);
  if (outcome) server.close();
  return outcome;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function untilFree(port: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await isFree(port))) {
    if (Date.now() > deadline) throw new Error(`Port ${port} is still in use`);
    await sleep(20);
  }
}

test("the next server has the same table if there is a state folder", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "starling-dynamo-"));
  cleanups.push(() => rm(stateDir, { recursive: true }));
  const first = await startDynamo({ stateDir });
  await clientOf(first.endpoint).send(
    new CreateTableCommand({
      TableName: "rows",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
    }),
  );
  await first.stop();
  const second = await startDynamo({ stateDir });
  cleanups.push(() => second.stop());
  expect(second.endpoint).not.toBe(first.endpoint);
  expect((await clientOf(second.endpoint).send(new ListTablesCommand({}))).TableNames).toEqual(["rows"]);
});

test("stop ends the process, and may be called twice", async () => {
  const server = await startDynamo();
  const port = Number(new URL(server.endpoint ?? "").port);
  expect(await isFree(port)).toBe(false);
  await server.stop();
  await server.stop();
  expect(await isFree(port)).toBe(true);
});

test("the error for an occupied port names it", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  cleanups.push(async () => holder.close());
  await once(holder, "listening");
  const address = holder.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await expect(startDynamo({ port })).rejects.toThrow(`port ${port} is already in use`);
});

test.each([["SIGKILL"], ["SIGINT"], ["SIGTERM"]] as const)(
  "the server ends when its parent dies by %s",
  async (signal) => {
    const program = `
    import { type DynamoServer, startDynamo } from "#local/aws/services/dynamo-server.ts";
    console.log((await startDynamo()).endpoint);
    setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
      cwd: import.meta.dirname,
    });
    const [endpoint] = await once(createInterface({ input: parent.stdout }), "line");
    const port = Number(new URL(endpoint).port);
    expect(await isFree(port)).toBe(false);
    parent.kill(signal);
    await once(parent, "exit");
    await untilFree(port);
  },
);

test("a server without a port ends when its parent dies", async () => {
  const program = `
    import { type DynamoServer, startDynamo } from "#local/aws/services/dynamo-server.ts";
    console.log((await startDynamo({ transport: "pipe" })).pid);
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: import.meta.dirname,
  });
  const [pid] = await once(createInterface({ input: parent.stdout }), "line");
  expect(() => process.kill(Number(pid), 0)).not.toThrow();
  parent.kill("SIGKILL");
  await once(parent, "exit");
  await expect.poll(() => isAlive(Number(pid)), { timeout: 10_000 }).toBe(false);
});

test("the next server without a port has the same table, and requests to a stopped server are refused", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "starling-dynamo-"));
  cleanups.push(() => rm(stateDir, { recursive: true }));
  const ask = (server: DynamoServer, operation: string, body: object) =>
    server.send({
      method: "POST",
      path: "/",
      headers: { "x-amz-target": `DynamoDB_20120810.${operation}` },
      body: Buffer.from(JSON.stringify(body)),
    });
  const first = await startDynamo({ stateDir, transport: "pipe" });
  const table = {
    TableName: "rows",
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }],
  };
  expect((await ask(first, "CreateTable", table)).status).toBe(200);
  const again = await ask(first, "CreateTable", table);
  expect([again.status, JSON.parse(again.body.toString()).__type]).toEqual([
    400,
    "com.amazonaws.dynamodb.v20120810#ResourceInUseException",
  ]);
  expect((await ask(first, "DescribeEverything", {})).body.toString()).toContain("UnknownOperationException");
  await first.stop();
  await first.stop();
  await expect(ask(first, "ListTables", {})).rejects.toThrow("the local DynamoDB ended: exit code 0");
  const second = await startDynamo({ stateDir, transport: "pipe" });
  cleanups.push(() => second.stop());
  expect(JSON.parse((await ask(second, "ListTables", {})).body.toString())).toEqual({ TableNames: ["rows"] });
});
