/** What the fault proxy does to calls. Probabilities are from 0 (never) to 1 (always), per call or per message. */
export interface FaultOptions {
  readonly dynamodb: DynamoFaults;
  readonly sqs: SqsFaults;
  readonly s3: S3Faults;
  readonly lambda: LambdaFaults;
}

/** A connection that breaks. The SDK repeats such a call by itself (standard retry mode), and each attempt is a call. */
export interface ConnectionFaults {
  /** The connection breaks, nothing was done. */
  readonly resetBefore: number;
  /** The connection breaks after the work was done: the caller cannot know. */
  readonly resetAfter: number;
  /** 500 or 503 of the service itself, as often after the work was done as before; the SDK repeats those. */
  readonly serverError: number;
  /**
   * The caller's session ends: every service refuses its access key from then on (`ExpiredTokenException`, S3's
   * `ExpiredToken`), and the SDK does not repeat that. Only temporary credentials end, so that there are others to get.
   */
  readonly expiredCredentials: number;
}

export interface DynamoFaults extends ConnectionFaults {
  /** Writes and transactions that meet another transaction on the same item; the SDK does not repeat those. */
  readonly transactionConflict: number;
  /** ProvisionedThroughputExceededException or ThrottlingException; the SDK repeats those. */
  readonly throttle: number;
  /** Batches that are done in part (UnprocessedItems, UnprocessedKeys). */
  readonly unprocessed: number;
  /** Queries without a limit whose first page ends after one item, as one may at any size of items. */
  readonly shortPage: number;
  /** Every write appears in the indexes after a random time up to this; 0 = at once, as no real index does. */
  readonly indexLagMs: number;
}

export interface SqsFaults extends ConnectionFaults {
  /** Messages that are accepted and never arrive. */
  readonly lose: number;
  /** Messages that arrive twice; on a FIFO queue under another de-duplication id. */
  readonly duplicate: number;
  /** Messages that arrive up to `maxDelaySeconds` late; a FIFO group waits as a whole. */
  readonly delay: number;
  readonly maxDelaySeconds: number;
  /** Messages on standard queues that others may overtake: held back for up to `maxReorderMs`. */
  readonly reorder: number;
  readonly maxReorderMs: number;
  /**
   * Calls from which on the whole region is silent for up to `maxSilenceMs`: either no call is answered until its
   * connection breaks at the end, or sends are accepted and nothing is delivered before the end.
   */
  readonly silence: number;
  readonly maxSilenceMs: number;
}

export interface S3Faults extends ConnectionFaults {
  /** 503 SlowDown; the SDK repeats those. */
  readonly slowDown: number;
  /** 409 ConditionalRequestConflict on writes with `If-None-Match` or `If-Match`. */
  readonly conditionalConflict: number;
  /** 412 PreconditionFailed: a rival's write of the same object came first, or went again a moment ago (`If-Match`). */
  readonly preconditionFailed: number;
}

export interface LambdaFaults extends ConnectionFaults {
  /** 429 TooManyRequestsException; the SDK repeats those. */
  readonly throttle: number;
}

const steady: ConnectionFaults = { resetBefore: 0, resetAfter: 0, serverError: 0, expiredCredentials: 0 };

/** No faults: the emulators as they are, plus what S3 does and the emulator does not (conditional writes). */
export const quiet: FaultOptions = {
  dynamodb: { ...steady, transactionConflict: 0, throttle: 0, unprocessed: 0, shortPage: 0, indexLagMs: 0 },
  sqs: {
    ...steady,
    lose: 0,
    duplicate: 0,
    delay: 0,
    maxDelaySeconds: 1,
    reorder: 0,
    maxReorderMs: 0,
    silence: 0,
    maxSilenceMs: 0,
  },
  s3: { ...steady, slowDown: 0, conditionalConflict: 0, preconditionFailed: 0 },
  lambda: { ...steady, throttle: 0 },
};

const shaky: ConnectionFaults = { resetBefore: 0.01, resetAfter: 0.01, serverError: 0.01, expiredCredentials: 0.003 };

/** Every fault at once, often enough to meet each within a few hundred calls, rarely enough to make progress. */
export const hostile: FaultOptions = {
  dynamodb: { ...shaky, transactionConflict: 0.05, throttle: 0.03, unprocessed: 0.2, shortPage: 0.2, indexLagMs: 200 },
  sqs: {
    ...shaky,
    lose: 0.03,
    duplicate: 0.1,
    delay: 0.05,
    maxDelaySeconds: 2,
    reorder: 0.2,
    maxReorderMs: 100,
    silence: 0.005,
    maxSilenceMs: 1000,
  },
  s3: { ...shaky, slowDown: 0.03, conditionalConflict: 0.02, preconditionFailed: 0.05 },
  lambda: { ...shaky, throttle: 0.05 },
};

/**
 * What a day in a busy region brings: the weather of every test that does not ask for another. Nothing that only a row's
 * watchdog repairs, so that nothing takes longer by more than the SDK's own retries, and what people are told is whole.
 */
export const everyday: FaultOptions = {
  dynamodb: {
    resetBefore: 0.002,
    resetAfter: 0.002,
    serverError: 0.002,
    expiredCredentials: 0,
    transactionConflict: 0.01,
    throttle: 0.005,
    unprocessed: 0.05,
    shortPage: 0.2,
    indexLagMs: 50,
  },
  sqs: {
    ...quiet.sqs,
    resetBefore: 0.002,
    resetAfter: 0.002,
    serverError: 0.002,
    duplicate: 0.05,
    reorder: 0.1,
    maxReorderMs: 50,
  },
  s3: {
    resetBefore: 0.005,
    resetAfter: 0.005,
    serverError: 0.005,
    expiredCredentials: 0,
    slowDown: 0.01,
    conditionalConflict: 0.02,
    preconditionFailed: 0.02,
  },
  lambda: { resetBefore: 0.005, resetAfter: 0.005, serverError: 0.005, expiredCredentials: 0, throttle: 0.01 },
};
