import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";

/** The SDK clients of one function's process; `local/` points them at its emulators. */
export interface AwsClients {
  readonly dynamo: DynamoDBDocumentClient;
  readonly sqs: SQSClient;
  readonly s3: S3Client;
  readonly secrets: SecretsManagerClient;
}

export interface AwsClientOptions {
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly endpoints: Readonly<Record<"dynamo" | "sqs" | "s3" | "secrets", string>>;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function awsClients(options?: AwsClientOptions): AwsClients {
  const base = options === undefined ? {} : { region: options.region, credentials: options.credentials };
  const at = (service: keyof AwsClientOptions["endpoints"]) =>
    options === undefined ? base : { ...base, endpoint: options.endpoints[service] };
  return {
    dynamo: DynamoDBDocumentClient.from(new DynamoDBClient(at("dynamo")), {
      marshallOptions: { removeUndefinedValues: true },
    }),
    sqs: new SQSClient(at("sqs")),
    s3: new S3Client({ ...at("s3"), ...(options === undefined ? {} : { forcePathStyle: true }) }),
    secrets: new SecretsManagerClient(at("secrets")),
  };
}
