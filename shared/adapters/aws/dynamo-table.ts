import { randomUUID } from "node:crypto";
import { ConditionalCheckFailedException, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  BatchWriteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { nextOf, startAfter } from "#shared/adapters/aws/dynamo-cursor.ts";
import {
  type Expression,
  expressionOf,
  updateExpression,
  versionCondition,
} from "#shared/adapters/aws/dynamo-expressions.ts";
import { exhausted, persist, policy, Unprocessed } from "#shared/adapters/aws/dynamo-retries.ts";
import { packedRow, readableRow, refuseLargeRows, rowTooLarge, unpackedRow } from "#shared/adapters/aws/row-form.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { ConflictError, type StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { retrying } from "#shared/base/retrying.ts";
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

/** DynamoDB's limits of keys in one BatchGetItem, and of rows in one BatchWriteItem. */
const batchGetKeys = 100;
const batchWriteRows = 25;
/** The one table, on DynamoDB. */
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
        // DynamoDB returns a part of the keys that were sent.
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
    // DynamoDB refuses a query whose range ends before it begins.
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
          ...filtered(query.states, { ":pk": query.pk, ...range.values }),
          ScanIndexForward: query.newestFirst !== true,
          // DynamoDB's limit also counts filtered items.
          ...(query.states === undefined ? defined({ Limit: query.limit }) : {}),
          ...startAfter(query.after, { partition: ["pk", query.pk], others: ["sk"] }),
        }),
      ),
    );
    const found = answer.Items ?? [];
    const kept = found.slice(0, query.limit);
    const items = kept.map((item) => readableRow<Type, Kept>(item, query));
    const last = kept.at(-1);
    const isCut = kept.length < found.length && last !== undefined;
    return { items, ...nextOf(isCut ? { pk: last.pk, sk: last.sk } : answer.LastEvaluatedKey) };
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
    const [first] = writes;
    if (first === undefined) return;
    refuseLargeRows(writes);
    // A transaction with a single write would cost twice as much.
    if (writes.length === 1 && "put" in first) return this.#put(first);
    const TransactItems = writes.map((write) => this.#action(write));
    // With the token, only one of the tries takes effect. A try whose answer was lost must not look like the write of
    // someone else.
    const ClientRequestToken = randomUUID();
    await persist(async () => {
      try {
        await this.#client.send(new TransactWriteCommand({ TransactItems, ClientRequestToken }));
      } catch (error) {
        throw translated(error, writes);
      }
    });
  }

  async #put(write: Extract<Write, { put: Row }>): Promise<void> {
    const put = { TableName: this.#table, Item: packedRow(write.put), ...versionCondition(write.when) };
    let isAgain = false;
    await persist(async () => {
      try {
        await this.#client.send(new PutCommand(put));
      } catch (error) {
        if (!(error instanceof ConditionalCheckFailedException)) {
          isAgain = true;
          throw error;
        }
        // A try whose answer was lost, here or in the SDK, must not look like the write of someone else.
        const wasAgain = isAgain || (error.$metadata.attempts ?? 1) > 1;
        if (!wasAgain || !(await this.#isThere(write.put))) throw translated(error, [write]);
      }
    });
  }

  async #isThere(row: Row): Promise<boolean> {
    const key = { TableName: this.#table, Key: plainKey(row), ConsistentRead: true };
    const { Item } = await persist(() => this.#client.send(new GetCommand(key)));
    return Item !== undefined && canonicalJson(unpackedRow(Item)) === canonicalJson(row);
  }

  /** Writes without a transaction, which would cost twice as much. */
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

function plainKey(key: RowKey): { pk: string; sk: string } {
  return { pk: key.pk, sk: key.sk };
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

/** Only DynamoDB knows the size of an updated row: `Item size to update has exceeded the maximum allowed size`. */
function isTooLarge(error: unknown): boolean {
  return error instanceof Error && /item size .*exceeded the maximum allowed size/i.test(error.message);
}

function grown(write: Write): StarlingError {
  return rowTooLarge(rowOf(write), "would become too large with this update");
}

function conflict(writes: readonly Write[], failed: readonly number[]): ConflictError {
  const rows = failed.map((index) => keyOf(writes[index]));
  return new ConflictError(`rows changed after they were read: ${rows.join(", ")}`, { failed, rows });
}

function keyOf(write: Write | undefined): string {
  return write === undefined ? "?" : keyText(rowOf(write));
}

function rowOf(write: Write): RowKey {
  if ("put" in write) return write.put;
  if ("delete" in write) return write.delete;
  return "check" in write ? write.check : write.update;
}

/** The filter by states, with the values of the whole expression. */
function filtered(states: readonly string[] | undefined, values: Readonly<Record<string, unknown>>) {
  if (states === undefined) return { ExpressionAttributeValues: values };
  const desired = Object.fromEntries(states.map((state, index) => [`:state${index}`, state]));
  return {
    ExpressionAttributeNames: { "#state": "state" },
    FilterExpression: `#state IN (${Object.keys(desired).join(", ")})`,
    ExpressionAttributeValues: { ...values, ...desired },
  };
}
