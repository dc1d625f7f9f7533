import { createHash, randomUUID } from "node:crypto";
import { SendMessageBatchCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { sqsFor } from "#shared/adapters/aws/regional-sqs.ts";
import { correlationAttribute, currentCorrelation } from "#shared/adapters/correlation.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage, StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { type Message, type OwnerRef, ownerKey, type QueueName } from "#shared/messages.ts";
import type { Log, MessageSender } from "#shared/ports.ts";

/** SQS's limit of messages in one call. */
const batch = 10;
/** For entries that SQS failed to accept. The SDK retries whole calls itself. */
const policy: RetryPolicy = {
  tries: (error) => (error instanceof StarlingError && error.retry === "transient" ? 3 : 1),
  firstWaitMs: 100,
  jitter: "full",
};
/** SQS's limit of a group's name. One message with a longer name makes SQS refuse the whole batch. */
const longestGroup = 128;
/** How long the queue of a zone may take for a batch. One that takes longer gets no further batch of the caller. */
const zoneAnswerMs = 5_000;
const zonePauseMs = 30_000;
const zoneBatchesAtOnce = 5;
/** Longer than the longest watchdog: a zone that got no message since may have no cluster any more. */
const deafMs = 20 * 60_000;

/** The queues of the zones besides `home`, for messages to `apply` about their clusters. */
interface ZoneQueues {
  /** By the names of the zones. */
  readonly urls: ReadonlyMap<string, string>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sends messages to their queues in batches. The queue of a zone may be in another account or region. While it refuses
 * messages or does not answer, the zone is down, and its messages are left out: their rows are due again, and nothing
 * else waits or fails because of it. On the FIFO queue, the group is the owner. The deduplication id is new for
 * every send, because SQS remembers ids for five minutes, even those of deleted and purged messages.
 */
export class SqsSender implements MessageSender {
  readonly #clientFor: (to: QueueName) => SQSClient;
  readonly #queueUrls: Readonly<Partial<Record<QueueName, string>>>;
  readonly #zones: ZoneQueues | undefined;
  /** Zones whose queues did not take the last message, and until when they are asked no more, in milliseconds. */
  readonly #pauses = new Map<string, number>();

  /** @param client - may depend on the messages' queue. */
  constructor(
    client: SQSClient | ((to: QueueName) => SQSClient),
    queueUrls: Readonly<Partial<Record<QueueName, string>>>,
    zones?: ZoneQueues,
  ) {
    this.#clientFor = typeof client === "function" ? client : () => client;
    this.#queueUrls = queueUrls;
    this.#zones = zones;
  }

  /** The zones whose queues did not take the last message, of the last minutes. */
  deafZones(): ReadonlySet<string> {
    const now = this.#zones?.clock.now().getTime() ?? 0;
    return new Set([...this.#pauses].flatMap(([zone, until]) => (now < until + deafMs ? [zone] : [])));
  }

  /** @throws the first failure of a queue of `home`, after the messages to all other queues were sent. */
  async send(messages: readonly Message[]): Promise<void> {
    const byZone = Map.groupBy(messages, (message) => this.#zoneOf(message));
    const sent = await Promise.allSettled(
      [...byZone].map(([zone, group]) => (zone === undefined ? this.#sendHome(group) : this.#sendToZone(zone, group))),
    );
    const failure = sent.find((one) => one.status === "rejected");
    if (failure !== undefined) throw failure.reason;
  }

  /** Tries every queue, so that a failing one does not block the others. One that does not answer is asked once. */
  async #sendHome(messages: readonly Message[]): Promise<void> {
    let failure: unknown;
    for (const [to, group] of Map.groupBy(messages, (message) => message.to)) {
      const QueueUrl = this.#queueUrls[to];
      if (QueueUrl === undefined) throw new Error(`this function has no queue for "${to}" messages`);
      const client = await sqsFor(this.#clientFor(to), QueueUrl);
      for (const part of inParts(group, batch)) {
        try {
          await sendBatch(client, { QueueUrl, messages: part });
        } catch (error) {
          failure ??= isNetworkFailure(error) ? unanswered(part, error) : error;
          if (isNetworkFailure(error)) break;
        }
      }
    }
    if (failure !== undefined) throw failure;
  }

  async #sendToZone(zone: string, messages: readonly Message[]): Promise<void> {
    const { urls, clock, log } = this.#zones as ZoneQueues;
    const isPaused = () => clock.now().getTime() < (this.#pauses.get(zone) ?? 0);
    if (isPaused()) return;
    const QueueUrl = urls.get(zone) as string;
    try {
      const client = await sqsFor(this.#clientFor("apply"), QueueUrl);
      await runConcurrently([...inParts(messages, batch)], zoneBatchesAtOnce, (part) =>
        sendBatch(client, { QueueUrl, messages: part, abortSignal: AbortSignal.timeout(zoneAnswerMs) }),
      );
      this.#pauses.delete(zone);
    } catch (caught) {
      // Calls that began together fail together.
      if (isPaused()) return;
      this.#pauses.set(zone, clock.now().getTime() + zonePauseMs);
      const isMute = caught instanceof Error && caught.name === "AbortError";
      const error = isMute ? `no answer within ${zoneAnswerMs / 1000} s` : errorMessage(caught);
      const code = isMute ? "NoAnswer" : codeOf(caught);
      log.error(`the queue of zone ${zone} takes no messages; its clusters wait`, {
        zone,
        queue: QueueUrl,
        code,
        error,
      });
    }
  }

  /** A zone without a queue was removed from the installation. The worker of `home` reports that on its clusters. */
  #zoneOf({ to, zone }: Message): string | undefined {
    return to === "apply" && zone !== undefined && this.#zones?.urls.has(zone) === true ? zone : undefined;
  }
}

/** Errors of AWS are named by their codes. */
function codeOf(error: unknown): string {
  return error instanceof Error && !(error instanceof StarlingError) ? error.name : errorCode(error);
}

interface SentBatch {
  readonly QueueUrl: string;
  readonly messages: readonly Message[];
  readonly abortSignal?: AbortSignal;
}

/** Entries that SQS refused without their own fault are sent again. */
async function sendBatch(client: SQSClient, { QueueUrl, messages, abortSignal }: SentBatch): Promise<void> {
  let left = messages.map((message, index) => entryOf(message, String(index)));
  await retrying(policy, { clock: systemClock }, async () => {
    const answer = await client.send(
      new SendMessageBatchCommand({ QueueUrl, Entries: left }),
      defined({ abortSignal }),
    );
    const failed = answer.Failed ?? [];
    if (failed.length === 0) return;
    const hopeless = failed.some((entry) => entry.SenderFault === true);
    const ids = new Set(failed.map((entry) => entry.Id));
    left = left.filter((entry) => ids.has(entry.Id));
    const codes = [...new Set(failed.map((entry) => entry.Code))].join(", ");
    throw new StarlingError(
      `SQS refused ${failed.length} of ${messages.length} messages to ${messages[0]?.to}: ${codes}`,
      {
        code: "SendFailed",
        retry: hopeless ? "permanent" : "transient",
        data: { codes: failed.map((entry) => entry.Code) },
      },
    );
  });
}

function unanswered([first]: readonly Message[], cause: Error): StarlingError {
  const message = `SQS did not answer, and may or may not have accepted the messages to ${first?.to}`;
  return new StarlingError(message, { code: "SendFailed", retry: "transient", cause });
}

function entryOf(message: Message, id: string) {
  const { delaySeconds, zone: _zone, correlationId = currentCorrelation(), ...body } = message;
  return {
    Id: id,
    MessageBody: JSON.stringify(body),
    ...defined({ DelaySeconds: delaySeconds }),
    ...(correlationId === undefined
      ? {}
      : { MessageAttributes: { [correlationAttribute]: { DataType: "String", StringValue: correlationId } } }),
    ...(message.to === "rollout"
      ? { MessageGroupId: groupOf(message.owner), MessageDeduplicationId: randomUUID() }
      : {}),
  };
}

function groupOf(owner: OwnerRef): string {
  const key = ownerKey(owner);
  return key.length <= longestGroup ? key : createHash("sha256").update(key).digest("hex");
}
