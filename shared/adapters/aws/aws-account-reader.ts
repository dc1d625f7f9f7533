import { GetAccountSettingsCommand } from "@aws-sdk/client-lambda";
import { DescribeSecretCommand } from "@aws-sdk/client-secrets-manager";
import { GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import type { DoorClients } from "#shared/lambda/door-clients.ts";
import type { AccountReader } from "#shared/ports.ts";

/** The version of a secret that is read when none is named. */
const currentVersion = "AWSCURRENT";

export class AwsAccountReader implements AccountReader {
  readonly #aws: Pick<DoorClients, "secrets" | "sqs" | "lambda">;

  constructor(aws: Pick<DoorClients, "secrets" | "sqs" | "lambda">) {
    this.#aws = aws;
  }

  async hasValue(secretArn: string): Promise<boolean> {
    const { VersionIdsToStages = {} } = await this.#aws.secrets.send(
      new DescribeSecretCommand({ SecretId: secretArn }),
    );
    return Object.values(VersionIdsToStages).some((stages) => stages.includes(currentVersion));
  }

  async queueLength(queueUrl: string): Promise<{ readonly arn: string; readonly messages: number }> {
    const wanted = new GetQueueAttributesCommand({
      QueueUrl: queueUrl,
      AttributeNames: ["QueueArn", "ApproximateNumberOfMessages"],
    });
    const { Attributes = {} } = await this.#aws.sqs.send(wanted);
    return { arn: Attributes.QueueArn ?? "", messages: Number(Attributes.ApproximateNumberOfMessages ?? 0) };
  }

  async concurrency(): Promise<number> {
    const { AccountLimit } = await this.#aws.lambda.send(new GetAccountSettingsCommand({}));
    return AccountLimit?.ConcurrentExecutions ?? 0;
  }
}
