import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { EKSClient } from "@aws-sdk/client-eks";
import { S3Client } from "@aws-sdk/client-s3";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { SQSClient } from "@aws-sdk/client-sqs";
import { STSClient } from "@aws-sdk/client-sts";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";

/** Unless told, the SDK waits for ever: one dead connection would cost a function all of its time. */
const CONNECT_MS = 3_000;
/** Of silence, not of the whole answer. */
const SILENCE_MS = 10_000;
/** A queue that is polled is silent for up to 20 s. */
const POLL_SILENCE_MS = 30_000;

/** The SDK clients of one function's process; `local/` points them at its emulators. */
export interface AwsClients {
  readonly dynamo: DynamoDBDocumentClient;
  readonly sqs: SQSClient;
  readonly s3: S3Client;
  readonly secrets: SecretsManagerClient;
  /** The STS of a region, asked with the function's own credentials: its region's endpoint, never the global one. */
  sts(scope: { readonly region: string }): STSClient;
  /** The EKS of a region, asked with the credentials of whoever may see the clusters there. */
  eks(scope: { readonly region: string; readonly credentials: ClientCredentials }): EKSClient;
}

export interface ClientCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface AwsClientOptions {
  readonly region: string;
  /** Or what gives those that are good now. */
  readonly credentials: ClientCredentials | (() => Promise<ClientCredentials>);
  readonly endpoints: Readonly<Record<"dynamo" | "sqs" | "s3" | "secrets" | "sts" | "eks", string>>;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function awsClients(options?: AwsClientOptions): AwsClients {
  const base = options === undefined ? {} : { region: options.region, credentials: options.credentials };
  const at = (service: keyof AwsClientOptions["endpoints"]) => ({
    ...base,
    ...(options === undefined ? {} : { endpoint: options.endpoints[service] }),
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: service === "sqs" ? POLL_SILENCE_MS : SILENCE_MS,
    },
  });
  return {
    dynamo: DynamoDBDocumentClient.from(new DynamoDBClient(at("dynamo")), {
      marshallOptions: { removeUndefinedValues: true },
    }),
    sqs: new SQSClient(at("sqs")),
    s3: new S3Client({ ...at("s3"), ...(options === undefined ? {} : { forcePathStyle: true }) }),
    secrets: new SecretsManagerClient(at("secrets")),
    sts: ({ region }) => new STSClient({ ...at("sts"), region }),
    eks: ({ region, credentials }) => new EKSClient({ ...at("eks"), region, credentials }),
  };
}
