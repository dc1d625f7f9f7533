import { GetAccountSettingsCommand, type LambdaClient } from "@aws-sdk/client-lambda";
import { DescribeSecretCommand, type SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { sqsFor } from "#shared/adapters/aws/regional-sqs.ts";
import type { AccountReader } from "#shared/ports.ts";

interface Clients {
  readonly secrets: SecretsManagerClient;
  readonly sqs: SQSClient;
  readonly lambda: LambdaClient;
}

/** The version of a secret that is read by default. */
const currentVersion = "AWSCURRENT";

export class AwsAccountReader implements AccountReader {
  readonly #aws: Clients;

  constructor(aws: Clients) {
    this.#aws = aws;
  }

  async hasValue(secretArn: string): Promise<boolean> {
    const { VersionIdsToStages = {} } = await this.#aws.secrets.send(
      new DescribeSecretCommand({ SecretId: secretArn }),
    );
    return Object.values(VersionIdsToStages).some((stages) => stages.includes(currentVersion));
  }

  async queueLength(queueUrl: string): Promise<{ readonly arn: string; readonly messages: number }> {
    const desired = new GetQueueAttributesCommand({
      QueueUrl: queueUrl,
      AttributeNames: ["QueueArn", "ApproximateNumberOfMessages"],
    });
    const { Attributes = {} } = await (await sqsFor(this.#aws.sqs, queueUrl)).send(desired);
    return { arn: Attributes.QueueArn ?? "", messages: Number(Attributes.ApproximateNumberOfMessages ?? 0) };
  }

  async concurrency(): Promise<number> {
    const { AccountLimit } = await this.#aws.lambda.send(new GetAccountSettingsCommand({}));
    return AccountLimit?.ConcurrentExecutions ?? 0;
  }
}
