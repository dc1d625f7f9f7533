import { Principals } from "#local/aws/iam/principals.ts";
import { lambdaApi } from "#local/aws/lambda/lambda-api.ts";
import { startFaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { startDynamo } from "#local/aws/services/dynamo-server.ts";
import { startSecrets } from "#local/aws/services/secrets-server.ts";
import { startSqsAndS3 } from "#local/aws/services/sqs-s3-server.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { deploy } from "#local/machine/deployment.ts";
import { loopback } from "#local/machine/plan-overrides.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import type { AwsAddresses, Started } from "#test/bench/children.ts";

const nobody = "http://127.0.0.1:9";

/** The resources of the stacks on emulators in this process. */
export async function startAws(): Promise<Started<AwsAddresses>> {
  const plan = readPlan(await synthesize());
  const dynamo = await startDynamo();
  const sqsAndS3 = await startSqsAndS3();
  const credentials = { accessKeyId: "bench", secretAccessKey: "bench" };
  const principals = new Principals([{ ...credentials, principalArn: "arn:aws:iam::000000000000:user/bench" }]);
  const secrets = await startSecrets({ principals });
  const proxy = await startFaultProxy({
    targets: { dynamodb: dynamo.send, sqs: sqsAndS3.send, s3: sqsAndS3.send, lambda: lambdaApi(() => undefined) },
    principals,
    seed: 1,
    faults: quiet,
  });
  const { dynamodb, sqs, s3 } = proxy.endpoints;
  const options = {
    region: "us-east-1",
    credentials,
    // No cluster of a benchmark is an EKS one, and nothing is rendered.
    endpoints: {
      dynamo: dynamodb,
      sqs,
      s3,
      secrets: secrets.endpoint,
      sts: nobody,
      eks: nobody,
      lambda: nobody,
      logs: nobody,
      alarms: nobody,
      events: nobody,
    },
  };
  const aws = awsClients(options);
  const { table, bucket, variables } = await deploy(aws, plan, { rate: 1, secretValue: "unused" });
  for (const client of [aws.dynamo, aws.sqs, aws.s3, aws.secrets]) client.destroy();
  const apply = plan.functions.find(({ folder }) => folder === "apply");
  if (apply === undefined) throw new Error("the template has no function apply");
  return {
    address: { ...options, table, bucket, environment: { ...variables(apply), STARLING_CLUSTER_ALLOW: loopback } },
    async stop() {
      await proxy.stop();
      await Promise.all([secrets.stop(), sqsAndS3.stop(), dynamo.stop()]);
    },
  };
}
