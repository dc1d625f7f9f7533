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

/** A region that does not answer must not cost the whole time of a request. */
const answerMs = 5_000;

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
    const abortSignal = AbortSignal.timeout(answerMs);
    const { Attributes = {} } = await (await sqsFor(this.#aws.sqs, queueUrl))
      .send(desired, { abortSignal })
      .catch((error: unknown) => {
        if (!abortSignal.aborted) throw error;
        throw new Error(`SQS did not answer within ${answerMs / 1000} s`, { cause: error });
      });
    return { arn: Attributes.QueueArn ?? "", messages: Number(Attributes.ApproximateNumberOfMessages ?? 0) };
  }

  async concurrency(): Promise<number> {
    const { AccountLimit } = await this.#aws.lambda.send(new GetAccountSettingsCommand({}));
    return AccountLimit?.ConcurrentExecutions ?? 0;
  }
}
