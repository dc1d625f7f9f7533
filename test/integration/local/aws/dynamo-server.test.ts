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
import { startDynamo } from "#local/aws/dynamo-server.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function clientOf(endpoint: string): DynamoDBClient {
  return new DynamoDBClient({
    endpoint,
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

async function untilFree(port: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await isFree(port))) {
    if (Date.now() > deadline) throw new Error(`Port ${port} is still in use`);
    await sleep(20);
  }
}

test("a table outlives the server when there is a state folder", async () => {
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

test("stop ends the process, and stopping twice is harmless", async () => {
  const server = await startDynamo();
  const port = Number(new URL(server.endpoint).port);
  expect(await isFree(port)).toBe(false);
  await server.stop();
  await server.stop();
  expect(await isFree(port)).toBe(true);
});

test("an occupied port is named with the server's own words", async () => {
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
    import { startDynamo } from "#local/aws/dynamo-server.ts";
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
