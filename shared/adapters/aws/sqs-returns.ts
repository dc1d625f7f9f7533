import { ChangeMessageVisibilityBatchCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import type { MessageReturns, UndoneMessage } from "#shared/ports.ts";

/** SQS's limit of messages in one call. */
const batch = 10;
const firstSeconds = 2;
const longestSeconds = 30;

/**
 * Makes failed messages visible again after 2 seconds, doubling with each receive to 30 seconds. A FIFO queue delivers no other
 * message of the same group while one is hidden, so the queue's own visibility timeout would block an owner for much longer. The
 * delay grows, so that a message does not become a dead letter before somebody can repair the cause.
 */
export class SqsReturns implements MessageReturns {
  readonly #client: SQSClient;
  readonly #queueUrl: string;

  constructor(client: SQSClient, queueUrl: string) {
    this.#client = client;
    this.#queueUrl = queueUrl;
  }

  /** @throws StarlingError when one of them stays hidden for the visibility timeout of its queue. */
  async giveBack(messages: readonly UndoneMessage[]): Promise<void> {
    for (const part of inParts(messages, batch)) {
      const { Failed = [] } = await this.#client.send(
        new ChangeMessageVisibilityBatchCommand({
          QueueUrl: this.#queueUrl,
          Entries: part.map(({ receiptHandle, receives, afterSeconds = secondsAfter(receives) }, index) => ({
            Id: String(index),
            ReceiptHandle: receiptHandle,
            VisibilityTimeout: afterSeconds,
          })),
        }),
      );
      const [first] = Failed;
      if (first === undefined) continue;
      const { Code = "Unknown", Message = "" } = first;
      throw new StarlingError(`SQS did not make ${Failed.length} messages visible again: ${Code} ${Message}`, {
        code: "ReturnRefused",
        retry: "transient",
      });
    }
  }
}

function secondsAfter(receives: number): number {
  return Math.min(firstSeconds * 2 ** Math.max(0, Math.min(receives - 1, 10)), longestSeconds);
}
