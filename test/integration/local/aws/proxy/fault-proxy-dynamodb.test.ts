import { randomUUID } from "node:crypto";
import {
  BatchGetItemCommand,
  type BatchGetItemCommandInput,
  BatchWriteItemCommand,
  CreateTableCommand,
  DeleteItemCommand,
  GetItemCommand,
  ListTablesCommand,
  PutItemCommand,
  QueryCommand,
  type QueryCommandInput,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type DynamoFaults, quiet } from "#local/aws/wire/fault-options.ts";
import { type AwsEmulators, startAwsEmulators } from "#test/support/aws-emulators.ts";

let aws: AwsEmulators;
let impatient: ReturnType<AwsEmulators["clients"]>["dynamodb"];

beforeAll(async () => {
  aws = await startAwsEmulators({ seed: 3 });
  impatient = aws.clients({ maxAttempts: 1 }).dynamodb;
  await aws.dynamodb.send(
    new CreateTableCommand({
      TableName: "rows",
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: ["pk", "sk", "due"].map((name) => ({ AttributeName: name, AttributeType: "S" as const })),
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: "due",
          KeySchema: [
            { AttributeName: "due", KeyType: "HASH" },
            { AttributeName: "sk", KeyType: "RANGE" },
          ],
          Projection: { ProjectionType: "KEYS_ONLY" },
        },
      ],
    }),
  );
});
afterAll(() => aws.stop());
afterEach(() => aws.proxy.setFaults(quiet));

function disturb(faults: Partial<DynamoFaults>): void {
  aws.proxy.setFaults({ ...quiet, dynamodb: { ...quiet.dynamodb, ...faults } });
}

const key = (pk: string, sk = "a") => ({ pk: { S: pk }, sk: { S: sk } });
const put = (pk: string, sk = "a") => new PutItemCommand({ TableName: "rows", Item: key(pk, sk) });

async function exists(pk: string, sk = "a"): Promise<boolean> {
  const { Item } = await aws.dynamodb.send(
    new GetItemCommand({ TableName: "rows", Key: key(pk, sk), ConsistentRead: true }),
  );
  return Item !== undefined;
}

async function indexed(due: string): Promise<string[]> {
  const { Items = [] } = await aws.dynamodb.send(
    new QueryCommand({
      TableName: "rows",
      IndexName: "due",
      KeyConditionExpression: "due = :due",
      ExpressionAttributeValues: { ":due": { S: due } },
    }),
  );
  return Items.map(({ sk }) => sk?.S ?? "");
}

test("the error of a conflicting transaction names the action in conflict, and nothing is written", async () => {
  disturb({ transactionConflict: 1 });
  const [first, second] = [randomUUID(), randomUUID()];
  const transaction = new TransactWriteItemsCommand({
    TransactItems: [first, second].map((pk) => ({ Put: { TableName: "rows", Item: key(pk) } })),
  });
  const error = await aws.dynamodb.send(transaction).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: "TransactionCanceledException", $metadata: { attempts: 1 } });
  const { CancellationReasons, message } = error as { CancellationReasons: { Code: string }[]; message: string };
  const codes = CancellationReasons.map(({ Code }) => Code);
  expect([...codes].sort()).toEqual(["None", "TransactionConflict"]);
  expect(message).toContain(`[${codes.join(", ")}]`);
  disturb({});
  expect([await exists(first), await exists(second)]).toEqual([false, false]);
});

test("transactions that read and single writes can conflict, and reads and batches cannot", async () => {
  disturb({ transactionConflict: 1 });
  const read = new TransactGetItemsCommand({ TransactItems: [{ Get: { TableName: "rows", Key: key("x") } }] });
  await expect(aws.dynamodb.send(read)).rejects.toMatchObject({ name: "TransactionCanceledException" });
  const conflict = { name: "TransactionConflictException", $metadata: { attempts: 1 } };
  await expect(aws.dynamodb.send(put("x"))).rejects.toMatchObject(conflict);
  await expect(aws.dynamodb.send(new UpdateItemCommand({ TableName: "rows", Key: key("x") }))).rejects.toMatchObject(
    conflict,
  );
  await expect(aws.dynamodb.send(new DeleteItemCommand({ TableName: "rows", Key: key("x") }))).rejects.toMatchObject(
    conflict,
  );
  expect(await exists("x")).toBe(false);
  await aws.dynamodb.send(new BatchWriteItemCommand({ RequestItems: { rows: [{ PutRequest: { Item: key("x") } }] } }));
});

test("both kinds of throttling occur, and the SDK repeats the calls", async () => {
  disturb({ throttle: 1 });
  const names = new Set<string>();
  for (let attempt = 0; attempt < 10; attempt++) {
    const error = await impatient.send(put("throttled")).catch((thrown: Error) => thrown);
    names.add((error as Error).name);
  }
  expect([...names].sort()).toEqual(["ProvisionedThroughputExceededException", "ThrottlingException"]);
  aws.proxy.resetCalls();
  const remove = aws.proxy.intercept({ after: () => disturb({}) });
  await aws.dynamodb.send(put("throttled"));
  remove();
  expect(aws.proxy.calls()["dynamodb:PutItem"]).toBe(2);
});

test("a batch may be written in part, and the rest can be written again", async () => {
  disturb({ unprocessed: 1 });
  const pk = randomUUID();
  const all = ["a", "b", "c", "d", "e"];
  let RequestItems: BatchWriteRequests = { rows: all.map((sk) => ({ PutRequest: { Item: key(pk, sk) } })) };
  const sizes: number[] = [];
  while (RequestItems.rows !== undefined) {
    sizes.push(RequestItems.rows.length);
    const { UnprocessedItems = {} } = await aws.dynamodb.send(new BatchWriteItemCommand({ RequestItems }));
    RequestItems = UnprocessedItems as BatchWriteRequests;
  }
  expect(sizes[0]).toBe(5);
  expect(sizes.length).toBeGreaterThan(1);
  for (const sk of all) expect(await exists(pk, sk)).toBe(true);
});
type BatchWriteRequests = { rows?: { PutRequest: { Item: ReturnType<typeof key> } }[] };

test("a batch may be read in part, and the answer has the options of the request for the rest", async () => {
  const pk = randomUUID();
  const all = ["a", "b", "c"];
  for (const sk of all) await aws.dynamodb.send(put(pk, sk));
  disturb({ unprocessed: 1 });
  const found: string[] = [];
  let RequestItems: NonNullable<BatchGetItemCommandInput["RequestItems"]> = {
    rows: { Keys: all.map((sk) => key(pk, sk)), ConsistentRead: true, ProjectionExpression: "sk" },
  };
  let rounds = 0;
  while (Object.keys(RequestItems).length > 0) {
    rounds += 1;
    expect(RequestItems.rows).toMatchObject({ ConsistentRead: true, ProjectionExpression: "sk" });
    const { Responses, UnprocessedKeys = {} } = await aws.dynamodb.send(new BatchGetItemCommand({ RequestItems }));
    found.push(...(Responses?.rows ?? []).map(({ sk }) => sk?.S ?? ""));
    RequestItems = UnprocessedKeys;
  }
  expect(rounds).toBeGreaterThan(1);
  expect(found.sort()).toEqual(all);
});

test("a page without a limit may end early, and has the key with which the next one starts", async () => {
  const pk = randomUUID();
  const all = ["a", "b", "c"];
  for (const sk of all) await aws.dynamodb.send(put(pk, sk));
  disturb({ shortPage: 1 });
  const query = {
    TableName: "rows",
    KeyConditionExpression: "pk = :pk",
    ExpressionAttributeValues: { ":pk": { S: pk } },
  };
  const found: string[][] = [];
  for (let after: QueryCommandInput["ExclusiveStartKey"]; found.length < 4; ) {
    const { Items = [], LastEvaluatedKey } = await aws.dynamodb.send(
      new QueryCommand({ ...query, ExclusiveStartKey: after }),
    );
    found.push(Items.map(({ sk }) => sk?.S ?? ""));
    after = LastEvaluatedKey;
    if (after === undefined) break;
  }
  expect(found.filter((page) => page.length > 0)).toEqual([["a"], ["b"], ["c"]]);
  const { Items, LastEvaluatedKey } = await aws.dynamodb.send(new QueryCommand({ ...query, Limit: 3 }));
  expect([Items?.length, LastEvaluatedKey?.sk?.S]).toEqual([3, "c"]);
});

test("an index lags behind all kinds of writes, and catches up", async () => {
  const due = randomUUID();
  const item = (sk: string) => ({ ...key(due, sk), due: { S: due } });
  await aws.dynamodb.send(new PutItemCommand({ TableName: "rows", Item: item("old") }));
  disturb({ indexLagMs: 1_000_000 });
  expect(await indexed(due)).toEqual(["old"]);
  await aws.dynamodb.send(new PutItemCommand({ TableName: "rows", Item: item("put") }));
  await aws.dynamodb.send(
    new UpdateItemCommand({
      TableName: "rows",
      Key: key(due, "updated"),
      UpdateExpression: "SET due = :due",
      ExpressionAttributeValues: { ":due": { S: due } },
    }),
  );
  await aws.dynamodb.send(
    new TransactWriteItemsCommand({
      TransactItems: [
        { Put: { TableName: "rows", Item: item("transacted") } },
        { Delete: { TableName: "rows", Key: key(due, "old") } },
        {
          ConditionCheck: { TableName: "rows", Key: key(due, "none"), ConditionExpression: "attribute_not_exists(pk)" },
        },
      ],
    }),
  );
  await aws.dynamodb.send(
    new BatchWriteItemCommand({ RequestItems: { rows: [{ PutRequest: { Item: item("batched") } }] } }),
  );
  expect(await exists(due, "old")).toBe(false);
  expect(await indexed(due)).toEqual(["old"]);
  expect((await aws.dynamodb.send(new ListTablesCommand({}))).TableNames).toEqual(["rows"]);

  disturb({});
  const after = ["batched", "put", "transacted", "updated"];
  expect(await indexed(due)).toEqual(after);

  disturb({ indexLagMs: 50 });
  expect(await indexed(due)).toEqual(after);
  await aws.dynamodb.send(new DeleteItemCommand({ TableName: "rows", Key: key(due, "put") }));
  await aws.dynamodb.send(new PutItemCommand({ TableName: "rows", Item: item("late") }));
  await expect.poll(() => indexed(due), { timeout: 5000 }).toEqual(["batched", "late", "transacted", "updated"]);
});

test("a quiet proxy refuses, splits and delays nothing", async () => {
  const due = randomUUID();
  const injected = aws.proxy.injected();
  for (let count = 0; count < 50; count++) {
    const sk = `${count}`.padStart(2, "0");
    await impatient.send(new PutItemCommand({ TableName: "rows", Item: { ...key(due, sk), due: { S: due } } }));
    expect(await indexed(due)).toHaveLength(count + 1);
  }
  const { UnprocessedItems } = await impatient.send(
    new BatchWriteItemCommand({
      RequestItems: { rows: [{ PutRequest: { Item: key("q", "1") } }, { PutRequest: { Item: key("q", "2") } }] },
    }),
  );
  expect(UnprocessedItems).toEqual({});
  expect(aws.proxy.injected()).toEqual(injected);
});
