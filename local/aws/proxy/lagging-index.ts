import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { FaultContext, Forward } from "#local/aws/wire/fault-context.ts";

export interface LaggingIndex {
  /** Forwards a call. A query of an index reads the index in a state up to `indexLagMs` old. */
  send(call: AwsCall): Promise<HttpReply>;
  stop(): void;
}

type Key = Readonly<Record<string, unknown>>;

interface Shadow {
  readonly keyNames: readonly string[];
  /** The written keys and the time at which each must be copied, in ms of `performance.now()`. */
  readonly pending: Map<string, number>;
}

const shadowSuffix = "--lagging";
const tickMs = 5;
const batchLimit = 25;

/**
 * Simulates index lag with a second table. Every written item is copied there after a random delay, and queries of an
 * index read the copy. As on DynamoDB, a query can see a mixture of states of the last `indexLagMs`, with any filter,
 * order and paging. Without a lag nothing is copied.
 */
export function createLaggingIndex(options: {
  readonly context: FaultContext;
  readonly forward: Forward;
}): LaggingIndex {
  const { context, forward } = options;
  const shadows = new Map<string, Promise<Shadow>>();
  const timers = new Set<NodeJS.Timeout>();
  let stopped = false;

  async function send(call: AwsCall): Promise<HttpReply> {
    const { indexLagMs } = context.faults().dynamodb;
    if (call.operation === "ListTables") return hideShadows(await forward(call.http));
    if (indexLagMs === 0) {
      shadows.clear();
      return forward(call.http);
    }
    if (readsIndex(call)) return queryShadow(call);
    const written = writtenKeys(call);
    const copies = await Promise.all(written.map(async ({ table, item }) => ({ shadow: await shadowOf(table), item })));
    try {
      return await forward(call.http);
    } finally {
      for (const { shadow, item } of copies) schedule(shadow, item, context.random.integer(0, indexLagMs));
    }
  }

  async function queryShadow(call: AwsCall): Promise<HttpReply> {
    const table = String(call.request.TableName);
    await shadowOf(table);
    const reply = await forward(withBody(call, { ...call.request, TableName: `${table}${shadowSuffix}` }));
    return withText(reply, (text) => text.replaceAll(`${table}${shadowSuffix}`, table));
  }

  function shadowOf(table: string): Promise<Shadow> {
    const known = shadows.get(table);
    if (known !== undefined) return known;
    const made = makeShadow(table);
    shadows.set(table, made);
    made.catch(() => shadows.delete(table));
    return made;
  }

  async function makeShadow(table: string): Promise<Shadow> {
    const { Table } = (await ask("DescribeTable", { TableName: table })) as { readonly Table: TableDescription };
    const TableName = `${table}${shadowSuffix}`;
    await ask("DeleteTable", { TableName }).catch(() => {});
    await ask("CreateTable", {
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: Table.AttributeDefinitions,
      KeySchema: Table.KeySchema,
      GlobalSecondaryIndexes: Table.GlobalSecondaryIndexes?.map(({ IndexName, KeySchema, Projection }) => ({
        IndexName,
        KeySchema,
        Projection,
      })),
    });
    const shadow: Shadow = { keyNames: Table.KeySchema.map(({ AttributeName }) => AttributeName), pending: new Map() };
    await copyAll(table, shadow);
    follow(table, shadow);
    return shadow;
  }

  async function copyAll(table: string, shadow: Shadow): Promise<void> {
    let ExclusiveStartKey: unknown;
    do {
      const page = (await ask("Scan", { TableName: table, ExclusiveStartKey })) as {
        readonly Items: readonly Key[];
        readonly LastEvaluatedKey?: unknown;
      };
      for (const item of page.Items) schedule(shadow, item, 0);
      await copyDue(table, shadow);
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey !== undefined);
  }

  function schedule({ keyNames, pending }: Shadow, item: Key, lagMs: number): void {
    const key = JSON.stringify(Object.fromEntries(keyNames.map((name) => [name, item[name]])));
    if (!pending.has(key)) pending.set(key, performance.now() + lagMs);
  }

  /**
   * Copies items when they are due, until the lag is switched off. It makes one copy at a time, so that an old state
   * never replaces a newer one.
   */
  function follow(table: string, shadow: Shadow): void {
    const timer = setTimeout(async () => {
      timers.delete(timer);
      await copyDue(table, shadow).catch(() => shadows.delete(table));
      if (!stopped && shadows.has(table)) follow(table, shadow);
    }, tickMs);
    timer.unref();
    timers.add(timer);
  }

  async function copyDue(table: string, { pending }: Shadow): Promise<void> {
    const now = performance.now();
    const due = [...pending].filter(([, dueAt]) => dueAt <= now).map(([key]) => key);
    for (let first = 0; first < due.length; first += batchLimit) {
      const keys = due.slice(first, first + batchLimit);
      for (const key of keys) pending.delete(key);
      await copy(table, keys);
    }
  }

  async function copy(table: string, keys: readonly string[]): Promise<void> {
    const Keys = keys.map((key) => JSON.parse(key) as Key);
    const found = new Map<string, Key>();
    let desired: Readonly<Record<string, unknown>> = { [table]: { Keys, ConsistentRead: true } };
    while (Object.keys(desired).length > 0) {
      const page = (await ask("BatchGetItem", { RequestItems: desired })) as {
        readonly Responses: Readonly<Record<string, readonly Key[]>>;
        readonly UnprocessedKeys?: Readonly<Record<string, unknown>>;
      };
      for (const item of page.Responses[table] ?? []) found.set(keyText(item, Object.keys(Keys[0] ?? {})), item);
      desired = page.UnprocessedKeys ?? {};
    }
    const requests = keys.map((key, position) => {
      const Item = found.get(key);
      return Item === undefined ? { DeleteRequest: { Key: Keys[position] } } : { PutRequest: { Item } };
    });
    await ask("BatchWriteItem", { RequestItems: { [`${table}${shadowSuffix}`]: requests } });
  }

  async function ask(operation: string, body: object): Promise<unknown> {
    const reply = await forward({
      method: "POST",
      path: "/",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": `DynamoDB_20120810.${operation}`,
        "x-amz-date": "20260101T000000Z",
        authorization:
          "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
      },
      body: Buffer.from(JSON.stringify(body)),
    });
    if (reply.status !== 200) throw new Error(`${operation} for the lagging index failed: ${reply.body.toString()}`);
    return JSON.parse(reply.body.toString());
  }

  return {
    send,
    stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

interface TableDescription {
  readonly AttributeDefinitions: unknown;
  readonly KeySchema: readonly { readonly AttributeName: string }[];
  readonly GlobalSecondaryIndexes?: readonly {
    readonly IndexName: unknown;
    readonly KeySchema: unknown;
    readonly Projection: unknown;
  }[];
}

function keyText(item: Key, keyNames: readonly string[]): string {
  return JSON.stringify(Object.fromEntries(keyNames.map((name) => [name, item[name]])));
}

function readsIndex({ operation, request }: AwsCall): boolean {
  return (operation === "Query" || operation === "Scan") && request.IndexName !== undefined;
}

interface WrittenKey {
  readonly table: string;
  /** The item or its key. */
  readonly item: Key;
}

interface Write {
  readonly TableName: string;
  readonly Item?: Key;
  readonly Key?: Key;
}

interface BatchWrite {
  readonly PutRequest?: { readonly Item: Key };
  readonly DeleteRequest?: { readonly Key: Key };
}

function writtenKeys({ operation, request }: AwsCall): WrittenKey[] {
  switch (operation) {
    case "PutItem":
    case "UpdateItem":
    case "DeleteItem":
      return [writtenKey(request as unknown as Write)];
    case "TransactWriteItems": {
      const actions = request.TransactItems as readonly Readonly<Record<string, Write>>[];
      return actions.flatMap(({ Put, Update, Delete }) => {
        const write = Put ?? Update ?? Delete;
        return write === undefined ? [] : [writtenKey(write)];
      });
    }
    case "BatchWriteItem": {
      const tables = Object.entries(request.RequestItems as Readonly<Record<string, readonly BatchWrite[]>>);
      return tables.flatMap(([table, writes]) =>
        writes.map(({ PutRequest, DeleteRequest }) => ({ table, item: PutRequest?.Item ?? DeleteRequest?.Key ?? {} })),
      );
    }
    default:
      return [];
  }
}

function writtenKey({ TableName, Item, Key }: Write): WrittenKey {
  return { table: TableName, item: Item ?? Key ?? {} };
}

function hideShadows(reply: HttpReply): HttpReply {
  return withText(reply, (text) => {
    const listed = JSON.parse(text) as { readonly TableNames?: readonly string[] };
    if (listed.TableNames === undefined) return text;
    return JSON.stringify({ ...listed, TableNames: listed.TableNames.filter((name) => !name.endsWith(shadowSuffix)) });
  });
}

function withText(reply: HttpReply, change: (text: string) => string): HttpReply {
  const body = Buffer.from(change(reply.body.toString()));
  const { "x-amz-crc32": _checksum, ...headers } = reply.headers;
  return { ...reply, headers: { ...headers, "content-length": body.length }, body };
}
