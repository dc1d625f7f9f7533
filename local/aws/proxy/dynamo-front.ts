import { createLaggingIndex } from "#local/aws/proxy/lagging-index.ts";
import { type AwsCall, withBody } from "#local/aws/wire/aws-call.ts";
import { dynamoError, jsonReply } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { FaultContext, Forward, ServiceFront } from "#local/aws/wire/fault-context.ts";

export interface DynamoFrontOptions {
  readonly context: FaultContext;
  readonly forward: Forward;
}

export interface DynamoFront {
  readonly answer: ServiceFront;
  stop(): void;
}

const singleWrites = new Set(["PutItem", "UpdateItem", "DeleteItem"]);
const transactions = new Set(["TransactWriteItems", "TransactGetItems"]);
const batches = new Set(["BatchWriteItem", "BatchGetItem"]);
const reads = new Set(["GetItem", "Query", "Scan"]);
const throttledText =
  "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or " +
  "index so please try again shortly. If exceptions persist, check if you have a hot key";

/** DynamoDB with the injected errors and the index lag that the emulator lacks. */
export function createDynamoFront({ context, forward }: DynamoFrontOptions): DynamoFront {
  const index = createLaggingIndex({ context, forward });

  async function answer(call: AwsCall): Promise<HttpReply> {
    const refusal = refuse(call, context);
    if (refusal !== undefined) return refusal;
    const { unprocessed } = context.faults().dynamodb;
    if (batches.has(call.operation) && context.random.chance(unprocessed)) {
      const partial = splitBatch(call, context);
      if (partial !== undefined) return answerPartially(call, partial);
    }
    if (isUnlimitedQuery(call) && context.random.chance(context.faults().dynamodb.shortPage)) {
      context.injected("dynamodb:shortPage");
      const request = { ...call.request, Limit: 1 };
      return index.send({ ...call, request, http: withBody(call, request) });
    }
    return index.send(call);
  }

  async function answerPartially(call: AwsCall, { done, left }: Split): Promise<HttpReply> {
    const reply = await index.send({ ...call, request: done, http: withBody(call, done) });
    if (reply.status !== 200) return reply;
    context.injected("dynamodb:unprocessed");
    const member = call.operation === "BatchWriteItem" ? "UnprocessedItems" : "UnprocessedKeys";
    return jsonReply(200, { ...(JSON.parse(reply.body.toString()) as object), [member]: left });
  }

  return { answer, stop: index.stop };
}

/** An injected error instead of the effect, if any. */
function refuse(call: AwsCall, { faults, random, injected }: FaultContext): HttpReply | undefined {
  const { operation } = call;
  const writes = singleWrites.has(operation) || operation === "BatchWriteItem";
  if (!writes && !transactions.has(operation) && !reads.has(operation) && operation !== "BatchGetItem")
    return undefined;
  const { throttle, transactionConflict } = faults().dynamodb;
  if (random.chance(throttle)) {
    injected("dynamodb:throttle");
    const code = random.chance(0.5) ? "ThrottlingException" : "ProvisionedThroughputExceededException";
    return dynamoError({ code, message: throttledText });
  }
  const mayConflict = singleWrites.has(operation) || transactions.has(operation);
  if (!mayConflict || !random.chance(transactionConflict)) return undefined;
  injected("dynamodb:transactionConflict");
  if (singleWrites.has(operation)) {
    return dynamoError({ code: "TransactionConflictException", message: "Transaction is ongoing for the item" });
  }
  const actions = (call.request.TransactItems as readonly unknown[] | undefined) ?? [];
  const inConflict = random.integer(0, actions.length - 1);
  const CancellationReasons = actions.map((_, position) =>
    position === inConflict
      ? { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" }
      : { Code: "None" },
  );
  const codes = CancellationReasons.map(({ Code }) => Code).join(", ");
  const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`;
  return dynamoError({
    code: "TransactionCanceledException",
    message,
    members: { Message: message, CancellationReasons },
  });
}

function isUnlimitedQuery({ operation, request }: AwsCall): boolean {
  return operation === "Query" && request.Limit === undefined;
}

interface Split {
  readonly done: Readonly<Record<string, unknown>>;
  readonly left: Readonly<Record<string, unknown>>;
}

/** Splits a batch at random into two parts that are not empty. Undefined for a batch with one entry. */
function splitBatch({ operation, request }: AwsCall, { random }: FaultContext): Split | undefined {
  const tables = Object.entries(request.RequestItems as Readonly<Record<string, unknown>>);
  const entries = tables.flatMap(([table, desired]) =>
    entriesOf(operation, desired).map((entry) => ({ table, entry })),
  );
  if (entries.length < 2) return undefined;
  const cut = random.integer(1, entries.length - 1);
  const rebuild = (part: typeof entries) => {
    const rebuilt = tables.map(([table, desired]) => {
      const own = part.filter((candidate) => candidate.table === table).map(({ entry }) => entry);
      return [table, operation === "BatchWriteItem" ? own : { ...(desired as object), Keys: own }, own.length] as const;
    });
    return Object.fromEntries(rebuilt.filter(([, , size]) => size > 0).map(([table, desired]) => [table, desired]));
  };
  return { done: { ...request, RequestItems: rebuild(entries.slice(0, cut)) }, left: rebuild(entries.slice(cut)) };
}

function entriesOf(operation: string, desired: unknown): readonly unknown[] {
  if (operation === "BatchWriteItem") return desired as readonly unknown[];
  return (desired as { readonly Keys: readonly unknown[] }).Keys;
}
