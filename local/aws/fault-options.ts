/** What the fault proxy does to calls. Probabilities are from 0 (never) to 1 (always), per call or per message. */
export interface FaultOptions {
  readonly dynamodb: DynamoFaults;
  readonly sqs: SqsFaults;
  readonly s3: S3Faults;
}

/** A connection that breaks. The SDK repeats such a call by itself (standard retry mode), and each attempt is a call. */
export interface ConnectionFaults {
  /** The connection breaks, nothing was done. */
  readonly resetBefore: number;
  /** The connection breaks after the work was done: the caller cannot know. */
  readonly resetAfter: number;
}

export interface DynamoFaults extends ConnectionFaults {
  /** Writes and transactions that meet another transaction on the same item; the SDK does not repeat those. */
  readonly transactionConflict: number;
  /** ProvisionedThroughputExceededException or ThrottlingException; the SDK repeats those. */
  readonly throttle: number;
  /** Batches that are done in part (UnprocessedItems, UnprocessedKeys). */
  readonly unprocessed: number;
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
}

export interface S3Faults extends ConnectionFaults {
  /** 503 SlowDown; the SDK repeats those. */
  readonly slowDown: number;
  /** 409 ConditionalRequestConflict on writes with `If-None-Match` or `If-Match`. */
  readonly conditionalConflict: number;
}

/** No faults: the emulators as they are, plus what S3 does and the emulator does not (conditional writes). */
export const quiet: FaultOptions = {
  dynamodb: { transactionConflict: 0, throttle: 0, unprocessed: 0, indexLagMs: 0, resetBefore: 0, resetAfter: 0 },
  sqs: {
    lose: 0,
    duplicate: 0,
    delay: 0,
    maxDelaySeconds: 1,
    reorder: 0,
    maxReorderMs: 0,
    resetBefore: 0,
    resetAfter: 0,
  },
  s3: { slowDown: 0, conditionalConflict: 0, resetBefore: 0, resetAfter: 0 },
};

/** Every fault at once, often enough to meet each within a few hundred calls, rarely enough to make progress. */
export const hostile: FaultOptions = {
  dynamodb: {
    transactionConflict: 0.05,
    throttle: 0.03,
    unprocessed: 0.2,
    indexLagMs: 200,
    resetBefore: 0.01,
    resetAfter: 0.01,
  },
  sqs: {
    lose: 0.03,
    duplicate: 0.1,
    delay: 0.05,
    maxDelaySeconds: 2,
    reorder: 0.2,
    maxReorderMs: 100,
    resetBefore: 0.01,
    resetAfter: 0.01,
  },
  s3: { slowDown: 0.03, conditionalConflict: 0.02, resetBefore: 0.01, resetAfter: 0.01 },
};
