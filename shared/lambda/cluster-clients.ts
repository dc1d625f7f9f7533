import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import {
  type BlobClients,
  blobClients,
  type ClientCredentials,
  type ClientOptions,
  type ClientScope,
  type CoreClients,
  clientConfig,
  coreClients,
  type RowClients,
  rowClients,
} from "#shared/lambda/core-clients.ts";

/** Clients for accounts with clusters. Only the functions that use them have them in their bundles. */
export interface AccountClients {
  /**
   * The STS of Starling's own region with the function's own credentials: the regional endpoint, not the global one.
   */
  readonly sts: STSClient;
  /** The EKS of a region, with the credentials of a role that can see its clusters. */
  eks(scope: { readonly region: string; readonly credentials: ClientCredentials }): EKSClient;
}

/** The clients for what the installation stores, and for the queues of `home`. */
export type DataClients = RowClients & BlobClients;

export interface ClusterClients extends CoreClients, AccountClients {
  /** The same clients with other credentials, for workers in another account or region. */
  dataIn(scope: ClientScope): DataClients;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function clusterClients(options?: ClientOptions<keyof CoreClients | keyof AccountClients>): ClusterClients {
  return {
    ...coreClients(options),
    ...accountClients(options),
    dataIn: (scope) => ({ ...rowClients(options, scope), ...blobClients(options, scope) }),
  };
}

export function accountClients(options?: ClientOptions<keyof AccountClients>): AccountClients {
  return {
    sts: new STSClient(clientConfig("sts", options)),
    eks: ({ region, credentials }) => new EKSClient({ ...clientConfig("eks", options), region, credentials }),
  };
}
