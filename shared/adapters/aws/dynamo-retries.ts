/** Retries calls that DynamoDB refuses temporarily. */
import { TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";

const sdkTries = 3;
/**
 * For calls that met a throttle, a transaction conflict, the end of the session, or unprocessed items. The last wait is
 * about 3 s.
 */
export const policy: RetryPolicy = {
  tries: (error) => (error instanceof Unprocessed || isTransient(error) ? 8 : 1),
  triesIn: (error) => (error instanceof Unprocessed || isLeft(error) ? 1 : sdkTries),
  firstWaitMs: 50,
  jitter: "full",
};

/**
 * Errors that the SDK does not retry: two transactions conflicted on a row and one must be repeated, or the session
 * ended during the call, and the next try has a new session.
 */
const leftNames = new Set([
  "TransactionCanceledException",
  "TransactionConflictException",
  "TransactionInProgressException",
  "ExpiredTokenException",
]);
/** The SDK has already tried these three times. */
const transientNames = new Set([
  "ProvisionedThroughputExceededException",
  "ThrottlingException",
  "RequestLimitExceeded",
  "InternalServerError",
]);
const transientReasons = new Set(["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]);

/** DynamoDB left some keys unread or some rows unwritten. */
export class Unprocessed extends Error {}

export async function persist<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await retrying(policy, { clock: systemClock }, call);
  } catch (error) {
    throw isTransient(error) ? exhausted("DynamoDB refused all tries", error) : error;
  }
}

/** Errors that the SDK does not retry itself. */
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
