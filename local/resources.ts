/** The table, bucket and queues of the state and control stacks, made on the emulators; made again, they stay. */
import { CreateTableCommand, ResourceInUseException } from "@aws-sdk/client-dynamodb";
import { BucketAlreadyOwnedByYou, CreateBucketCommand } from "@aws-sdk/client-s3";
import { CreateQueueCommand, GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { queueFunctions } from "#local/functions.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import type { QueueName } from "#shared/messages.ts";

export const tableName = "starling";
export const bucketName = "starling-blobs";

/** Receives before a message goes to the dead letters. */
const MAX_RECEIVES = 5;

export async function createTable(aws: AwsClients): Promise<void> {
  const key = (name: string, type: "HASH" | "RANGE") => ({ AttributeName: name, KeyType: type });
  const index = (name: string, pk: string, sk: string) => ({
    IndexName: name,
    KeySchema: [key(pk, "HASH"), key(sk, "RANGE")],
    Projection: { ProjectionType: "KEYS_ONLY" as const },
  });
  const names = ["pk", "sk", "dueShard", "dueKey", "statePk", "stateSk"];
  try {
    await aws.dynamo.send(
      new CreateTableCommand({
        TableName: tableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
        KeySchema: [key("pk", "HASH"), key("sk", "RANGE")],
        GlobalSecondaryIndexes: [index("due", "dueShard", "dueKey"), index("state", "statePk", "stateSk")],
      }),
    );
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
}

export async function createBucket(aws: AwsClients): Promise<void> {
  try {
    await aws.s3.send(new CreateBucketCommand({ Bucket: bucketName }));
  } catch (error) {
    if (!(error instanceof BucketAlreadyOwnedByYou)) throw error;
  }
}

export type QueueTimeouts = Readonly<Record<QueueName, number>>;

/**
 * @param visibilitySeconds - of each queue; at least the time of its function.
 * @param rate - how many of these seconds pass in one.
 */
export async function createQueues(
  sqs: SQSClient,
  visibilitySeconds: QueueTimeouts,
  rate: number,
): Promise<Readonly<Record<QueueName, string>>> {
  const urls: Partial<Record<QueueName, string>> = {};
  for (const name of Object.keys(queueFunctions) as QueueName[]) {
    urls[name] = await createQueue(sqs, {
      name,
      visibilitySeconds: Math.ceil(visibilitySeconds[name] / rate),
      fifo: queueFunctions[name].fifo === true,
    });
  }
  return urls as Record<QueueName, string>;
}

async function createQueue(
  sqs: SQSClient,
  queue: { readonly name: QueueName; readonly visibilitySeconds: number; readonly fifo: boolean },
): Promise<string> {
  const suffix = queue.fifo ? ".fifo" : "";
  const kind: Record<string, string> = queue.fifo ? { FifoQueue: "true" } : {};
  const dead = await sqs.send(new CreateQueueCommand({ QueueName: `${queue.name}-dead${suffix}`, Attributes: kind }));
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: dead.QueueUrl, AttributeNames: ["QueueArn"] }),
  );
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: Attributes?.QueueArn, maxReceiveCount: MAX_RECEIVES });
  const created = await sqs.send(
    new CreateQueueCommand({
      QueueName: `${queue.name}${suffix}`,
      Attributes: { ...kind, VisibilityTimeout: String(queue.visibilitySeconds), RedrivePolicy },
    }),
  );
  if (created.QueueUrl === undefined) throw new Error(`the queue ${queue.name} has no URL`);
  return created.QueueUrl;
}
