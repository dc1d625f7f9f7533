import {
  type BlobClients,
  blobClients,
  type ClientOptions,
  type RowClients,
  rowClients,
  type SecretClients,
  secretClients,
} from "#shared/lambda/core-clients.ts";
import { type LambdaClients, lambdaClients } from "#shared/lambda/lambda-clients.ts";
import { type LogClients, logClients } from "#shared/lambda/log-clients.ts";

/** The clients of the API: for the stored data, and for checks of the installation itself. */
export interface ApiClients extends RowClients, BlobClients, SecretClients, LambdaClients, LogClients {}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function apiClients(options?: ClientOptions<keyof ApiClients>): ApiClients {
  return {
    ...rowClients(options),
    ...blobClients(options),
    ...secretClients(options),
    ...lambdaClients(options),
    ...logClients(options),
  };
}
