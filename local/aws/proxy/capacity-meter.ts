import { type AwsCall, readCall, withBody } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { ServiceFront } from "#local/aws/wire/fault-context.ts";

/** The DynamoDB capacity units of tables and indexes together. Transactions count twice, as in the bill. */
export interface ConsumedCapacity {
  readonly readUnits: number;
  readonly writeUnits: number;
}

/** The units of one call. */
export interface CallUnits {
  readonly written: number;
  /** The units among them that were written to indexes. */
  readonly writtenToIndexes: number;
}

export interface CapacityMeter {
  /** Forwards a DynamoDB call and adds the capacity that it consumed. */
  readonly answer: ServiceFront;
  consumed(): ConsumedCapacity;
  reset(): void;
}

const writes = new Set(["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"]);
const reads = new Set(["GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"]);

/**
 * Requests the consumed capacity of each call. It removes the capacity from the answer if the caller did not request
 * it. @param onWrite - called with the units of each write.
 */
export function createCapacityMeter(
  next: ServiceFront,
  onWrite: (call: AwsCall, units: CallUnits) => void = () => {},
): CapacityMeter {
  let readUnits = 0;
  let writeUnits = 0;

  async function answer(call: AwsCall): Promise<HttpReply> {
    const { operation, request } = call;
    if (!writes.has(operation) && !reads.has(operation)) return next(call);
    const asked = request.ReturnConsumedCapacity !== undefined && request.ReturnConsumedCapacity !== "NONE";
    const asking = withBody(call, { ...request, ReturnConsumedCapacity: "INDEXES" });
    const reply = await next(asked ? call : readCall("dynamodb", asking));
    if (reply.status !== 200) return reply;
    const { ConsumedCapacity: consumed, ...rest } = JSON.parse(reply.body.toString()) as {
      readonly ConsumedCapacity?: Units | readonly Units[];
    };
    const units = sumOf([consumed ?? []].flat());
    if (writes.has(operation)) {
      writeUnits += units;
      const writtenToIndexes = sumOf([consumed ?? []].flat().flatMap(indexesOf));
      onWrite(call, { written: units, writtenToIndexes });
    } else readUnits += units;
    if (asked) return reply;
    const body = Buffer.from(JSON.stringify(rest));
    const { "x-amz-crc32": _checksum, ...headers } = reply.headers;
    return { ...reply, headers: { ...headers, "content-length": body.length }, body };
  }

  return {
    answer,
    consumed: () => ({ readUnits, writeUnits }),
    reset() {
      readUnits = 0;
      writeUnits = 0;
    },
  };
}

interface Units {
  readonly CapacityUnits?: number;
  readonly GlobalSecondaryIndexes?: Readonly<Record<string, Pick<Units, "CapacityUnits">>>;
}

function indexesOf({ GlobalSecondaryIndexes = {} }: Units): readonly Units[] {
  return Object.values(GlobalSecondaryIndexes);
}

function sumOf(units: readonly Units[]): number {
  return units.reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}
