import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import { sharedRows } from "#test/support/versioned-table.ts";

/**
 * Finds calls to the table that ignore its current state. Such a call replaces an existing row without the version that
 * was read, or reads rows that may be stale.
 */
export function blindCalls({ service, operation, request }: AwsCall): readonly string[] {
  if (service !== "dynamodb") return [];
  if (operation === "PutItem") return blindPuts([{ Put: request as unknown as Put }]);
  if (operation === "TransactWriteItems") return blindPuts(request.TransactItems as readonly TransactItem[]);
  if (operation === "BatchGetItem") {
    const tables = Object.values(request.RequestItems as Readonly<Record<string, Reading>>);
    return tables.every(isConsistent) ? [] : [operation];
  }
  if (operation !== "GetItem" && operation !== "Query") return [];
  return request.IndexName !== undefined || isConsistent(request) ? [] : [operation];
}

interface Put {
  readonly Item: Readonly<Record<string, { readonly S?: string; readonly N?: string }>>;
  readonly ConditionExpression?: string;
}

interface TransactItem {
  readonly Put?: Put;
}

interface Reading {
  readonly ConsistentRead?: unknown;
}

function blindPuts(items: readonly TransactItem[]): readonly string[] {
  return items.flatMap(({ Put }) => {
    if (Put === undefined || Put.ConditionExpression !== undefined) return [];
    const { type, version, pk, sk } = Put.Item;
    if (version?.N === "1" || !sharedRows.has(type?.S ?? "")) return [];
    return [`${type?.S} ${pk?.S} ${sk?.S}`];
  });
}

function isConsistent({ ConsistentRead }: Reading): boolean {
  return ConsistentRead === true;
}
