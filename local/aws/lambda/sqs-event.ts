import type { Message } from "@aws-sdk/client-sqs";
import { defined } from "#shared/base/defined.ts";

/** A record of the event that Lambda makes from an SQS message. */
export interface SqsRecord {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly messageAttributes: Readonly<Record<string, SqsRecordAttribute>>;
  readonly md5OfBody: string;
  readonly eventSource: "aws:sqs";
  readonly eventSourceARN: string;
  readonly awsRegion: string;
}

export interface SqsRecordAttribute {
  readonly stringValue?: string;
  readonly binaryValue?: string;
  readonly stringListValues: readonly string[];
  readonly binaryListValues: readonly string[];
  readonly dataType: string;
}

export interface SqsLambdaEvent {
  readonly Records: readonly SqsRecord[];
}

/** The event as docs.aws.amazon.com/lambda/latest/dg/with-sqs.html describes it. `queueArn` contains the region. */
export function sqsLambdaEvent(messages: readonly Message[], queueArn: string): SqsLambdaEvent {
  return { Records: messages.map((message) => sqsRecord(message, queueArn)) };
}

function sqsRecord(message: Message, queueArn: string): SqsRecord {
  const messageAttributes = Object.entries(message.MessageAttributes ?? {}).map(([name, attribute]) => [
    name,
    {
      ...defined({ stringValue: attribute.StringValue }),
      ...(attribute.BinaryValue === undefined
        ? {}
        : { binaryValue: Buffer.from(attribute.BinaryValue).toString("base64") }),
      stringListValues: [],
      binaryListValues: [],
      dataType: attribute.DataType ?? "String",
    } satisfies SqsRecordAttribute,
  ]);
  return {
    messageId: message.MessageId ?? "",
    receiptHandle: message.ReceiptHandle ?? "",
    body: message.Body ?? "",
    attributes: { ...message.Attributes },
    messageAttributes: Object.fromEntries(messageAttributes),
    md5OfBody: message.MD5OfBody ?? "",
    eventSource: "aws:sqs",
    eventSourceARN: queueArn,
    awsRegion: queueArn.split(":")[3] ?? "",
  };
}

/**
 * The ids of messages that stay in the queue after a function returned, or `"all"`.
 *
 * Lambda reads no result and an empty list as success of all messages. The whole batch fails if an entry has no
 * `itemIdentifier`, an empty one, or one that is not in the batch.
 */
export function failedMessageIds(result: unknown, batch: readonly SqsRecord[]): ReadonlySet<string> | "all" {
  const failures = listedFailures(result);
  if (failures === "malformed") return "all";
  const known = new Set(batch.map(({ messageId }) => messageId));
  const failed = new Set<string>();
  for (const failure of failures) {
    const id = (failure as { itemIdentifier?: unknown } | null)?.itemIdentifier;
    if (typeof id !== "string" || !known.has(id)) return "all";
    failed.add(id);
  }
  return failed;
}

function listedFailures(result: unknown): readonly unknown[] | "malformed" {
  if (typeof result !== "object" || result === null) return [];
  const { batchItemFailures } = result as { batchItemFailures?: unknown };
  if (batchItemFailures === undefined || batchItemFailures === null) return [];
  return Array.isArray(batchItemFailures) ? batchItemFailures : "malformed";
}
