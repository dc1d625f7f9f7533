import { randomUUID } from "node:crypto";
import { ConditionalCheckFailedException, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  BatchWriteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { packedRow } from "#shared/adapters/aws/packed-row.ts";
import { readableRow } from "#shared/adapters/aws/readable-row.ts";
import { refuseLargeRows, rowTooLarge } from "#shared/adapters/aws/row-limit.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { ConflictError, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import { keyText, type Row, type RowKey, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { Newer, RowOf, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type {
  EventLog,
  IndexEntry,
  IndexQuery,
  Page,
  Precondition,
  RowQuery,
  RowUpdate,
  Table,
  Write,
} from "#shared/ports.ts";

/** DynamoDB takes so many keys in one BatchGetItem, and rows in one BatchWriteItem. */
const batchGetKeys = 100;
const batchWriteRows = 25;
const sdkTries = 3;
/** Of a call that met a throttle, a transaction conflict or unprocessed items; the last wait is about 3 s. */
const policy: RetryPolicy = {
  tries: (error) => (error instanceof Unprocessed || isTransient(error) ? 8 : 1),
  triesIn: (error) => (error instanceof Unprocessed || isConflict(error) ? 1 : sdkTries),
  firstWaitMs: 50,
  jitter: "full",
};

/** What the SDK leaves to its caller: two transactions met on a row, and one of them has to come again. */
const conflictNames = new Set([
  "TransactionCanceledException",
  "TransactionConflictException",
  "TransactionInProgressException",
]);
/** What the SDK has tried three times already when it gets here. */
const transientNames = new Set([
  "ProvisionedThroughputExceededException",
  "ThrottlingException",
  "RequestLimitExceeded",
  "InternalServerError",
]);
const transientReasons = new Set(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]);

/** Of some keys DynamoDB said nothing, or some rows it did not take. */
class Unprocessed extends Error {}

/** The one table on DynamoDB. */
export class DynamoTable implements Table, EventLog {
  readonly #client: DynamoDBDocumentClient;
  readonly #table: string;

  constructor(client: DynamoDBDocumentClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  async get<Type extends RowType>(key: RowKeyOf<Type>): Promise<RowOf<Type> | undefined> {
    const answer = await persist(() =>
      this.#client.send(new GetCommand({ TableName: this.#table, Key: plainKey(key), ConsistentRead: true })),
    );
    return answer.Item === undefined ? undefined : readableRow<Type>(answer.Item);
  }

  async getMany<Type extends RowType, Kept extends Newer = undefined>(
    keys: readonly RowKeyOf<Type>[],
    reading: { readonly newer?: Kept } = {},
  ): Promise<readonly RowRead<Type, Kept>[]> {
    const distinct = [...new Map(keys.map((key) => [keyText(key), plainKey(key)])).values()];
    const rows: RowRead<Type, Kept>[] = [];
    for (const part of inParts(distinct, batchGetKeys)) rows.push(...(await this.#getBatch<Type, Kept>(part, reading)));
    return rows;
  }

  async #getBatch<Type extends RowType, Kept extends Newer>(
    keys: readonly RowKey[],
    reading: { readonly newer?: Kept },
  ): Promise<readonly RowRead<Type, Kept>[]> {
    const rows: RowRead<Type, Kept>[] = [];
    let left: RowKey[] = [...keys];
    try {
      await retrying(policy, { clock: systemClock }, async () => {
        const request = { [this.#table]: { Keys: left.map(plainKey), ConsistentRead: true } };
        const answer = await persist(() => this.#client.send(new BatchGetCommand({ RequestItems: request })));
        for (const item of answer.Responses?.[this.#table] ?? []) rows.push(readableRow<Type, Kept>(item, reading));
        // What comes back is what was sent: `left` as it was, or a part of it.
        left = (answer.UnprocessedKeys?.[this.#table]?.Keys ?? []) as unknown as RowKey[];
        if (left.length > 0) throw new Unprocessed();
      });
    } catch (error) {
      throw error instanceof Unprocessed ? exhausted("BatchGetItem left keys unprocessed") : error;
    }
    return rows;
  }

  async query<Type extends RowType, Kept extends Newer = undefined>(
    query: RowQuery<Type, Kept>,
  ): Promise<Page<RowRead<Type, Kept>>> {
    // DynamoDB refuses a range that ends before it begins, with the whole query.
    if (query.between !== undefined && query.between[0] > query.between[1]) return { items: [] };
    const range =
      query.between !== undefined
        ? { text: " AND sk BETWEEN :from AND :to", values: { ":from": query.between[0], ":to": query.between[1] } }
        : query.prefix !== undefined
          ? { text: " AND begins_with(sk, :prefix)", values: { ":prefix": query.prefix } }
          : { text: "", values: {} };
    const answer = await persist(() =>
      this.#client.send(
        new QueryCommand({
          TableName: this.#table,
          ConsistentRead: true,
          KeyConditionExpression: `pk = :pk${range.text}`,
          ExpressionAttributeValues: { ":pk": query.pk, ...range.values },
          ScanIndexForward: query.newestFirst !== true,
          ...defined({ Limit: query.limit }),
          ...startAfter(query.after, { partition: ["pk", query.pk], others: ["sk"] }),
        }),
      ),
    );
    const items = (answer.Items ?? []).map((item) => readableRow<Type, Kept>(item, query));
    return { items, ...nextOf(answer.LastEvaluatedKey) };
  }

  async queryIndex(query: IndexQuery): Promise<Page<IndexEntry>> {
    const [pk, sk] = query.index === "due" ? ["dueShard", "dueKey"] : ["statePk", "stateSk"];
    const range =
      query.upTo !== undefined
        ? { text: " AND #sk <= :upTo", values: { ":upTo": query.upTo } }
        : query.prefix !== undefined
          ? { text: " AND begins_with(#sk, :prefix)", values: { ":prefix": query.prefix } }
          : { text: "", values: {} };
    const answer = await persist(() =>
      this.#client.send(
        new QueryCommand({
          TableName: this.#table,
          IndexName: query.index,
          KeyConditionExpression: `#pk = :pk${range.text}`,
          ExpressionAttributeNames: { "#pk": pk, ...(range.text === "" ? {} : { "#sk": sk }) },
          ExpressionAttributeValues: { ":pk": query.pk, ...range.values },
          ...defined({ Limit: query.limit }),
          ...startAfter(query.after, { partition: [pk, query.pk], others: ["pk", "sk", sk] }),
        }),
      ),
    );
    const items = (answer.Items ?? []).map((item) => ({
      key: { pk: String(item.pk), sk: String(item.sk) },
      sort: String(item[sk]),
    }));
    return { items, ...nextOf(answer.LastEvaluatedKey) };
  }

  async write(writes: readonly Write[]): Promise<void> {
    if (writes.length === 0) return;
    refuseLargeRows(writes);
    const TransactItems = writes.map((write) => this.#action(write));
    // Of all tries one is done: a try whose answer was lost must not look like somebody else's write.
    const ClientRequestToken = randomUUID();
    await persist(async () => {
      try {
        await this.#client.send(new TransactWriteCommand({ TransactItems, ClientRequestToken }));
      } catch (error) {
        throw translated(error, writes);
      }
    });
  }

  /** A transaction would cost twice as much. */
  async append(events: readonly Row[]): Promise<void> {
    const distinct = [...new Map(events.map((row) => [keyText(row), row])).values()];
    refuseLargeRows(distinct.map((put) => ({ put })));
    for (const part of inParts(distinct, batchWriteRows)) await this.#putBatch(part);
  }

  async #putBatch(rows: readonly Row[]): Promise<void> {
    let left: BatchWrites = rows.map((row) => ({ PutRequest: { Item: packedRow(row) } }));
    try {
      await retrying(policy, { clock: systemClock }, async () => {
        const RequestItems = { [this.#table]: left };
        const answer = await persist(() => this.#client.send(new BatchWriteCommand({ RequestItems })));
        left = answer.UnprocessedItems?.[this.#table] ?? [];
        if (left.length > 0) throw new Unprocessed();
      });
    } catch (error) {
      throw error instanceof Unprocessed ? exhausted("BatchWriteItem left rows unprocessed") : error;
    }
  }

  async update<Type extends RowType>(write: RowUpdate<Type>): Promise<RowOf<Type>> {
    const action = this.#action(write).Update;
    if (action === undefined) throw new Error("an update has no update action");
    refuseLargeRows([write]);
    return persist(async () => {
      try {
        const answer = await this.#client.send(new UpdateCommand({ ...action, ReturnValues: "ALL_NEW" }));
        return readableRow<Type>(answer.Attributes ?? {});
      } catch (error) {
        throw translated(error, [write]);
      }
    });
  }

  #action(write: Write): TransactItem {
    const TableName = this.#table;
    if ("put" in write) {
      return { Put: { TableName, Item: packedRow(write.put), ...versionCondition(write.when) } };
    }
    if ("delete" in write) {
      return { Delete: { TableName, Key: plainKey(write.delete), ...versionCondition(write.when) } };
    }
    if ("check" in write) {
      const condition = Array.isArray(write.when)
        ? expressionOf(write.when as readonly Precondition[], " AND ")
        : versionCondition(write.when as "absent" | { version: number });
      return { ConditionCheck: { TableName, Key: plainKey(write.check), ...(condition as Required<Expression>) } };
    }
    return { Update: { TableName, Key: plainKey(write.update), ...updateExpression(write) } };
  }
}

type TransactItem = NonNullable<ConstructorParameters<typeof TransactWriteCommand>[0]["TransactItems"]>[number];

type BatchWrites = NonNullable<ConstructorParameters<typeof BatchWriteCommand>[0]["RequestItems"]>[string];

interface Expression {
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Record<string, unknown>;
}

function versionCondition(when: "absent" | { readonly version: number } | undefined): Expression {
  if (when === undefined) return {};
  if (when === "absent") return { ConditionExpression: "attribute_not_exists(pk)" };
  return {
    ConditionExpression: "#version = :version",
    ExpressionAttributeNames: { "#version": "version" },
    ExpressionAttributeValues: { ":version": when.version },
  };
}

function expressionOf(conditions: readonly Precondition[], glue: " AND " | " OR "): Expression {
  const names: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  const parts = conditions.map((condition, index) => {
    names[`#c${index}`] = condition.attribute;
    if ("absent" in condition) return `attribute_not_exists(#c${index})`;
    values[`:c${index}`] = "equals" in condition ? condition.equals : condition.lessThan;
    return `#c${index} ${"equals" in condition ? "=" : "<"} :c${index}`;
  });
  return {
    ConditionExpression: parts.join(glue),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}

function updateExpression(write: RowUpdate): Expression & { UpdateExpression: string } {
  const when = write.when ?? [];
  const condition = when.length === 0 ? {} : expressionOf(when, write.any === true ? " OR " : " AND ");
  const names: Record<string, string> = { ...condition.ExpressionAttributeNames };
  const values: Record<string, unknown> = { ...condition.ExpressionAttributeValues };
  const clauses: string[] = [];
  const clause = (verb: string, entries: readonly [string, unknown][], separator: string) => {
    const parts = entries.map(([name, value], index) => {
      names[`#${verb}${index}`] = name;
      if (value === undefined) return `#${verb}${index}`;
      values[`:${verb}${index}`] = value;
      return `#${verb}${index}${separator}:${verb}${index}`;
    });
    if (parts.length > 0) clauses.push(`${verb} ${parts.join(", ")}`);
  };
  clause("SET", Object.entries(write.set ?? {}), " = ");
  clause("ADD", Object.entries(write.add ?? {}), " ");
  clause(
    "REMOVE",
    (write.remove ?? []).map((name) => [name, undefined]),
    "",
  );
  return {
    ...condition,
    UpdateExpression: clauses.join(" "),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}

function plainKey(key: RowKey): { pk: string; sk: string } {
  return { pk: key.pk, sk: key.sk };
}

function nextOf(last: Record<string, unknown> | undefined): { readonly next?: string } {
  return last === undefined ? {} : { next: Buffer.from(JSON.stringify(last)).toString("base64url") };
}

/** People send cursors back to us: one that is not of this query would be a defect of ours to DynamoDB. */
function startAfter(
  cursor: string | undefined,
  expected: { readonly partition: readonly [string, string]; readonly others: readonly string[] },
): { readonly ExclusiveStartKey?: Record<string, string> } {
  if (cursor === undefined) return {};
  const [partition, value] = expected.partition;
  const key = decodeCursor(cursor);
  const members = [partition, ...expected.others];
  const fits = Object.keys(key).length === members.length && members.every((name) => typeof key[name] === "string");
  if (!fits || key[partition] !== value) throw invalidContinue();
  return { ExclusiveStartKey: key as Record<string, string> };
}

function decodeCursor(cursor: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Falls through to the refusal: the text is not ours.
  }
  throw invalidContinue();
}

function invalidContinue(): StarlingError {
  return new StarlingError("the continue token is not one of this list; list again from the start", {
    code: "InvalidContinue",
    retry: "permanent",
  });
}

function translated(error: unknown, writes: readonly Write[]): unknown {
  if (error instanceof ConditionalCheckFailedException) return conflict(writes, [0]);
  if (isTooLarge(error) && writes[0] !== undefined) return grown(writes[0]);
  if (!(error instanceof TransactionCanceledException)) return error;
  const reasons = error.CancellationReasons ?? [];
  const large = writes.find((_write, index) => isTooLarge(new Error(reasons[index]?.Message)));
  if (large !== undefined) return grown(large);
  const failed = reasons.flatMap((reason, index) => (reason.Code === "ConditionalCheckFailed" ? [index] : []));
  return failed.length > 0 ? conflict(writes, failed) : error;
}

/** Only DynamoDB knows how large a row is that is updated: `Item size to update has exceeded the maximum allowed size`. */
function isTooLarge(error: unknown): boolean {
  return error instanceof Error && /item size .*exceeded the maximum allowed size/i.test(error.message);
}

function grown(write: Write): StarlingError {
  return rowTooLarge(rowOf(write), "would grow too large by this update");
}

function conflict(writes: readonly Write[], failed: readonly number[]): ConflictError {
  const rows = failed.map((index) => keyOf(writes[index]));
  return new ConflictError(`row changed since it was read: ${rows.join(", ")}`, { failed, rows });
}

function keyOf(write: Write | undefined): string {
  return write === undefined ? "?" : keyText(rowOf(write));
}

function rowOf(write: Write): RowKey {
  if ("put" in write) return write.put;
  if ("delete" in write) return write.delete;
  return "check" in write ? write.check : write.update;
}

async function persist<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await retrying(policy, { clock: systemClock }, call);
  } catch (error) {
    throw isTransient(error) ? exhausted("DynamoDB kept refusing", error) : error;
  }
}

/** The SDK does not try these again by itself. */
function isConflict(error: unknown): boolean {
  return error instanceof Error && conflictNames.has(error.name);
}

function isTransient(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    return (error.CancellationReasons ?? []).some((reason) => transientReasons.has(reason.Code ?? ""));
  }
  if (!(error instanceof Error)) return false;
  if (isConflict(error) || transientNames.has(error.name)) return true;
  return isNetworkFailure(error);
}

function exhausted(message: string, cause?: unknown): StarlingError {
  return new StarlingError(message, {
    code: "TableBusy",
    retry: "transient",
    ...defined({ cause }),
  });
}
