import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { ConflictError } from "#shared/base/errors.ts";
import { newestRowSchema, type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import { type ScriptedServer, startScriptedServer } from "#test/support/scripted-server.ts";

/** The requests of the table to DynamoDB, and its handling of answers that no emulator gives on demand. */
let server: ScriptedServer;
let client: DynamoDBDocumentClient;
let table: DynamoTable;
beforeAll(async () => {
  server = await startScriptedServer();
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  // Without retries of the SDK, this test counts only those of the table.
  const plain = new DynamoDBClient({ region: "us-east-1", endpoint: server.endpoint, credentials, maxAttempts: 1 });
  client = DynamoDBDocumentClient.from(plain);
  table = new DynamoTable(client, "rows");
});
afterAll(async () => {
  client.destroy();
  await server.stop();
});

const keyOf = (sk: string): RowKey => ({ pk: "p", sk });
const row = (sk: string): Row => ({ ...keyOf(sk), type: "Test", schema: rowSchema, version: 1 });
const stored = (sk: string) => ({ pk: { S: "p" }, sk: { S: sk } });
const ok = (answer: unknown) => ({ status: 200, body: JSON.stringify(answer) });
const refusal = (name: string, more: object = {}) => ({
  status: name === "InternalServerError" ? 500 : 400,
  body: JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}`, message: name, ...more }),
});
const cancelled = (...CancellationReasons: readonly { readonly Code: string; readonly Message?: string }[]) =>
  refusal("TransactionCanceledException", { CancellationReasons });
const asked = () => server.requests.map(({ body }) => JSON.parse(body));
const operations = () => server.requests.map(({ headers }) => String(headers["x-amz-target"]).split(".")[1]);

describe("reads", () => {
  test("reads of rows are strongly consistent, because writes are conditional on the version that was read", async () => {
    server.restart(({ headers }) =>
      ok(String(headers["x-amz-target"]).endsWith("BatchGetItem") ? { Responses: { rows: [stored("a")] } } : {}),
    );
    await table.get(keyOf("a"));
    await table.getMany([keyOf("a")]);
    await table.query({ pk: "p" });
    expect(operations()).toEqual(["GetItem", "BatchGetItem", "Query"]);
    const [one, many, range] = asked();
    expect([one.ConsistentRead, many.RequestItems.rows.ConsistentRead, range.ConsistentRead]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("a read of a row that a newer version wrote fails with the row and its schema", async () => {
    server.restart(() => ok({ Item: { ...stored("a"), schema: { N: `${newestRowSchema + 1}` } } }));
    await expect(table.get(keyOf("a"))).rejects.toMatchObject({
      code: "NewerRow",
      retry: "permanent",
      data: { pk: "p", sk: "a", schema: newestRowSchema + 1 },
    });
  });

  test("a read of many rows asks again only for the rows that DynamoDB left out", async () => {
    server.restart((_request, index) =>
      ok(
        index === 0
          ? { Responses: { rows: [stored("a")] }, UnprocessedKeys: { rows: { Keys: [stored("b")] } } }
          : { Responses: { rows: [stored("b")] }, UnprocessedKeys: {} },
      ),
    );
    expect((await table.getMany([keyOf("a"), keyOf("b")])).map(({ sk }) => sk)).toEqual(["a", "b"]);
    expect(asked().map(({ RequestItems }) => RequestItems.rows.Keys)).toEqual([
      [stored("a"), stored("b")],
      [stored("b")],
    ]);
  });

  test("rows that DynamoDB leaves out of every answer are an error, and do not count as missing", async () => {
    server.restart(() => ok({ Responses: {}, UnprocessedKeys: { rows: { Keys: [stored("b")] } } }));
    await expect(table.getMany([keyOf("b")])).rejects.toMatchObject({
      code: "TableBusy",
      retry: "transient",
      message: "BatchGetItem left keys unprocessed",
    });
    expect(server.requests).toHaveLength(8);
  });

  test("a query of an index uses the attributes of that index, and continues where the page ended", async () => {
    const last = { statePk: { S: "s" }, stateSk: { S: "Ready#c1" }, ...stored("a") };
    server.restart(() => ok({ Items: [last], LastEvaluatedKey: last }));
    const page = await table.queryIndex({ index: "state", pk: "s", prefix: "Ready#", limit: 1 });
    expect(page.items).toEqual([{ key: { pk: "p", sk: "a" }, sort: "Ready#c1" }]);
    await table.queryIndex({ index: "state", pk: "s", after: page.next ?? "" });
    const [first, second] = asked();
    expect(first).toEqual({
      TableName: "rows",
      IndexName: "state",
      KeyConditionExpression: "#pk = :pk AND begins_with(#sk, :prefix)",
      ExpressionAttributeNames: { "#pk": "statePk", "#sk": "stateSk" },
      ExpressionAttributeValues: { ":pk": { S: "s" }, ":prefix": { S: "Ready#" } },
      Limit: 1,
    });
    expect(second).toEqual({
      TableName: "rows",
      IndexName: "state",
      KeyConditionExpression: "#pk = :pk",
      ExpressionAttributeNames: { "#pk": "statePk" },
      ExpressionAttributeValues: { ":pk": { S: "s" } },
      ExclusiveStartKey: last,
    });
  });

  test("a continue token is valid only in the partition that it came from", async () => {
    server.restart(() => ok({ Items: [stored("a")], LastEvaluatedKey: stored("a") }));
    const { next = "" } = await table.query({ pk: "p", limit: 1 });
    await expect(table.query({ pk: "q", after: next })).rejects.toMatchObject({
      code: "InvalidContinue",
      retry: "permanent",
    });
    await table.query({ pk: "p", after: next });
    expect(asked().map(({ ExclusiveStartKey }) => ExclusiveStartKey)).toEqual([undefined, stored("a")]);
  });
});

describe("a temporary failure", () => {
  const write = () => table.write([{ put: row("a"), when: "absent" }]);

  test.each([
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "InternalServerError",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ExpiredTokenException",
  ])("a write is tried again after a %s", async (name) => {
    server.restart((_request, index) => (index === 0 ? refusal(name) : ok({})));
    await write();
    expect(server.requests).toHaveLength(2);
  });

  test.each(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])(
    "a transaction is tried again after it was cancelled because of a %s",
    async (Code) => {
      server.restart((_request, index) => (index === 0 ? cancelled({ Code: "None" }, { Code }) : ok({})));
      await write();
      expect(server.requests).toHaveLength(2);
    },
  );

  test("a write is tried again after its connection broke", async () => {
    server.restart((_request, index) => (index === 0 ? "reset" : ok({})));
    await write();
    expect(server.requests).toHaveLength(2);
  });

  test("all tries of a transaction have one token, by which DynamoDB knows them, and another transaction has another", async () => {
    server.restart((_request, index) => (index < 2 ? cancelled({ Code: "TransactionConflict" }) : ok({})));
    const both = () => table.write([{ put: row("a") }, { put: row("b") }]);
    await both();
    await both();
    const [first, second, third, other] = asked().map(({ ClientRequestToken }) => ClientRequestToken);
    expect(first).toMatch(/^[-0-9a-f]{36}$/);
    expect([second, third]).toEqual([first, first]);
    expect(other).not.toBe(first);
  });

  test.each([
    { name: "conflict", answer: () => cancelled({ Code: "TransactionConflict" }), calls: 8 },
    { name: "session that has ended", answer: () => refusal("ExpiredTokenException"), calls: 8 },
    {
      name: "throttling answer",
      answer: () => refusal("ThrottlingException"),
      calls: 3,
    },
    { name: "connection reset", answer: () => "reset" as const, calls: 3 },
  ])("a $name in each of $calls tries is a transient error with its cause", async ({ answer, calls }) => {
    server.restart(answer);
    await expect(write()).rejects.toMatchObject({
      code: "TableBusy",
      retry: "transient",
      message: "DynamoDB refused all tries",
      cause: expect.any(Error),
    });
    expect(server.requests).toHaveLength(calls);
  });

  test("an update is tried again after a ThrottlingException", async () => {
    server.restart((_request, index) =>
      index === 0 ? refusal("ThrottlingException") : ok({ Attributes: stored("a") }),
    );
    expect(await table.update({ update: keyOf("a"), add: { n: 1 } })).toEqual({ pk: "p", sk: "a" });
    expect(server.requests).toHaveLength(2);
  });
});

/** Each test has one of Node's codes for an error that happens before there is an answer. */
describe("an error without an answer", () => {
  async function failing(code: string) {
    let calls = 0;
    const requestHandler = {
      handle: async () => {
        calls += 1;
        throw Object.assign(new Error("no answer"), { code });
      },
    };
    const credentials = { accessKeyId: "local", secretAccessKey: "local" };
    const plain = new DynamoDBClient({ region: "us-east-1", credentials, maxAttempts: 1, requestHandler });
    const error = await new DynamoTable(DynamoDBDocumentClient.from(plain), "rows")
      .get(keyOf("a"))
      .catch((said) => said);
    return { error, calls };
  }

  test.each(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"])(
    "the error %s is tried three times, and is transient",
    async (code) => {
      const { error, calls } = await failing(code);
      expect(error).toMatchObject({ code: "TableBusy", retry: "transient" });
      expect(calls).toBe(3);
    },
  );

  test("an error with any other code is a defect, and is passed on unchanged", async () => {
    const { error, calls } = await failing("EPROTO");
    expect(error).toMatchObject({ code: "EPROTO" });
    expect(calls).toBe(1);
  });
});

describe("a row that is put alone", () => {
  const put = { put: row("a"), when: { version: 3 } } as const;
  const refused = refusal("ConditionalCheckFailedException");
  const item = (version: number) => ({
    ...stored("a"),
    ...{ type: { S: "Test" }, schema: { N: `${rowSchema}` }, version: { N: `${version}` } },
  });

  test("a row that is put alone is no transaction, which would cost twice as much", async () => {
    server.restart(() => ok({}));
    await table.write([put]);
    await table.write([{ put: row("b"), when: "absent" }]);
    await table.write([{ put: row("c") }]);
    expect(operations()).toEqual(["PutItem", "PutItem", "PutItem"]);
    const [first, second, third] = asked();
    expect(first).toEqual({
      TableName: "rows",
      Item: item(1),
      ConditionExpression: "#version = :version",
      ExpressionAttributeNames: { "#version": "version" },
      ExpressionAttributeValues: { ":version": { N: "3" } },
    });
    expect(second.ConditionExpression).toBe("attribute_not_exists(pk)");
    expect(third.ConditionExpression).toBeUndefined();
  });

  test("a put whose condition fails at its first try is a conflict without another read", async () => {
    server.restart(() => refused);
    await expect(table.write([put])).rejects.toMatchObject({
      name: "ConflictError",
      data: { failed: [0], rows: ["p|a"] },
    });
    expect(operations()).toEqual(["PutItem"]);
  });

  test("a put counts as done if a try had no answer and the table has exactly the row that was sent", async () => {
    server.restart((_request, index) => (index === 0 ? "reset" : index === 1 ? refused : ok({ Item: item(1) })));
    await table.write([put]);
    expect(operations()).toEqual(["PutItem", "PutItem", "GetItem"]);
    expect(asked()[2].ConsistentRead).toBe(true);
  });

  test.each([
    ["another row", { Item: item(4) }],
    ["no row", {}],
  ])("a put is a conflict if a try had no answer and the table has %s", async (_what, answer) => {
    server.restart((_request, index) => (index === 0 ? "reset" : index === 1 ? refused : ok(answer)));
    await expect(table.write([put])).rejects.toBeInstanceOf(ConflictError);
    expect(operations()).toEqual(["PutItem", "PutItem", "GetItem"]);
  });

  test("a put that conflicts with a transaction is tried again", async () => {
    server.restart((_request, index) => (index === 0 ? refusal("TransactionConflictException") : ok({})));
    await table.write([put]);
    expect(operations()).toEqual(["PutItem", "PutItem"]);
  });
});

describe("appended rows", () => {
  const names = (
    rows: readonly { readonly PutRequest: { readonly Item: { readonly sk: { readonly S: string } } } }[],
  ) => rows.map(({ PutRequest }) => PutRequest.Item.sk.S);
  const left = (...sks: readonly string[]) => ({
    UnprocessedItems: { rows: sks.map((sk) => ({ PutRequest: { Item: stored(sk) } })) },
  });

  test("appended rows are put in batches of 25, each once and without a condition", async () => {
    server.restart(() => ok({}));
    const sks = Array.from({ length: 60 }, (_, index) => `e${index}`);
    await table.append([...sks, "e0"].map(row));
    expect(operations()).toEqual(["BatchWriteItem", "BatchWriteItem", "BatchWriteItem"]);
    const batches = asked().map(({ RequestItems }) => names(RequestItems.rows));
    expect(batches.map(({ length }) => length)).toEqual([25, 25, 10]);
    expect(batches.flat()).toEqual(sks);
  });

  test("only the rows that DynamoDB left unprocessed are put again", async () => {
    server.restart((_request, index) => ok(index === 0 ? left("b", "c") : index === 1 ? left("c") : {}));
    await table.append(["a", "b", "c"].map(row));
    expect(asked().map(({ RequestItems }) => names(RequestItems.rows))).toEqual([["a", "b", "c"], ["b", "c"], ["c"]]);
  });

  test("appended rows that stay unprocessed are a transient error", async () => {
    server.restart(() => ok(left("a")));
    await expect(table.append([row("a")])).rejects.toMatchObject({
      code: "TableBusy",
      retry: "transient",
      message: "BatchWriteItem left rows unprocessed",
    });
    expect(server.requests).toHaveLength(8);
  });
});

describe("a permanent failure", () => {
  const writes = [
    { put: row("a"), when: "absent" },
    { delete: row("b"), when: { version: 3 } },
    { check: row("c"), when: { version: 4 } },
    { update: keyOf("d"), set: { mark: 1 } },
  ] as const;

  test("a condition that does not hold is a conflict about its row, even beside a conflict of transactions", async () => {
    const failed = { Code: "ConditionalCheckFailed" };
    server.restart(() => cancelled({ Code: "TransactionConflict" }, failed, { Code: "None" }, failed));
    const refused = table.write(writes);
    await expect(refused).rejects.toBeInstanceOf(ConflictError);
    await expect(refused).rejects.toMatchObject({
      message: "rows changed after they were read: p|b, p|d",
      data: { failed: [1, 3], rows: ["p|b", "p|d"] },
    });
    expect(server.requests).toHaveLength(1);
  });

  test("an update whose condition does not hold is a conflict about its row", async () => {
    server.restart(() => refusal("ConditionalCheckFailedException"));
    const update = { update: keyOf("a"), set: { n: 2 }, when: [{ attribute: "n", equals: 1 }] } as const;
    await expect(table.update(update)).rejects.toMatchObject({ data: { failed: [0], rows: ["p|a"] } });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    "Item size to update has exceeded the maximum allowed size",
    "Item size has exceeded the maximum allowed size",
  ])("the error for an update that makes a row too large names the row: %s", async (Message) => {
    server.restart(() =>
      cancelled({ Code: "None" }, { Code: "None" }, { Code: "None" }, { Code: "ValidationError", Message }),
    );
    await expect(table.write(writes)).rejects.toMatchObject({
      code: "RowTooLarge",
      message: expect.stringContaining("row p|d would become too large with this update"),
      retry: "permanent",
      data: { row: { pk: "p", sk: "d" } },
    });
    expect(server.requests).toHaveLength(1);
  });

  test("any other refusal is passed on unchanged", async () => {
    server.restart(() => cancelled({ Code: "None" }, { Code: "ValidationError", Message: "another" }));
    await expect(table.write(writes)).rejects.toMatchObject({ name: "TransactionCanceledException" });
    server.restart(() => refusal("AccessDeniedException"));
    await expect(table.write(writes)).rejects.toMatchObject({ name: "AccessDeniedException" });
    await expect(table.get(keyOf("a"))).rejects.toMatchObject({ name: "AccessDeniedException" });
    expect(server.requests).toHaveLength(2);
  });
});

test("the table calls nothing when there is nothing to read or write", async () => {
  server.restart(() => "reset");
  await table.write([]);
  expect(await table.getMany([])).toEqual([]);
  expect(await table.query({ pk: "p", between: ["b", "a"] })).toEqual({ items: [] });
  expect(server.requests).toEqual([]);
});

test("each write of a transaction has exactly the conditions that it is given", async () => {
  server.restart(() => ok({}));
  await table.write([
    { put: row("a"), when: "absent" },
    { put: row("b"), when: { version: 3 } },
    { put: row("c") },
    { delete: row("d"), when: { version: 3 } },
    {
      check: row("e"),
      when: [
        { attribute: "n", equals: 1 },
        { attribute: "gone", absent: true },
      ],
    },
    { update: keyOf("f"), set: { n: 1 }, add: { m: 2 }, remove: ["old"] },
  ]);
  const version = {
    ConditionExpression: "#version = :version",
    ExpressionAttributeNames: { "#version": "version" },
    ExpressionAttributeValues: { ":version": { N: "3" } },
  };
  const TableName = "rows";
  const item = (sk: string) => ({
    ...stored(sk),
    type: { S: "Test" },
    schema: { N: `${rowSchema}` },
    version: { N: "1" },
  });
  expect(asked()[0].TransactItems).toEqual([
    { Put: { TableName, Item: item("a"), ConditionExpression: "attribute_not_exists(pk)" } },
    { Put: { TableName, Item: item("b"), ...version } },
    { Put: { TableName, Item: item("c") } },
    { Delete: { TableName, Key: stored("d"), ...version } },
    {
      ConditionCheck: {
        TableName,
        Key: stored("e"),
        ConditionExpression: "#c0 = :c0 AND attribute_not_exists(#c1)",
        ExpressionAttributeNames: { "#c0": "n", "#c1": "gone" },
        ExpressionAttributeValues: { ":c0": { N: "1" } },
      },
    },
    {
      Update: {
        TableName,
        Key: stored("f"),
        UpdateExpression: "SET #SET0 = :SET0 ADD #ADD0 :ADD0 REMOVE #REMOVE0",
        ExpressionAttributeNames: { "#SET0": "n", "#ADD0": "m", "#REMOVE0": "old" },
        ExpressionAttributeValues: { ":SET0": { N: "1" }, ":ADD0": { N: "2" } },
      },
    },
  ]);
});
