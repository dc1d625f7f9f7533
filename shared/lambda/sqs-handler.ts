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
  /** The ARN of the queue. */
  readonly eventSourceARN?: string;
  readonly attributes: { readonly ApproximateReceiveCount: string; readonly SentTimestamp?: string };
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

/** The metadata of a received message. */
export interface Delivered {
  readonly correlationId?: string;
  /** How often the message was received, including this time. SQS only estimates it. */
  readonly receives: number;
  /** The time of SQS' clock; absent when SQS does not supply it. */
  readonly sentAt?: Date;
}

export interface SqsHandlerOptions<Q extends QueueName> {
  readonly queue: Q;
  readonly log: Log;
  /**
   * Works on the messages of one batch and returns those that stay in the queue, by index. An error that it throws returns the whole
   * batch to the queue.
   */
  readonly work: (
    messages: readonly (MessageTo<Q> & Delivered)[],
    context: InvocationContext,
  ) => Promise<readonly Undone[]>;
  /** Default: a failed message returns after the queue's visibility timeout. */
  readonly returns?: MessageReturns;
  /** For messages that were processed and return on purpose. */
  readonly delays?: MessageReturns;
}

/** A message to try again. */
export interface Failure {
  readonly index: number;
  readonly error: unknown;
}

/** A processed message that returns later as its own successor. */
interface Delay {
  readonly index: number;
  readonly afterSeconds: number;
}

type Undone = Failure | Delay;

/**
 * A Lambda handler for one queue, with partial batch responses. A message that is not one of Starling's is dropped with
 * an error in the log: it can never succeed, and rows, not messages, hold the truth.
 *
 * The batch processor of Powertools does not serve here, because it hands out one record at a time and sets no delays. The
 * planner works on all messages of an owner together, and each failed message comes back at a time of its own.
 */
export function sqsHandler<Q extends QueueName>(options: SqsHandlerOptions<Q>): SqsHandler {
  const handle = async (event: SqsEvent, context: InvocationContext): Promise<SqsBatchResponse> => {
    const records = event.Records.flatMap((record) => {
      const message = parse(record.body, options.queue);
      const correlationId = correlationOf(record);
      const receives = Number(record.attributes.ApproximateReceiveCount);
      const delivered = { receives, ...defined({ correlationId, sentAt: sentAtOf(record) }) };
      if (message !== undefined) return [{ record, message: { ...message, ...delivered } }];
      options.log.error("dropped a message that is not one of Starling's", {
        messageId: record.messageId,
        ...defined({ correlationId }),
      });
      return [];
    });
    if (records.length === 0) return { batchItemFailures: [] };
    const messages = records.map(({ message }) => message);
    const undone = await underCorrelation(leadingCorrelation(messages.map(({ correlationId }) => correlationId)), () =>
      options.work(messages, context),
    );
    const kept = undone.flatMap((one) => {
      const record = records[one.index]?.record;
      if (record === undefined) return [];
      if ("afterSeconds" in one) return [{ record, afterSeconds: one.afterSeconds }];
      options.log.warn("message goes back to the queue", {
        messageId: record.messageId,
        ...defined({ correlationId: correlationOf(record) }),
        code: errorCode(one.error),
        error: errorMessage(one.error),
      });
      return [{ record }];
    });
    const [delayed, failed] = [kept.filter(isDelayed), kept.filter((one) => !isDelayed(one))];
    await giveBack(failed, options.returns, options.log);
    await giveBack(delayed, options.delays, options.log);
    return { batchItemFailures: kept.map(({ record }) => ({ itemIdentifier: record.messageId })) };
  };
  return middy(handle) as unknown as SqsHandler;
}

interface Kept {
  readonly record: SqsRecord;
  readonly afterSeconds?: number;
}

function isDelayed({ afterSeconds }: Kept): boolean {
  return afterSeconds !== undefined;
}

/** If that fails, too, the messages return later. */
async function giveBack(kept: readonly Kept[], returns: MessageReturns | undefined, log: Log): Promise<void> {
  if (returns === undefined || kept.length === 0) return;
  try {
    await returns.giveBack(
      kept.map(({ record: { receiptHandle, attributes }, afterSeconds }) => ({
        receiptHandle,
        receives: Number(attributes.ApproximateReceiveCount),
        ...defined({ afterSeconds }),
      })),
    );
  } catch (error) {
    log.warn("messages come back late", { code: errorCode(error), error: errorMessage(error) });
  }
}

/**
 * The handler of a function that works on several queues. Each batch comes from one of them.
 * @param handlers - by the URL of the queue. A batch without a queue goes to the first handler.
 */
export function byQueue(handlers: Readonly<Record<string, SqsHandler>>): SqsHandler {
  const named = new Map(Object.entries(handlers).map(([url, handler]) => [url.split("/").at(-1), handler]));
  const [first] = named.values();
  return (event, context) => {
    const queue = event.Records[0]?.eventSourceARN?.split(":").at(-1);
    const handler = queue === undefined ? first : named.get(queue);
    if (handler === undefined)
      throw new Error(`no handler works on messages of the queue ${queue ?? "without a name"}`);
    return handler(event, context);
  };
}

/**
 * Processes every message separately and concurrently, under its own correlation id. Messages whose work throws are
 * tried again.
 * @param work - returns the seconds after which its message returns, if it does.
 */
export async function eachMessage<T extends Pick<Delivered, "correlationId">>(
  messages: readonly T[],
  work: (message: T) => Promise<unknown>,
): Promise<readonly Undone[]> {
  const results = await Promise.allSettled(
    messages.map((message) => underCorrelation(message.correlationId, () => work(message))),
  );
  return results.flatMap((result, index): readonly Undone[] => {
    if (result.status === "rejected") return [{ index, error: result.reason }];
    return typeof result.value === "number" ? [{ index, afterSeconds: result.value }] : [];
  });
}

function correlationOf({ messageAttributes = {} }: SqsRecord): string | undefined {
  return messageAttributes[correlationAttribute]?.stringValue;
}

function sentAtOf({ attributes }: SqsRecord): Date | undefined {
  const at = Number(attributes.SentTimestamp);
  return Number.isFinite(at) ? new Date(at) : undefined;
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
