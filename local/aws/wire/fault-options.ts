/** The faults of the fault proxy. Probabilities are per call or per message, from 0 (never) to 1 (always). */
export interface FaultOptions {
  readonly dynamodb: DynamoFaults;
  readonly sqs: SqsFaults;
  readonly s3: S3Faults;
  readonly lambda: LambdaFaults;
}

/** Broken connections. The SDK repeats such a call (standard retry mode), and each attempt counts as a call. */
export interface ConnectionFaults {
  /** The connection breaks before any effect. */
  readonly resetBefore: number;
  /** The connection breaks after the effect, so that the caller cannot know the result. */
  readonly resetAfter: number;
  /** The service answers 500 or 503, equally often before and after the effect. The SDK repeats the call. */
  readonly serverError: number;
  /**
   * The caller's session expires. From then on every service refuses its access key (`ExpiredTokenException`, S3's
   * `ExpiredToken`), and the SDK does not repeat that. Only temporary credentials expire, because the caller can get
   * new ones.
   */
  readonly expiredCredentials: number;
}

export interface DynamoFaults extends ConnectionFaults {
  /** Writes and transactions that conflict with another transaction on the same item. The SDK does not repeat them. */
  readonly transactionConflict: number;
  /** ProvisionedThroughputExceededException or ThrottlingException. The SDK repeats the call. */
  readonly throttle: number;
  /** Batches that are only partly done (UnprocessedItems, UnprocessedKeys). */
  readonly unprocessed: number;
  /** Queries without a limit whose first page ends after one item, as can happen with items of any size. */
  readonly shortPage: number;
  /**
   * Every write appears in the indexes after a random time up to this. With 0 it appears at once, unlike in a real
   * index.
   */
  readonly indexLagMs: number;
}

export interface SqsFaults extends ConnectionFaults {
  /** Messages that are accepted and never delivered. */
  readonly lose: number;
  /** Messages that are delivered twice; on a FIFO queue under another de-duplication id. */
  readonly duplicate: number;
  /** Messages that are up to `maxDelaySeconds` late. A FIFO group waits as a whole. */
  readonly delay: number;
  readonly maxDelaySeconds: number;
  /** Messages on standard queues that are held for up to `maxReorderMs`, so that others overtake them. */
  readonly reorder: number;
  readonly maxReorderMs: number;
  /**
   * Calls that start a silence of the region of up to `maxSilenceMs`. In one kind of silence no call is answered, and
   * its connection breaks at the end. In the other kind sends are accepted, and nothing is delivered before the end.
   */
  readonly silence: number;
  readonly maxSilenceMs: number;
}

export interface S3Faults extends ConnectionFaults {
  /** 503 SlowDown. The SDK repeats the call. */
  readonly slowDown: number;
  /** 409 ConditionalRequestConflict on writes with `If-None-Match` or `If-Match`. */
  readonly conditionalConflict: number;
  /** 412 PreconditionFailed: another writer was faster. With `If-Match` it has also restored the object. */
  readonly preconditionFailed: number;
}

export interface LambdaFaults extends ConnectionFaults {
  /** 429 TooManyRequestsException. The SDK repeats the call. */
  readonly throttle: number;
}

const steady: ConnectionFaults = { resetBefore: 0, resetAfter: 0, serverError: 0, expiredCredentials: 0 };

/** No faults. The proxy still adds conditional writes, which the emulator of S3 lacks. */
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

/** Every fault at once, often enough to meet each within a few hundred calls, and rarely enough to make progress. */
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
 * The faults of a day in a busy region, for every test that sets no other faults. It contains no fault that only a
 * row's watchdog repairs. So nothing takes longer than the SDK's own retries, and reports to people are complete.
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
