import { setTimeout as sleep } from "node:timers/promises";
import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { type InvocationOutcome, invokeFunction } from "#local/aws/function-invocation.ts";
import type { FunctionIdentity, LambdaHandler } from "#local/aws/lambda-context.ts";
import { failedMessageIds, type SqsLambdaEvent, type SqsRecord, sqsLambdaEvent } from "#local/aws/sqs-event.ts";

export interface EventSourceOptions extends FunctionIdentity {
  readonly sqs: SQSClient;
  readonly queueUrl: string;
  readonly handler: LambdaHandler;
  /** Messages per invocation; at most 10, default 10. */
  readonly batchSize?: number;
  /** How long to gather a batch; standard queues only, default 0. */
  readonly batchingWindowSeconds?: number;
  /** Invocations at once; Lambda takes 2 to 1,000, one machine may also take 1. Default 10. */
  readonly maximumConcurrency?: number;
  /** `ReportBatchItemFailures`; without it a returned value means that all succeeded. Default `true`. */
  readonly reportBatchItemFailures?: boolean;
  readonly onInvocation?: (report: InvocationReport) => void;
  /** Receives and deletes that failed after the client's own retries; the loop goes on after a second. */
  readonly onError?: (error: unknown) => void;
}

export interface InvocationReport {
  readonly functionName: string;
  readonly outcome: InvocationOutcome["outcome"];
  readonly error?: unknown;
  readonly durationMs: number;
  readonly messageIds: readonly string[];
  /** Messages of the batch that go back to the queue. */
  readonly failedMessageIds: readonly string[];
}

/** One event source mapping: an SQS queue and the function it invokes. */
export interface EventSourceLoop {
  readonly queueArn: string;
  /** Invocations that run now; abandoned ones do not count. */
  running(): number;
  /** No further receives; what runs goes on. Resolves when the open receive is over. */
  pause(): Promise<void>;
  resume(): void;
  /** Ends the loop after the invocations that run now. */
  stop(): Promise<void>;
  /** The sandboxes die: nobody waits for what runs, its messages return after the visibility timeout. Goes on polling. */
  kill(): void;
}

const longPollSeconds = 20;
const maxBatch = 10;
const retryAfterMs = 1000;

/**
 * Polls a queue and invokes a function with Lambda's semantics for SQS, standard and FIFO: what succeeded is deleted, what
 * is listed in `batchItemFailures` stays until the queue's visibility timeout, an error or a timeout returns the whole
 * batch. The queue's RedrivePolicy moves what was received too often. Idle, it costs one request in 20 s.
 *
 * On a FIFO queue the order within a group is the queue's: a group's next message comes when its last is deleted. The
 * emulator gives one message of a group per receive where AWS may give ten, so batches span groups only.
 *
 * @throws Error when the function's timeout exceeds the queue's visibility timeout, which Lambda refuses too.
 */
export async function startEventSource(options: EventSourceOptions): Promise<EventSourceLoop> {
  const { sqs, queueUrl, maximumConcurrency = 10 } = options;
  const batchSize = Math.min(options.batchSize ?? maxBatch, maxBatch);
  const queue = await describeQueue(options);
  const windowMs = (options.batchingWindowSeconds ?? 0) * 1000;
  const running = new Set<Promise<void>>();
  let sandboxes = new AbortController();
  let polling: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
  let wake = Promise.withResolvers<void>();

  function start(): void {
    if (polling !== undefined) return;
    const abort = new AbortController();
    polling = { abort, ended: poll(abort.signal) };
  }

  async function halt(): Promise<void> {
    const halted = polling;
    polling = undefined;
    halted?.abort.abort();
    wake.resolve();
    await halted?.ended;
  }

  async function poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (running.size >= maximumConcurrency) {
        wake = Promise.withResolvers();
        await wake.promise;
        continue;
      }
      const messages = await gather(signal);
      if (messages.length > 0) track(process(messages, sandboxes.signal));
    }
  }

  async function gather(signal: AbortSignal): Promise<Message[]> {
    const messages = await receive(batchSize, longPollSeconds, signal);
    const windowEnds = performance.now() + windowMs;
    while (windowMs > 0 && messages.length > 0 && messages.length < batchSize && !signal.aborted) {
      const leftMs = windowEnds - performance.now();
      if (leftMs <= 0) break;
      const more = await receive(batchSize - messages.length, 0, signal);
      messages.push(...more);
      if (more.length === 0) await sleep(Math.min(leftMs, 50), undefined, { signal }).catch(() => {});
    }
    return messages;
  }

  async function receive(count: number, waitSeconds: number, signal: AbortSignal): Promise<Message[]> {
    try {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: count,
          WaitTimeSeconds: waitSeconds,
          MessageSystemAttributeNames: ["All"],
          MessageAttributeNames: ["All"],
        }),
        { abortSignal: signal },
      );
      return Messages;
    } catch (error) {
      if (signal.aborted) return [];
      options.onError?.(error);
      await sleep(retryAfterMs, undefined, { signal }).catch(() => {});
      return [];
    }
  }

  function track(invocation: Promise<void>): void {
    running.add(invocation);
    invocation.finally(() => {
      running.delete(invocation);
      wake.resolve();
    });
  }

  async function process(messages: readonly Message[], killed: AbortSignal): Promise<void> {
    const event = sqsLambdaEvent(messages, queue.arn);
    const startedAt = performance.now();
    const outcome = await invokeFunction({ ...options, event, killed });
    const failed = failures(outcome, event);
    const succeeded = event.Records.filter(({ messageId }) => !failed.has(messageId));
    if (succeeded.length > 0) await remove(succeeded);
    options.onInvocation?.({
      functionName: options.functionName,
      outcome: outcome.outcome,
      ...(outcome.outcome === "failed" ? { error: outcome.error } : {}),
      durationMs: performance.now() - startedAt,
      messageIds: event.Records.map(({ messageId }) => messageId),
      failedMessageIds: [...failed],
    });
  }

  function failures(outcome: InvocationOutcome, { Records }: SqsLambdaEvent): ReadonlySet<string> {
    const all = new Set(Records.map(({ messageId }) => messageId));
    if (outcome.outcome !== "returned") return all;
    if (options.reportBatchItemFailures === false) return new Set();
    const failed = failedMessageIds(outcome.result, Records);
    return failed === "all" ? all : failed;
  }

  async function remove(records: readonly SqsRecord[]): Promise<void> {
    try {
      await sqs.send(
        new DeleteMessageBatchCommand({
          QueueUrl: queueUrl,
          Entries: records.map(({ receiptHandle }, index) => ({ Id: `${index}`, ReceiptHandle: receiptHandle })),
        }),
      );
    } catch (error) {
      options.onError?.(error);
    }
  }

  start();
  return {
    queueArn: queue.arn,
    running: () => running.size,
    pause: halt,
    resume: start,
    async stop() {
      await halt();
      await Promise.all(running);
    },
    kill() {
      sandboxes.abort();
      sandboxes = new AbortController();
    },
  };
}

async function describeQueue(options: EventSourceOptions): Promise<{ readonly arn: string }> {
  const { sqs, queueUrl, functionName, timeoutSeconds, batchingWindowSeconds = 0 } = options;
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ["QueueArn", "VisibilityTimeout"] }),
  );
  const visibilitySeconds = Number(Attributes.VisibilityTimeout);
  if (timeoutSeconds > visibilitySeconds) {
    throw new Error(
      `The timeout of ${functionName}, ${timeoutSeconds} s, exceeds the visibility timeout of its queue ${queueUrl}, ` +
        `${visibilitySeconds} s; Lambda refuses that. Make the visibility timeout at least six times the function's.`,
    );
  }
  if (batchingWindowSeconds > 0 && queueUrl.endsWith(".fifo")) {
    throw new Error(`A batching window is not supported on FIFO queues, and ${queueUrl} is one; set it to 0`);
  }
  return { arn: Attributes.QueueArn ?? "" };
}
