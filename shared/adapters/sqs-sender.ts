import { createHash, randomUUID } from "node:crypto";
import { SendMessageBatchCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { StarlingError } from "#shared/errors.ts";
import { type Message, type QueueName, type SubjectRef, subjectKey } from "#shared/messages.ts";
import type { MessageSender } from "#shared/ports.ts";

/** SQS takes so many messages in one call. */
const BATCH = 10;
/** SQS takes no longer group; one message with a longer one refuses the whole batch. */
const LONGEST_GROUP = 128;

/**
 * Sends to the queue each message names, in batches. On the FIFO queue the group is the subject, and the
 * de-duplication id is new for every send: SQS remembers ids for five minutes, even of deleted and purged messages.
 */
export class SqsSender implements MessageSender {
  readonly #client: SQSClient;
  readonly #queueUrls: Readonly<Partial<Record<QueueName, string>>>;

  constructor(client: SQSClient, queueUrls: Readonly<Partial<Record<QueueName, string>>>) {
    this.#client = client;
    this.#queueUrls = queueUrls;
  }

  async send(messages: readonly Message[]): Promise<void> {
    const byQueue = Map.groupBy(messages, (message) => message.to);
    for (const [queue, group] of byQueue) {
      for (let start = 0; start < group.length; start += BATCH) {
        await this.#sendBatch(queue, group.slice(start, start + BATCH));
      }
    }
  }

  async #sendBatch(queue: QueueName, messages: readonly Message[]): Promise<void> {
    const QueueUrl = this.#queueUrls[queue];
    if (QueueUrl === undefined) throw new Error(`this function has no queue for "${queue}" messages`);
    const Entries = messages.map((message, index) => entryOf(message, String(index)));
    const answer = await this.#client.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
    const failed = answer.Failed ?? [];
    if (failed.length === 0) return;
    throw new StarlingError(`SQS refused ${failed.length} of ${messages.length} messages to ${queue}`, {
      code: "SendFailed",
      retry: failed.some((entry) => entry.SenderFault === true) ? "permanent" : "transient",
      data: { codes: failed.map((entry) => entry.Code) },
    });
  }
}

function entryOf(message: Message, id: string) {
  const { delaySeconds, ...body } = message;
  return {
    Id: id,
    MessageBody: JSON.stringify(body),
    ...(delaySeconds === undefined ? {} : { DelaySeconds: delaySeconds }),
    ...(message.to === "rollout"
      ? { MessageGroupId: groupOf(message.subject), MessageDeduplicationId: randomUUID() }
      : {}),
  };
}

function groupOf(subject: SubjectRef): string {
  const key = subjectKey(subject);
  return key.length <= LONGEST_GROUP ? key : createHash("sha256").update(key).digest("hex");
}
