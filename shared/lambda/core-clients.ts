import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";

/** Without these limits, the SDK waits forever, and one dead connection would cost a function all of its time. */
const connectMs = 3_000;
/** The limit of silence, not of the whole answer. */
const silenceMs = 10_000;
/** A polled queue is silent for up to 20 s, and an invoked function for as long as it may run. */
const longSilencesMs: Readonly<Record<string, number>> = { sqs: 30_000, lambda: 120_000 };

/** The SDK clients for rows and messages; `local/` points them at its emulators. */
export interface RowClients {
  readonly dynamo: DynamoDBDocumentClient;
  readonly sqs: SQSClient;
}

export interface BlobClients {
  readonly s3: S3Client;
}

export interface SecretClients {
  readonly secrets: SecretsManagerClient;
}

export interface CoreClients extends RowClients, BlobClients, SecretClients {}

export interface ClientCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ClientOptions<Service extends string> {
  readonly region: string;
  /** Credentials, or a function that returns the current ones. */
  readonly credentials: ClientCredentials | (() => Promise<ClientCredentials>);
  readonly endpoints: Readonly<Record<Service, string>>;
}

/** A region and credentials in place of those of the function. */
export interface ClientScope {
  readonly region: string;
  readonly credentials: () => Promise<ClientCredentials>;
}

/**
 * Clients for Lambda (region and credentials from its environment), or for the given endpoints. They are separate from
 * the next two functions, because each client adds 30 to 300 KiB to a bundle, used or not.
 */
export function rowClients(options?: ClientOptions<keyof RowClients>, scope?: ClientScope): RowClients {
  return {
    dynamo: DynamoDBDocumentClient.from(new DynamoDBClient({ ...clientConfig("dynamo", options), ...scope }), {
      marshallOptions: { removeUndefinedValues: true },
      // Nobody writes larger numbers than JavaScript has, and one in one row must not keep the others from being read.
      unmarshallOptions: { wrapNumbers: Number },
    }),
    sqs: new SQSClient({ ...clientConfig("sqs", options), ...scope }),
  };
}

/** See `rowClients`. */
export function blobClients(options?: ClientOptions<keyof BlobClients>, scope?: ClientScope): BlobClients {
  const style = options === undefined ? {} : { forcePathStyle: true };
  return { s3: new S3Client({ ...clientConfig("s3", options), ...style, ...scope }) };
}

/** See `rowClients`. */
export function secretClients(options?: ClientOptions<keyof SecretClients>): SecretClients {
  return { secrets: new SecretsManagerClient(clientConfig("secrets", options)) };
}

/** All of the clients above. */
export function coreClients(options?: ClientOptions<keyof CoreClients>): CoreClients {
  return { ...rowClients(options), ...blobClients(options), ...secretClients(options) };
}

/** The configuration of a service's client. */
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
