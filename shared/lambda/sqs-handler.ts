import middy from "@middy/core";
import { correlationAttribute, leadingCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { type Message, message as messageSchema, type QueueName } from "#shared/messages.ts";
import type { Log, MessageReturns } from "#shared/ports.ts";

/** The part of Lambda's SQS event that Starling reads. */
export interface SqsEvent {
  readonly Records: readonly SqsRecord[];
}

interface SqsRecord {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  readonly attributes: { readonly ApproximateReceiveCount: string };
  readonly messageAttributes?: Readonly<Record<string, { readonly stringValue?: string }>>;
}

export interface SqsBatchResponse {
  readonly batchItemFailures: { readonly itemIdentifier: string }[];
}

/** The part of Lambda's context that Starling reads. */
export interface InvocationContext {
  getRemainingTimeInMillis(): number;
}

export type SqsHandler = (event: SqsEvent, context: InvocationContext) => Promise<SqsBatchResponse>;

type MessageTo<Q extends QueueName> = Extract<Message, { to: Q }>;

/** What the messages of a batch have in common: where they come from. */
interface Correlated {
  readonly correlationId?: string;
}

export interface SqsHandlerOptions<Q extends QueueName> {
  readonly queue: Q;
  readonly log: Log;
  /**
   * Works on the messages of one batch and returns those to be tried again, by index. What it throws returns the whole
   * batch to the queue.
   */
  readonly work: (messages: readonly MessageTo<Q>[], context: InvocationContext) => Promise<readonly Failure[]>;
  /** Left out: what is to be tried again comes back after the visibility timeout of the queue. */
  readonly returns?: MessageReturns;
}

export interface Failure {
  readonly index: number;
  readonly error: unknown;
}

/**
 * A Lambda handler for one queue, with partial batch responses. A message that is not one of Starling's is dropped with
 * an error in the log: it can never succeed, and rows, not messages, hold the truth.
 */
export function sqsHandler<Q extends QueueName>(options: SqsHandlerOptions<Q>): SqsHandler {
  const handle = async (event: SqsEvent, context: InvocationContext): Promise<SqsBatchResponse> => {
    const records = event.Records.flatMap((record) => {
      const message = parse(record.body, options.queue);
      const correlationId = correlationOf(record);
      if (message !== undefined) return [{ record, message: { ...message, ...defined({ correlationId }) } }];
      options.log.error("dropped a message that is not one of Starling's", {
        messageId: record.messageId,
        ...defined({ correlationId }),
      });
      return [];
    });
    if (records.length === 0) return { batchItemFailures: [] };
    const messages = records.map(({ message }) => message);
    const failures = await underCorrelation(
      leadingCorrelation(messages.map(({ correlationId }) => correlationId)),
      () => options.work(messages, context),
    );
    const failed = failures.flatMap(({ index, error }) => {
      const record = records[index]?.record;
      if (record === undefined) return [];
      options.log.warn("message goes back to the queue", {
        messageId: record.messageId,
        ...defined({ correlationId: correlationOf(record) }),
        code: errorCode(error),
        error: errorMessage(error),
      });
      return [record];
    });
    await giveBack(failed, options);
    return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) };
  };
  return middy(handle) as unknown as SqsHandler;
}

/** Where that fails, too, they come back later. */
async function giveBack(
  failed: readonly SqsRecord[],
  { returns, log }: { readonly returns?: MessageReturns; readonly log: Log },
): Promise<void> {
  if (returns === undefined || failed.length === 0) return;
  try {
    await returns.giveBack(
      failed.map(({ receiptHandle, attributes }) => ({
        receiptHandle,
        receives: Number(attributes.ApproximateReceiveCount),
      })),
    );
  } catch (error) {
    log.warn("messages come back late", { code: errorCode(error), error: errorMessage(error) });
  }
}

/** Works on every message by itself, all at once, under its own correlation; those that throw are tried again. */
export async function eachMessage<T extends Correlated>(
  messages: readonly T[],
  work: (message: T) => Promise<void>,
): Promise<readonly Failure[]> {
  const results = await Promise.allSettled(
    messages.map((message) => underCorrelation(message.correlationId, () => work(message))),
  );
  return results.flatMap((result, index) => (result.status === "rejected" ? [{ index, error: result.reason }] : []));
}

function correlationOf({ messageAttributes = {} }: SqsRecord): string | undefined {
  return messageAttributes[correlationAttribute]?.stringValue;
}

function parse<Q extends QueueName>(body: string, queue: Q): MessageTo<Q> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const parsed = messageSchema.safeParse(value);
  return parsed.success && parsed.data.to === queue ? (parsed.data as MessageTo<Q>) : undefined;
}
