/** The last deliveries that a Receiver records: requests over HTTP, and the calls that DynamoDB sees. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import { type HttpFront, startHttpFront } from "#local/aws/lambda/http-front.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { createTable } from "#local/aws/services/create-resources.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { recorded } from "#test/support/webhook-senders.ts";
import { WebhookWorld } from "#test/support/webhook-world.ts";

let emulated: EmulatedClients;
let table: DynamoTable;
let front: HttpFront;
/** Two processes of the function, which know nothing of each other. */
let processes: readonly [WebhookWorld, WebhookWorld];
let turn = 0;
let at = "";
let number = 0;

beforeAll(async () => {
  emulated = await startEmulatedClients({ seed: 12 });
  const deployed = only(readPlan(await synthesize()).tables, "table");
  await createTable(emulated.aws.dynamo, deployed);
  table = new DynamoTable(emulated.aws.dynamo, deployed.name);
  const webhook = sharedSandbox((event) => processes[turn++ % 2 === 0 ? 0 : 1].handle(event));
  front = await startHttpFront({
    routes: [
      {
        routeKey: "POST /hook/r/{receiver}",
        authorization: "none",
        lambda: lambdaFunction({ functionName: "webhook", timeoutSeconds: 10, newSandbox: () => webhook }),
      },
    ],
    principals: new Principals([]),
  });
});
afterAll(async () => {
  await front.stop();
  await emulated.stop();
});

beforeEach(async () => {
  processes = [new WebhookWorld(table), new WebhookWorld(table)];
  await processes[0].addSource("main");
  number += 1;
  at = await processes[0].addReceiver(`hook-${number}`, { provider: "github" });
});

const later = (seconds: number) => {
  for (const each of processes) each.now = new Date(each.now.getTime() + seconds * 1000);
};
const row = () => table.get(keys.deliveries(at.slice(2)));

async function deliver(secret: string, more: Readonly<Record<string, string>> = {}, path = at): Promise<number> {
  const { headers, body } = recorded("github", "push", secret);
  const answer = await fetch(`${front.url}/hook/${path}`, { method: "POST", headers: { ...headers, ...more }, body });
  await answer.arrayBuffer();
  return answer.status;
}

/** The calls of each operation that DynamoDB got meanwhile. */
async function callsOf(work: () => Promise<void>) {
  const before = emulated.proxy.calls();
  await work();
  const after = emulated.proxy.calls();
  const of = (operation: string) => (after[`dynamodb:${operation}`] ?? 0) - (before[`dynamodb:${operation}`] ?? 0);
  const writes = ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"].map(of);
  return { writes: writes.reduce((sum, one) => sum + one), reads: of("GetItem") };
}

async function storm(secret: string, parts: number): Promise<void> {
  for (let part = 0; part < parts; part++) await Promise.all(Array.from({ length: 20 }, () => deliver(secret)));
}

test("1,000 deliveries that nobody signed cost two writes in a minute, and a storm hides no genuine delivery", async () => {
  const seen = await callsOf(() => storm("wrong", 50));
  // Both processes may have read that there is no row yet.
  expect(seen.writes).toBeLessThanOrEqual(2);
  expect(seen.writes).toBeGreaterThan(0);
  // Each request reads the Receiver, and each process reads the record once.
  expect(seen.reads).toBeLessThanOrEqual(1000 + 4);
  expect(await callsOf(async () => void (await deliver("s3cret")))).toMatchObject({ writes: 1 });
  expect(await row()).toMatchObject({
    accepted: { at: "2026-01-01T01:00:00.000Z", event: "push", polled: 1 },
    refused: { status: 401, reason: "the request does not prove that its sender knows a secret", event: "push" },
  });
  later(61);
  const next = await callsOf(async () => {
    await deliver("wrong");
    await deliver("wrong");
    await deliver("wrong");
  });
  expect(next.writes).toBe(1);
  expect(await row()).toMatchObject({
    accepted: { at: "2026-01-01T01:00:00.000Z" },
    refused: { at: "2026-01-01T01:01:01.000Z" },
  });
}, 120_000);

test("200 accepted deliveries cost two writes in a minute, too", async () => {
  expect((await callsOf(() => storm("s3cret", 10))).writes).toBeLessThanOrEqual(2);
}, 120_000);

test("a URL that no Receiver has is never written", async () => {
  const none = `r/${"0".repeat(40)}`;
  const seen = await callsOf(async () => {
    for (let count = 0; count < 10; count++) expect(await deliver("wrong", {}, none)).toBe(404);
  });
  expect(seen.writes).toBe(0);
  expect(await table.get(keys.deliveries("0".repeat(40)))).toBeUndefined();
});

test("a stranger chooses no text of a record, and a test that nobody signed is no delivery", async () => {
  await deliver("wrong", { "x-github-event": "owned-by-a-stranger" });
  expect((await row())?.refused).toEqual({
    at: "2026-01-01T01:00:00.000Z",
    status: 401,
    reason: "the request does not prove that its sender knows a secret",
  });
  const ping = await processes[0].addReceiver(`azure-${number}`, { provider: "bitbucket-server" });
  const test = { method: "POST", headers: { "x-event-key": "diagnostics:ping" }, body: "{}" };
  expect((await fetch(`${front.url}/hook/${ping}`, test)).status).toBe(200);
  expect(await table.get(keys.deliveries(ping.slice(2)))).toBeUndefined();
});

test("a secret without a value, a suspension and an event that is not followed are recorded as what they are", async () => {
  processes[0].tokens.one = "";
  processes[1].tokens.one = "";
  expect(await deliver("s3cret")).toBe(503);
  expect((await row())?.refused).toMatchObject({ status: 503, reason: "no secret" });
  const suspended = { by: "me", at: "2026-01-01T00:00:00.000Z", number: 1 };
  at = await processes[0].addReceiver(`held-${number}`, { provider: "github", operations: { suspended } });
  expect(await deliver("s3cret")).toBe(503);
  expect((await row())?.refused).toMatchObject({ status: 503, reason: "the Receiver is suspended" });
  at = await processes[0].addReceiver(`tags-${number}`, { provider: "github", secrets: ["two"] });
  for (const each of processes) each.tokens.two = '{"token":"s3cret"}';
  expect(await deliver("s3cret", { "x-github-event": "issues" })).toBe(202);
  expect((await row())?.accepted).toEqual({ at: "2026-01-01T01:00:00.000Z", event: "issues", polled: 0 });
});

test("a table that refuses the record changes no answer", async () => {
  const release = emulated.proxy.intercept({
    before: ({ operation }) => (operation === "PutItem" ? "reset" : undefined),
  });
  try {
    expect(await deliver("s3cret")).toBe(202);
  } finally {
    release();
  }
  expect(await row()).toBeUndefined();
  expect(processes.flatMap(({ lines }) => lines).join()).toContain("a delivery was not recorded");
});
