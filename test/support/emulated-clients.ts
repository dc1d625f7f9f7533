import { Principals } from "#local/aws/iam/principals.ts";
import { lambdaApi } from "#local/aws/lambda/lambda-api.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { startDynamo } from "#local/aws/services/dynamo-server.ts";
import { startSecrets } from "#local/aws/services/secrets-server.ts";
import { startSqsAndS3 } from "#local/aws/services/sqs-s3-server.ts";
import { type CoreClients, coreClients } from "#shared/lambda/core-clients.ts";

export interface EmulatedClients {
  readonly aws: CoreClients;
  readonly proxy: FaultProxy;
  stop(): Promise<void>;
}

const credentials = { accessKeyId: "local", secretAccessKey: "local" };

/** The clients of a function, connected to emulators with injected faults. */
export async function startEmulatedClients(
  options: Omit<FaultProxyOptions, "targets" | "principals">,
  transport: "port" | "pipe" = "port",
): Promise<EmulatedClients> {
  const principals = new Principals([{ ...credentials, principalArn: "arn:aws:iam::000000000000:user/test" }]);
  const dynamo = await startDynamo({ transport });
  const sqsAndS3 = await startSqsAndS3();
  const secrets = await startSecrets({ principals });
  const lambda = lambdaApi(() => undefined);
  const targets = { dynamodb: dynamo.send, sqs: sqsAndS3.send, s3: sqsAndS3.send, lambda };
  const proxy = await startFaultProxy({ ...options, principals, targets });
  const aws = coreClients({
    region: "us-east-1",
    credentials,
    endpoints: {
      dynamo: proxy.endpoints.dynamodb,
      sqs: proxy.endpoints.sqs,
      s3: proxy.endpoints.s3,
      secrets: secrets.endpoint,
    },
  });
  return {
    aws,
    proxy,
    async stop() {
      for (const client of Object.values(aws)) client.destroy();
      await proxy.stop();
      await Promise.all([secrets.stop(), sqsAndS3.stop(), dynamo.stop()]);
    },
  };
}
