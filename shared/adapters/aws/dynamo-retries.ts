/** What DynamoDB refuses for a moment is asked again. */
import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";

const sdkTries = 3;
/** Of a call that met a throttle, a transaction conflict, the end of its session or unprocessed items; the last wait is about 3 s. */
export const policy: RetryPolicy = {
  tries: (error) => (error instanceof Unprocessed || isTransient(error) ? 8 : 1),
  triesIn: (error) => (error instanceof Unprocessed || isLeft(error) ? 1 : sdkTries),
  firstWaitMs: 50,
  jitter: "full",
};

/**
 * What the SDK leaves to its caller: two transactions met on a row, and one of them has to come again; or the session that it
 * signed with has ended on the way, and the next try has another.
 */
const leftNames = new Set([
  "TransactionCanceledException",
  "TransactionConflictException",
  "TransactionInProgressException",
  "ExpiredTokenException",
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
export class Unprocessed extends Error {}

export async function persist<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await retrying(policy, { clock: systemClock }, call);
  } catch (error) {
    throw isTransient(error) ? exhausted("DynamoDB kept refusing", error) : error;
  }
}

/** The SDK does not try these again by itself. */
function isLeft(error: unknown): boolean {
  return error instanceof Error && leftNames.has(error.name);
}

function isTransient(error: unknown): boolean {
  if (error instanceof TransactionCanceledException) {
    return (error.CancellationReasons ?? []).some((reason) => transientReasons.has(reason.Code ?? ""));
  }
  if (!(error instanceof Error)) return false;
  if (isLeft(error) || transientNames.has(error.name)) return true;
  return isNetworkFailure(error);
}

export function exhausted(message: string, cause?: unknown): StarlingError {
  return new StarlingError(message, {
    code: "TableBusy",
    retry: "transient",
    ...defined({ cause }),
  });
}
