import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { SQSClient } from "@aws-sdk/client-sqs";
import { Principals } from "#local/aws/iam/principals.ts";
import { lambdaApi } from "#local/aws/lambda/lambda-api.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { startDynamo } from "#local/aws/services/dynamo-server.ts";
import { startSqsAndS3 } from "#local/aws/services/sqs-s3-server.ts";

export interface AwsEmulators {
  readonly proxy: FaultProxy;
  readonly dynamodb: DynamoDBClient;
  readonly sqs: SQSClient;
  readonly s3: S3Client;
  /** More clients of the same endpoints, for example with `maxAttempts: 1`. */
  clients(options: { readonly maxAttempts: number }): {
    readonly dynamodb: DynamoDBClient;
    readonly sqs: SQSClient;
    readonly s3: S3Client;
  };
  stop(): Promise<void>;
}

export interface AwsEmulatorOptions extends Omit<FaultProxyOptions, "targets" | "principals"> {
  /** Additional signers of requests. */
  readonly principals?: Principals;
  /** The folder for tables and objects. The default keeps them in memory. */
  readonly stateDir?: string;
}

const credentials = { accessKeyId: "local", secretAccessKey: "local" };

/** DynamoDB, SQS and S3 behind a fault proxy, with real SDK clients. */
export async function startAwsEmulators({
  principals = new Principals(),
  stateDir,
  ...options
}: AwsEmulatorOptions): Promise<AwsEmulators> {
  const state = stateDir === undefined ? {} : { stateDir };
  principals.add({ ...credentials, principalArn: "arn:aws:iam::000000000000:user/test" });
  const dynamo = await startDynamo(state);
  const sqsAndS3 = await startSqsAndS3(state);
  const lambda = lambdaApi(() => undefined);
  const targets = { dynamodb: dynamo.send, sqs: sqsAndS3.send, s3: sqsAndS3.send, lambda };
  const proxy = await startFaultProxy({ ...options, principals, targets });

  function clients({ maxAttempts }: { readonly maxAttempts: number }) {
    const shared = {
      region: "us-east-1",
      credentials,
      maxAttempts,
    };
    return {
      dynamodb: new DynamoDBClient({ ...shared, endpoint: proxy.endpoints.dynamodb }),
      sqs: new SQSClient({ ...shared, endpoint: proxy.endpoints.sqs }),
      s3: new S3Client({ ...shared, endpoint: proxy.endpoints.s3 }),
    };
  }

  return {
    proxy,
    ...clients({ maxAttempts: 3 }),
    clients,
    async stop() {
      await proxy.stop();
      await sqsAndS3.stop();
      await dynamo.stop();
    },
  };
}
