import { setTimeout as sleep } from "node:timers/promises";
import {
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import type {
  Invocation,
  InvocationFigures,
  InvocationOutcome,
  InvocationRequest,
  LambdaFunction,
} from "#local/aws/lambda/lambda-function.ts";
import { failedMessageIds, type SqsLambdaEvent, type SqsRecord, sqsLambdaEvent } from "#local/aws/lambda/sqs-event.ts";
import { hopsOf, mostHops } from "#local/aws/lambda/trace-header.ts";

export interface EventSourceOptions {
  readonly lambda: LambdaFunction;
  readonly sqs: SQSClient;
  readonly queueUrl: string;
  /** Messages per invocation, at most 10,000. More than 10 need a batching window. The default is 10. */
  readonly batchSize?: number;
  /** The longest time to gather a batch. It works on standard queues only. The default is 0. */
  readonly batchingWindowSeconds?: number;
  /**
   * The number of concurrent invocations. Lambda accepts 2 to 1,000; this machine also accepts 1. The default is 10.
   */
  readonly maximumConcurrency?: number;
  /**
   * `ReportBatchItemFailures`. Without it, a returned value means that every message succeeded. The default is `true`.
   */
  readonly reportBatchItemFailures?: boolean;
  readonly onInvocation?: (report: InvocationReport) => void;
  /** Called for receives and deletes that failed after the client's own retries. The loop continues after a second. */
  readonly onError?: (error: unknown) => void;
}

export interface InvocationReport extends Partial<InvocationFigures> {
  readonly functionName: string;
  /**
   * `stopped` means that the function was not invoked, because this would have been its 17th invocation in one chain of
   * messages. In this case `hops` is the only figure that is set.
   */
  readonly outcome: InvocationOutcome["outcome"] | "stopped";
  readonly error?: unknown;
  readonly hops: number;
  readonly messageIds: readonly string[];
  /** The messages of the batch that return to the queue. */
  readonly failedMessageIds: readonly string[];
}

/** One event source mapping: an SQS queue and the function it invokes. */
export interface EventSourceLoop {
  readonly queueArn: string;
  /** The number of invocations that run now. Abandoned invocations do not count. */
  running(): number;
  /** Stops receiving; current invocations continue. Resolves when the open receive is over. */
  pause(): Promise<void>;
  resume(): void;
  /** Ends the loop after the current invocations. */
  stop(): Promise<void>;
  /** Ends all sandboxes. Their messages return after the visibility timeout. The loop continues to poll. */
  kill(): void;
}

const longPollSeconds = 20;
/** The largest number of messages in one receive or delete. */
const maxReceive = 10;
const defaultBatch = 10;
const retryAfterMs = 1000;
/** The time between two attempts to get a slot of the account. */
const placeAfterMs = 200;

/**
 * Polls a queue and invokes a function with Lambda's semantics for standard and FIFO queues. It deletes messages that
 * succeeded. A message in `batchItemFailures` stays until the queue's visibility timeout, or for as long as the
 * function has told the queue to hide it. An error or a timeout returns the whole batch.
 *
 * A message whose chain has invoked the function 16 times no longer invokes it, unless the function's RecursiveLoop is
 * Allow. The queue's RedrivePolicy moves messages that were received too often. An idle loop sends one request in 20 s.
 *
 * On a FIFO queue, a group's next message arrives after its last one is deleted. The emulator returns one message of a
 * group per receive where AWS may return ten, so a batch never has two messages of a group.
 * @throws Error when the function's timeout exceeds the queue's visibility timeout, which Lambda refuses, too.
 */
export async function startEventSource(options: EventSourceOptions): Promise<EventSourceLoop> {
  const { lambda, sqs, queueUrl, maximumConcurrency = 10, batchSize = defaultBatch } = options;
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
      const [next, stopped] = stopLoops(messages);
      if (stopped.length > 0) reportStopped(stopped);
      if (next.length > 0) track(process(next, sandboxes.signal));
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

  /**
   * Splits messages into those for the next invocation and those that return to the queue because of their long chain.
   */
  function stopLoops(messages: readonly Message[]): readonly [Message[], Message[]] {
    const stops = (message: Message) => lambda.recursiveLoop === "terminate" && hopsBefore(message) >= mostHops;
    return [messages.filter((message) => !stops(message)), messages.filter(stops)];
  }

  function hopsBefore({ Attributes }: Message): number {
    return hopsOf(Attributes?.AWSTraceHeader, lambda.functionName);
  }

  function reportStopped(messages: readonly Message[]): void {
    const messageIds = messages.map(({ MessageId = "" }) => MessageId);
    options.onInvocation?.({
      functionName: lambda.functionName,
      outcome: "stopped",
      hops: Math.max(...messages.map(hopsBefore)),
      messageIds,
      failedMessageIds: messageIds,
    });
  }

  async function receive(count: number, waitSeconds: number, signal: AbortSignal): Promise<Message[]> {
    try {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: Math.min(count, maxReceive),
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
    const traces = messages.map(({ Attributes }) => Attributes?.AWSTraceHeader);
    const invocation = await invokeOnce({ event, killed, traces });
    const failed = failures(invocation, event);
    const succeeded = event.Records.filter(({ messageId }) => !failed.has(messageId));
    for (let first = 0; first < succeeded.length; first += maxReceive) {
      await remove(succeeded.slice(first, first + maxReceive));
    }
    options.onInvocation?.({
      functionName: lambda.functionName,
      outcome: invocation.outcome,
      ...(invocation.outcome === "failed" ? { error: invocation.error } : {}),
      ...invocation.figures,
      messageIds: event.Records.map(({ messageId }) => messageId),
      failedMessageIds: [...failed],
    });
  }

  /** Repeats a throttled invocation until the messages are visible again and the next receive returns them. */
  async function invokeOnce(request: InvocationRequest): Promise<Invocation> {
    const givesUpAt = performance.now() + queue.visibilitySeconds * 1000;
    for (;;) {
      const invocation = await lambda.invoke(request);
      if (invocation.outcome !== "throttled" || performance.now() + placeAfterMs > givesUpAt) return invocation;
      await sleep(placeAfterMs, undefined, { signal: request.killed }).catch(() => {});
      if (request.killed.aborted) return invocation;
    }
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

async function describeQueue(options: EventSourceOptions): Promise<{
  readonly arn: string;
  readonly visibilitySeconds: number;
}> {
  const { sqs, queueUrl, batchSize = defaultBatch, batchingWindowSeconds = 0 } = options;
  const { functionName, timeoutSeconds, clock } = options.lambda;
  const { Attributes = {} } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ["QueueArn", "VisibilityTimeout"] }),
  );
  const visibilitySeconds = Number(Attributes.VisibilityTimeout);
  const fifo = queueUrl.endsWith(".fifo");
  if (timeoutSeconds / (clock?.rate ?? 1) > visibilitySeconds) {
    throw new Error(
      `The timeout of ${functionName}, ${timeoutSeconds} s, exceeds the visibility timeout of its queue ${queueUrl}, ` +
        `${visibilitySeconds} s, which Lambda refuses; set the visibility timeout to at least six times the function's`,
    );
  }
  if (batchingWindowSeconds > 0 && fifo) {
    throw new Error(`A FIFO queue has no batching window: ${queueUrl}; set the window to 0`);
  }
  if (batchSize > maxReceive && (fifo || batchingWindowSeconds === 0)) {
    const remedy = fifo ? "use at most 10 on a FIFO queue" : "use at most 10, or add a batching window";
    throw new Error(`Lambda refuses the batch size of ${functionName}: ${batchSize}; ${remedy}`);
  }
  return { arn: Attributes.QueueArn ?? "", visibilitySeconds };
}
