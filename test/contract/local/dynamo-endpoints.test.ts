/** dynoxide gives the same answers over its pipes and on a port. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DynamoServer, startDynamo } from "#local/aws/services/dynamo-server.ts";

let port: DynamoServer;
let pipe: DynamoServer;
beforeAll(async () => {
  [port, pipe] = await Promise.all([startDynamo(), startDynamo({ transport: "pipe" })]);
});
afterAll(() => Promise.all([port.stop(), pipe.stop()]));

const TableName = "rows";
const key = (pk: string, sk: string) => ({ pk: { S: pk }, sk: { S: sk } });
const row = (pk: string, sk: string) => ({
  ...key(pk, sk),
  gk: { S: "g" },
  n: { N: "12345678901234567890.5" },
  b: { B: "AP8=" },
});
const names = (...all: string[]) => all.map((AttributeName) => ({ AttributeName, AttributeType: "S" }));
const keys = (hash: string, range: string) => [
  { AttributeName: hash, KeyType: "HASH" },
  { AttributeName: range, KeyType: "RANGE" },
];
const big = (sk: string) => ({ PutRequest: { Item: { ...row("big", sk), text: { S: "é".repeat(150_000) } } } });
const table = {
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: names("pk", "sk", "gk"),
  KeySchema: keys("pk", "sk"),
  GlobalSecondaryIndexes: [
    { IndexName: "by-group", KeySchema: keys("gk", "sk"), Projection: { ProjectionType: "KEYS_ONLY" } },
  ],
};
const absent = { ConditionExpression: "attribute_not_exists(pk)" };
const values = { ExpressionAttributeValues: { ":one": { N: "1" } } };
const ofBig = { KeyConditionExpression: "pk = :pk", ExpressionAttributeValues: { ":pk": { S: "big" } } };

/** The order matters, because each call finds the rows of the previous ones. */
const calls: readonly (readonly [operation: string, request: object])[] = [
  ["ListTables", {}],
  ["CreateTable", table],
  ["CreateTable", table],
  ["DescribeTable", { TableName }],
  ["DescribeTable", { TableName: "none" }],
  ["ListTables", {}],
  ["PutItem", { TableName, Item: row("a", "1") }],
  ["PutItem", { TableName, Item: row("a", "1"), ...absent }],
  ["PutItem", { TableName, Item: { pk: { S: "a" } } }],
  ["PutItem", { TableName, Item: { ...row("a", "9"), text: { S: "x".repeat(500_000) } } }],
  ["PutItem", { TableName: "none", Item: row("a", "1") }],
  ["GetItem", { TableName, Key: key("a", "1"), ConsistentRead: true }],
  ["GetItem", { TableName, Key: key("a", "none") }],
  ["GetItem", { TableName, Key: key("a", "1"), ProjectionExpression: "#n", ExpressionAttributeNames: { "#n": "n" } }],
  ["UpdateItem", { TableName, Key: key("a", "1"), UpdateExpression: "ADD c :one", ...values, ReturnValues: "ALL_NEW" }],
  ["UpdateItem", { TableName, Key: key("a", "1"), UpdateExpression: "SET c = :none" }],
  [
    "UpdateItem",
    {
      TableName,
      Key: key("a", "2"),
      UpdateExpression: "ADD c :one",
      ...values,
      ConditionExpression: "attribute_exists(pk)",
    },
  ],
  ["BatchWriteItem", { RequestItems: { [TableName]: ["1", "2", "3", "4"].map(big) } }],
  ["BatchWriteItem", { RequestItems: { [TableName]: [{ DeleteRequest: { Key: key("big", "4") } }] } }],
  [
    "BatchGetItem",
    { RequestItems: { [TableName]: { Keys: [key("a", "1"), key("a", "none")], ConsistentRead: true } } },
  ],
  ["Query", { TableName, ...ofBig, ConsistentRead: true, ProjectionExpression: "sk" }],
  ["Query", { TableName, ...ofBig, Limit: 2, ScanIndexForward: false, ProjectionExpression: "sk" }],
  ["Query", { TableName, ...ofBig, ExclusiveStartKey: key("big", "2"), ProjectionExpression: "sk" }],
  ["Query", { TableName, ...ofBig, Select: "COUNT" }],
  [
    "Query",
    {
      TableName,
      IndexName: "by-group",
      KeyConditionExpression: "gk = :g",
      ExpressionAttributeValues: { ":g": { S: "g" } },
      Limit: 3,
    },
  ],
  ["Scan", { TableName, FilterExpression: "attribute_exists(c)" }],
  [
    "TransactWriteItems",
    {
      TransactItems: [
        { Put: { TableName, Item: row("t", "1"), ...absent } },
        { Delete: { TableName, Key: key("t", "2") } },
      ],
    },
  ],
  [
    "TransactWriteItems",
    {
      TransactItems: [
        { Delete: { TableName, Key: key("t", "3") } },
        { Put: { TableName, Item: row("t", "1"), ...absent } },
      ],
    },
  ],
  [
    "TransactWriteItems",
    { TransactItems: [{ Put: { TableName, Item: row("t", "1") } }, { Delete: { TableName, Key: key("t", "1") } }] },
  ],
  ["TransactGetItems", { TransactItems: [{ Get: { TableName, Key: key("t", "1") } }] }],
  ["DeleteItem", { TableName, Key: key("t", "1"), ReturnValues: "ALL_OLD" }],
  ["DeleteTable", { TableName }],
  ["ListTables", {}],
];

async function answerOf(server: DynamoServer, [operation, request]: readonly [string, object]) {
  const authorization =
    "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";
  const reply = await server.send({
    method: "POST",
    path: "/",
    headers: {
      "x-amz-target": `DynamoDB_20120810.${operation}`,
      "content-type": "application/x-amz-json-1.0",
      "x-amz-date": "20260101T000000Z",
      authorization,
    },
    body: Buffer.from(JSON.stringify(request)),
  });
  const {
    Message,
    message = Message,
    ...body
  } = JSON.parse(reply.body.toString(), comparable) as Record<string, unknown>;
  return { status: reply.status, message, body };
}

/** Removes values that differ from start to start, prefixes of errors, and members that only one transport has. */
function comparable(name: string, value: unknown): unknown {
  if (["TableId", "TableArn", "IndexArn", "CreationDateTime", "_auto_snapshot"].includes(name)) return undefined;
  if (name === "__type") return String(value).split("#")[1];
  if (name === "CancellationReasons") return (value as { readonly Code: string }[]).map(({ Code }) => Code);
  return value;
}

test.each(calls.map((call, index) => [index, call[0], call] as const))(
  "call %i (%s) has the same answer over a pipe and on a port",
  async (_index, _name, call) => {
    expect(await answerOf(pipe, call)).toEqual(await answerOf(port, call));
  },
);
