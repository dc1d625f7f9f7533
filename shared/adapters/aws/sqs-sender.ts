import { createHash, randomUUID } from "node:crypto";
import { SendMessageBatchCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { sqsFor } from "#shared/adapters/aws/regional-sqs.ts";
import { correlationAttribute, currentCorrelation } from "#shared/adapters/correlation.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import { type Message, type OwnerRef, ownerKey, type QueueName } from "#shared/messages.ts";
import type { MessageSender } from "#shared/ports.ts";

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

/**
 * Sends messages to their queues in batches. On the FIFO queue, the group is the owner. The deduplication id is new for
 * every send, because SQS remembers ids for five minutes, even those of deleted and purged messages.
 */
export class SqsSender implements MessageSender {
  readonly #clientFor: (to: QueueName) => SQSClient;
  readonly #queueUrls: Readonly<Partial<Record<QueueName, string>>>;
  readonly #zoneQueueUrls: ReadonlyMap<string, string>;

  /**
   *
   * @param client - may depend on the messages' queue.
   * @param zoneQueueUrls - the queues for messages to `apply` about clusters of zones, by the names of the zones.
   */
  constructor(
    client: SQSClient | ((to: QueueName) => SQSClient),
    queueUrls: Readonly<Partial<Record<QueueName, string>>>,
    zoneQueueUrls: ReadonlyMap<string, string> = new Map(),
  ) {
    this.#clientFor = typeof client === "function" ? client : () => client;
    this.#queueUrls = queueUrls;
    this.#zoneQueueUrls = zoneQueueUrls;
  }

  /** Tries every queue, so that a failing one does not block the others. One that does not answer is asked once. */
  async send(messages: readonly Message[]): Promise<void> {
    const byQueue = Map.groupBy(messages, (message) => this.#queueOf(message));
    let failure: unknown;
    for (const [QueueUrl, group] of byQueue) {
      const [{ to }] = group as [Message];
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

  /** A zone without a queue was removed from the installation. The worker of `home` reports that on its clusters. */
  #queueOf({ to, zone }: Message): string {
    const zoneUrl = to === "apply" && zone !== undefined ? this.#zoneQueueUrls.get(zone) : undefined;
    const url = zoneUrl ?? this.#queueUrls[to];
    if (url === undefined) throw new Error(`this function has no queue for "${to}" messages`);
    return url;
  }
}

/** Entries that SQS refused without their own fault are sent again. */
async function sendBatch(
  client: SQSClient,
  { QueueUrl, messages }: { readonly QueueUrl: string; readonly messages: readonly Message[] },
): Promise<void> {
  let left = messages.map((message, index) => entryOf(message, String(index)));
  await retrying(policy, { clock: systemClock }, async () => {
    const answer = await client.send(new SendMessageBatchCommand({ QueueUrl, Entries: left }));
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
