import { Principals } from "#local/aws/iam/principals.ts";
import { lambdaApi } from "#local/aws/lambda/lambda-api.ts";
import type { LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";
import { type FaultProxy, startFaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { createBucket } from "#local/aws/services/create-resources.ts";
import { startDynamo } from "#local/aws/services/dynamo-server.ts";
import { startSqsAndS3 } from "#local/aws/services/sqs-s3-server.ts";
import { LambdaBuilder } from "#shared/adapters/aws/lambda-builder.ts";
import { S3BlobStore } from "#shared/adapters/aws/s3-blob-store.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";

export interface BuildWorld {
  readonly aws: AwsClients;
  readonly proxy: FaultProxy;
  readonly builder: LambdaBuilder;
  readonly blobs: S3BlobStore;
  /** Replaces the function `build`. Each call of `newHandler` makes the handler of a new sandbox. */
  beFunction(newHandler: () => LambdaHandler, timeoutSeconds?: number): void;
  /** Stores the files. @returns the artifact's digest. */
  artifact(contents: Readonly<Record<string, string>>): Promise<string>;
  stop(): Promise<void>;
}

const buildBucket = "blobs";
export const renderCredentials = { accessKeyId: "render", secretAccessKey: "secret of render" };

/** S3 and Lambda behind a fault proxy, with everything that `render` needs to invoke `build`. */
export async function startBuildWorld(): Promise<BuildWorld> {
  const principals = new Principals([
    { ...renderCredentials, principalArn: "arn:aws:sts::000000000000:assumed-role/r/render" },
  ]);
  const [dynamo, sqsAndS3] = await Promise.all([startDynamo(), startSqsAndS3()]);
  let lambda = functionOf(() => () => undefined, 5);
  const proxy = await startFaultProxy({
    targets: {
      dynamodb: dynamo.send,
      sqs: sqsAndS3.send,
      s3: sqsAndS3.send,
      lambda: lambdaApi((name) => (name === "build" ? lambda : undefined)),
    },
    principals,
    seed: 1,
  });
  const { dynamodb, sqs, s3 } = proxy.endpoints;
  const nowhere = "http://127.0.0.1:9";
  const aws = awsClients({
    region: "us-east-1",
    credentials: renderCredentials,
    endpoints: {
      dynamo: dynamodb,
      sqs,
      s3,
      lambda: proxy.endpoints.lambda,
      secrets: nowhere,
      sts: nowhere,
      eks: nowhere,
      logs: nowhere,
      alarms: nowhere,
      events: nowhere,
    },
  });
  await createBucket(aws.s3, buildBucket);
  const blobs = new S3BlobStore(aws.s3, buildBucket);
  const { presigner } = aws;
  return {
    aws,
    proxy,
    blobs,
    builder: new LambdaBuilder({ lambda: aws.lambda, presigner, blobs, bucket: buildBucket, functionName: "build" }),
    beFunction(newHandler, timeoutSeconds = 5) {
      lambda.close();
      lambda = functionOf(newHandler, timeoutSeconds);
    },
    async artifact(contents) {
      const files = Object.entries(contents).map(([path, text]) => ({
        path,
        executable: false,
        content: new TextEncoder().encode(text),
      }));
      const digest = treeDigest(files);
      await blobs.overwrite(blobKeys.artifact(digest), await packArtifact(files));
      return digest;
    },
    async stop() {
      lambda.close();
      for (const client of [aws.dynamo, aws.sqs, aws.s3, aws.lambda]) client.destroy();
      await proxy.stop();
      await Promise.all([dynamo.stop(), sqsAndS3.stop()]);
    },
  };
}

function functionOf(newHandler: () => LambdaHandler, timeoutSeconds: number) {
  return lambdaFunction({
    functionName: "build",
    timeoutSeconds,
    tenancy: "per tenant",
    newSandbox: () => sharedSandbox(newHandler()),
  });
}
