import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";

/** Unless told, the SDK waits for ever: one dead connection would cost a function all of its time. */
const connectMs = 3_000;
/** Of silence, not of the whole answer. */
const silenceMs = 10_000;
/** A queue that is polled is silent for up to 20 s, and a function that was invoked for as long as it may take. */
const longSilencesMs: Readonly<Record<string, number>> = { sqs: 30_000, lambda: 120_000 };

/** The SDK clients that every function has; `local/` points them at its emulators. */
export interface CoreClients {
  readonly dynamo: DynamoDBDocumentClient;
  readonly sqs: SQSClient;
  readonly s3: S3Client;
  readonly secrets: SecretsManagerClient;
}

export interface ClientCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientOptions<Service extends string> {
  readonly region: string;
  /** Or what gives those that are good now. */
  readonly credentials: ClientCredentials | (() => Promise<ClientCredentials>);
  readonly endpoints: Readonly<Record<Service, string>>;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function coreClients(options?: ClientOptions<keyof CoreClients>): CoreClients {
  const at = (service: keyof CoreClients) => clientConfig(service, options);
  return {
    dynamo: DynamoDBDocumentClient.from(new DynamoDBClient(at("dynamo")), {
      marshallOptions: { removeUndefinedValues: true },
    }),
    sqs: new SQSClient(at("sqs")),
    s3: new S3Client({ ...at("s3"), ...(options === undefined ? {} : { forcePathStyle: true }) }),
    secrets: new SecretsManagerClient(at("secrets")),
  };
}

/** What the client of a service is made with. */
export function clientConfig<Service extends string>(service: Service, options: ClientOptions<Service> | undefined) {
  return {
    ...(options === undefined
      ? {}
      : { region: options.region, credentials: options.credentials, endpoint: options.endpoints[service] }),
    requestHandler: {
      connectionTimeout: connectMs,
      socketTimeout: longSilencesMs[service] ?? silenceMs,
    },
  };
}
