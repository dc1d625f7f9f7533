/** Creates the resources of templates on the emulators. Resources in a kept state stay and are updated. */

import { CreateTableCommand, type DynamoDBClient, ResourceInUseException } from "@aws-sdk/client-dynamodb";
import { BucketAlreadyOwnedByYou, CreateBucketCommand, type S3Client } from "@aws-sdk/client-s3";
import {
  CreateSecretCommand,
  DescribeSecretCommand,
  PutSecretValueCommand,
  ResourceExistsException,
  type SecretsManagerClient,
} from "@aws-sdk/client-secrets-manager";
import {
  CreateQueueCommand,
  GetQueueUrlCommand,
  QueueNameExists,
  SetQueueAttributesCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { QueuePlan, TablePlan } from "#local/template/machine-plan.ts";
import { defined } from "#shared/base/defined.ts";

export async function createTable(dynamo: Pick<DynamoDBClient, "send">, table: TablePlan): Promise<void> {
  try {
    await dynamo.send(
      new CreateTableCommand({
        TableName: table.name,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [...table.AttributeDefinitions],
        KeySchema: [...table.KeySchema],
        GlobalSecondaryIndexes: table.GlobalSecondaryIndexes.map(({ IndexName, KeySchema, Projection }) => ({
          IndexName,
          KeySchema: [...KeySchema],
          Projection: {
            ProjectionType: Projection.ProjectionType,
            ...(Projection.NonKeyAttributes === undefined
              ? {}
              : { NonKeyAttributes: [...Projection.NonKeyAttributes] }),
          },
        })),
      }),
    );
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
}

export async function createBucket(s3: S3Client, name: string): Promise<void> {
  try {
    await s3.send(new CreateBucketCommand({ Bucket: name }));
  } catch (error) {
    if (!(error instanceof BucketAlreadyOwnedByYou)) throw error;
  }
}

/** Creates a secret, or gives it a new value. @returns its ARN. */
export async function putSecret(
  secrets: SecretsManagerClient,
  secret: { readonly name: string; readonly value: string },
): Promise<string> {
  try {
    await secrets.send(new CreateSecretCommand({ Name: secret.name, SecretString: secret.value }));
  } catch (error) {
    if (!(error instanceof ResourceExistsException)) throw error;
    await secrets.send(new PutSecretValueCommand({ SecretId: secret.name, SecretString: secret.value }));
  }
  const { ARN = "" } = await secrets.send(new DescribeSecretCommand({ SecretId: secret.name }));
  return ARN;
}

/** Creates a secret without a value unless it exists, as stacks do. @returns its ARN. */
export async function createSecret(secrets: SecretsManagerClient, name: string): Promise<string> {
  try {
    await secrets.send(new CreateSecretCommand({ Name: name }));
  } catch (error) {
    if (!(error instanceof ResourceExistsException)) throw error;
  }
  const { ARN = "" } = await secrets.send(new DescribeSecretCommand({ SecretId: name }));
  return ARN;
}

/** The name of a queue on SQS: the template's, where functions find one queue by the name of another. */
export function queueNameOf({ name, fifo, derivedName }: Pick<QueuePlan, "name" | "fifo" | "derivedName">): string {
  if (derivedName !== undefined) return derivedName;
  return fifo ? `${name}.fifo` : name;
}

/** A queue under its name in the plan. Redrive policies and event sources refer to it by this name. */
export interface CreatedQueue {
  readonly url: string;
  readonly arn: string;
  readonly region: string;
  readonly queueName: string;
}

/**
 * @param rate - the number of a queue's seconds that pass in one real second. @returns the queues by their names in the
 * plan.
 */
export async function createQueues(
  sqs: SQSClient | ((region: string) => SQSClient),
  queues: readonly QueuePlan[],
  rate: number,
): Promise<ReadonlyMap<string, CreatedQueue>> {
  const created = new Map<string, CreatedQueue>();
  // Dead-letter queues come first, because other queues refer to them.
  const ordered = [...queues].sort(
    (left, right) => Number(left.redrive !== undefined) - Number(right.redrive !== undefined),
  );
  for (const queue of ordered) {
    const queueName = queueNameOf(queue);
    const region = queue.place?.region ?? localRegion;
    const client = typeof sqs === "function" ? sqs(region) : sqs;
    const dead = queue.redrive && created.get(queue.redrive.queue);
    const url = await createQueue(client, queueName, queueAttributes(queue, { rate, dead }));
    created.set(queue.name, { url, arn: queueArn(queueName, region), queueName, region });
  }
  return created;
}

/** Queues of all accounts are in one account of the emulator. */
function queueArn(queueName: string, region: string): string {
  return `arn:aws:sqs:${region}:${localAccountId}:${queueName}`;
}

/** The lower limit of SQS. */
const shortestRetentionSeconds = 60;

function queueAttributes(
  queue: QueuePlan,
  { rate, dead }: { readonly rate: number; readonly dead: CreatedQueue | undefined },
): Record<string, string> {
  const { redrive, contentBasedDeduplication, deduplicationScope, throughputLimit } = queue;
  const retention = Math.max(shortestRetentionSeconds, Math.ceil(queue.retentionSeconds / rate));
  return {
    ...(queue.fifo ? { FifoQueue: "true" } : {}),
    ...(contentBasedDeduplication === undefined
      ? {}
      : { ContentBasedDeduplication: String(contentBasedDeduplication) }),
    ...defined({ DeduplicationScope: deduplicationScope, FifoThroughputLimit: throughputLimit }),
    VisibilityTimeout: String(Math.ceil(queue.visibilityTimeoutSeconds / rate)),
    MessageRetentionPeriod: String(retention),
    DelaySeconds: String(Math.ceil(queue.delaySeconds / rate)),
    ...(redrive === undefined || dead === undefined
      ? {}
      : {
          RedrivePolicy: JSON.stringify({
            deadLetterTargetArn: dead.arn,
            maxReceiveCount: redrive.maxReceiveCount,
          }),
        }),
  };
}

async function createQueue(sqs: SQSClient, QueueName: string, Attributes: Record<string, string>): Promise<string> {
  try {
    const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName, Attributes }));
    return given(QueueUrl, QueueName);
  } catch (error) {
    if (!(error instanceof QueueNameExists)) throw error;
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName }));
    const { FifoQueue: _fixed, ...settable } = Attributes;
    await sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: settable }));
    return given(QueueUrl, QueueName);
  }
}

function given(url: string | undefined, queueName: string): string {
  if (url === undefined) throw new Error(`the queue ${queueName} has no URL`);
  return url;
}
