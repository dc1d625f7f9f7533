import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { ConflictError } from "#shared/base/errors.ts";
import { type Row, type RowKey, rowSchema } from "#shared/fleet/rows/row.ts";
import { type ScriptedServer, startScriptedServer } from "#test/support/scripted-server.ts";

/** What the table asks of DynamoDB, and what it makes of answers that no emulator gives on demand. */
let server: ScriptedServer;
let client: DynamoDBDocumentClient;
let table: DynamoTable;
beforeAll(async () => {
  server = await startScriptedServer();
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  // The tries that are counted here are the table's own.
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
  test("of rows are consistent: the newest version is what a write is conditional on", async () => {
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

  test("of what a newer version wrote are refused, with the row and its schema", async () => {
    server.restart(() => ok({ Item: { ...stored("a"), schema: { N: `${rowSchema + 1}` } } }));
    await expect(table.get(keyOf("a"))).rejects.toMatchObject({
      code: "NewerRow",
      retry: "permanent",
      data: { pk: "p", sk: "a", schema: rowSchema + 1 },
    });
  });

  test("of many rows ask again for those that were left out, and for no others", async () => {
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

  test("that leave out the same rows for ever end, and are not taken for rows that do not exist", async () => {
    server.restart(() => ok({ Responses: {}, UnprocessedKeys: { rows: { Keys: [stored("b")] } } }));
    await expect(table.getMany([keyOf("b")])).rejects.toMatchObject({
      code: "TableBusy",
      retry: "transient",
      message: "BatchGetItem left keys unprocessed",
    });
    expect(server.requests).toHaveLength(8);
  });

  test("of an index ask for it by its attributes, and go on where the page ended", async () => {
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

  test("go on in the partition that the token came from, and in no other", async () => {
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

describe("what passes is tried again", () => {
  const write = () => table.write([{ put: row("a"), when: "absent" }]);

  test.each([
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "InternalServerError",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ExpiredTokenException",
  ])("%s", async (name) => {
    server.restart((_request, index) => (index === 0 ? refusal(name) : ok({})));
    await write();
    expect(server.requests).toHaveLength(2);
  });

  test.each(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])(
    "a transaction that was cancelled because of a %s",
    async (Code) => {
      server.restart((_request, index) => (index === 0 ? cancelled({ Code: "None" }, { Code }) : ok({})));
      await write();
      expect(server.requests).toHaveLength(2);
    },
  );

  test("a connection that broke", async () => {
    server.restart((_request, index) => (index === 0 ? "reset" : ok({})));
    await write();
    expect(server.requests).toHaveLength(2);
  });

  test("with one token, by which DynamoDB knows a try that it has done; another write has another", async () => {
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
    { name: "conflicts eight times", answer: () => cancelled({ Code: "TransactionConflict" }), calls: 8 },
    { name: "a session that has ended, likewise", answer: () => refusal("ExpiredTokenException"), calls: 8 },
    {
      name: "what the SDK tries three times, too, three times",
      answer: () => refusal("ThrottlingException"),
      calls: 3,
    },
    { name: "a network that is down, likewise", answer: () => "reset" as const, calls: 3 },
  ])("$name, and then it is a transient error with its cause", async ({ answer, calls }) => {
    server.restart(answer);
    await expect(write()).rejects.toMatchObject({
      code: "TableBusy",
      retry: "transient",
      message: "DynamoDB refused all tries",
      cause: expect.any(Error),
    });
    expect(server.requests).toHaveLength(calls);
  });

  test("an update, too", async () => {
    server.restart((_request, index) =>
      index === 0 ? refusal("ThrottlingException") : ok({ Attributes: stored("a") }),
    );
    expect(await table.update({ update: keyOf("a"), add: { n: 1 } })).toEqual({ pk: "p", sk: "a" });
    expect(server.requests).toHaveLength(2);
  });
});

/** By the names that Node gives to what goes wrong before there is an answer. */
describe("a network without an answer", () => {
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
    "passes: %s",
    async (code) => {
      const { error, calls } = await failing(code);
      expect(error).toMatchObject({ code: "TableBusy", retry: "transient" });
      expect(calls).toBe(3);
    },
  );

  test("of any other name is a defect, and stays as it is", async () => {
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

  test("is no transaction, which would cost twice as much", async () => {
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

  test("and is not what was read is a conflict, however alike the row is that is there", async () => {
    server.restart(() => refused);
    await expect(table.write([put])).rejects.toMatchObject({
      name: "ConflictError",
      data: { failed: [0], rows: ["p|a"] },
    });
    expect(operations()).toEqual(["PutItem"]);
  });

  test("is there after a try without an answer, where it is as it was sent", async () => {
    server.restart((_request, index) => (index === 0 ? "reset" : index === 1 ? refused : ok({ Item: item(1) })));
    await table.write([put]);
    expect(operations()).toEqual(["PutItem", "PutItem", "GetItem"]);
    expect(asked()[2].ConsistentRead).toBe(true);
  });

  test.each([
    ["another", { Item: item(4) }],
    ["none", {}],
  ])("is a conflict after a try without an answer where there is %s", async (_what, answer) => {
    server.restart((_request, index) => (index === 0 ? "reset" : index === 1 ? refused : ok(answer)));
    await expect(table.write([put])).rejects.toBeInstanceOf(ConflictError);
    expect(operations()).toEqual(["PutItem", "PutItem", "GetItem"]);
  });

  test("is tried again where it met a transaction", async () => {
    server.restart((_request, index) => (index === 0 ? refusal("TransactionConflictException") : ok({})));
    await table.write([put]);
    expect(operations()).toEqual(["PutItem", "PutItem"]);
  });
});

describe("rows that stand by themselves", () => {
  const names = (
    rows: readonly { readonly PutRequest: { readonly Item: { readonly sk: { readonly S: string } } } }[],
  ) => rows.map(({ PutRequest }) => PutRequest.Item.sk.S);
  const left = (...sks: readonly string[]) => ({
    UnprocessedItems: { rows: sks.map((sk) => ({ PutRequest: { Item: stored(sk) } })) },
  });

  test("are put in batches of 25, each of them once, whatever is there", async () => {
    server.restart(() => ok({}));
    const sks = Array.from({ length: 60 }, (_, index) => `e${index}`);
    await table.append([...sks, "e0"].map(row));
    expect(operations()).toEqual(["BatchWriteItem", "BatchWriteItem", "BatchWriteItem"]);
    const batches = asked().map(({ RequestItems }) => names(RequestItems.rows));
    expect(batches.map(({ length }) => length)).toEqual([25, 25, 10]);
    expect(batches.flat()).toEqual(sks);
  });

  test("that DynamoDB leaves are put again, and no others", async () => {
    server.restart((_request, index) => ok(index === 0 ? left("b", "c") : index === 1 ? left("c") : {}));
    await table.append(["a", "b", "c"].map(row));
    expect(asked().map(({ RequestItems }) => names(RequestItems.rows))).toEqual([["a", "b", "c"], ["b", "c"], ["c"]]);
  });

  test("that it leaves for ever are an error that may pass", async () => {
    server.restart(() => ok(left("a")));
    await expect(table.append([row("a")])).rejects.toMatchObject({
      code: "TableBusy",
      retry: "transient",
      message: "BatchWriteItem left rows unprocessed",
    });
    expect(server.requests).toHaveLength(8);
  });
});

describe("what does not pass is told at once", () => {
  const writes = [
    { put: row("a"), when: "absent" },
    { delete: row("b"), when: { version: 3 } },
    { check: row("c"), when: { version: 4 } },
    { update: keyOf("d"), set: { mark: 1 } },
  ] as const;

  test("a condition that does not hold is a conflict about its row, also beside a transaction that passes", async () => {
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

  test("the condition of an update, likewise", async () => {
    server.restart(() => refusal("ConditionalCheckFailedException"));
    const update = { update: keyOf("a"), set: { n: 2 }, when: [{ attribute: "n", equals: 1 }] } as const;
    await expect(table.update(update)).rejects.toMatchObject({ data: { failed: [0], rows: ["p|a"] } });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    "Item size to update has exceeded the maximum allowed size",
    "Item size has exceeded the maximum allowed size",
  ])("a row that grows too large is named: %s", async (Message) => {
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

  test("any other refusal stays what it is", async () => {
    server.restart(() => cancelled({ Code: "None" }, { Code: "ValidationError", Message: "another" }));
    await expect(table.write(writes)).rejects.toMatchObject({ name: "TransactionCanceledException" });
    server.restart(() => refusal("AccessDeniedException"));
    await expect(table.write(writes)).rejects.toMatchObject({ name: "AccessDeniedException" });
    await expect(table.get(keyOf("a"))).rejects.toMatchObject({ name: "AccessDeniedException" });
    expect(server.requests).toHaveLength(2);
  });
});

test("nothing to write and nothing to read are no call", async () => {
  server.restart(() => "reset");
  await table.write([]);
  expect(await table.getMany([])).toEqual([]);
  expect(await table.query({ pk: "p", between: ["b", "a"] })).toEqual({ items: [] });
  expect(server.requests).toEqual([]);
});

test("what is written says what has to hold, and nothing else", async () => {
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
