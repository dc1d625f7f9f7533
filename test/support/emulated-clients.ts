import { startDynamo } from "#local/aws/dynamo-server.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "#local/aws/fault-proxy.ts";
import { startSecrets } from "#local/aws/secrets-server.ts";
import { startSqsAndS3 } from "#local/aws/sqs-s3-server.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";

export interface EmulatedClients {
  readonly aws: AwsClients;
  readonly proxy: FaultProxy;
  stop(): Promise<void>;
}

/** The clients a function has, before emulators that do as the fault proxy is told. */
export async function startEmulatedClients(options: Omit<FaultProxyOptions, "targets">): Promise<EmulatedClients> {
  const dynamo = await startDynamo();
  const sqsAndS3 = await startSqsAndS3();
  const secrets = await startSecrets();
  const targets = { dynamodb: dynamo.endpoint, sqs: sqsAndS3.endpoint, s3: sqsAndS3.endpoint };
  const proxy = await startFaultProxy({ ...options, targets });
  const aws = awsClients({
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    endpoints: {
      dynamo: proxy.endpoints.dynamodb,
      sqs: proxy.endpoints.sqs,
      s3: proxy.endpoints.s3,
      secrets: secrets.endpoint,
      // Nothing here asks for these.
      sts: "http://127.0.0.1:9",
      eks: "http://127.0.0.1:9",
    },
  });
  return {
    aws,
    proxy,
    async stop() {
      for (const client of [aws.dynamo, aws.sqs, aws.s3, aws.secrets]) client.destroy();
      await proxy.stop();
      await Promise.all([secrets.stop(), sqsAndS3.stop(), dynamo.stop()]);
    },
  };
}
