import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import {
  type ClientCredentials,
  type ClientOptions,
  type CoreClients,
  clientConfig,
  coreClients,
} from "#shared/lambda/core-clients.ts";

/** Those that ask accounts for their clusters: in the bundles of the functions that do, and in no other. */
export interface AccountClients {
  /** The STS of Starling's own region, asked with the function's own credentials: the region's endpoint, never the global one. */
  readonly sts: STSClient;
  /** The EKS of a region, asked with the credentials of whoever may see the clusters there. */
  eks(scope: { readonly region: string; readonly credentials: ClientCredentials }): EKSClient;
}

export interface ClusterClients extends CoreClients, AccountClients {}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function clusterClients(options?: ClientOptions<keyof ClusterClients>): ClusterClients {
  return { ...coreClients(options), ...accountClients(options) };
}

export function accountClients(options?: ClientOptions<keyof AccountClients>): AccountClients {
  return {
    sts: new STSClient(clientConfig("sts", options)),
    eks: ({ region, credentials }) => new EKSClient({ ...clientConfig("eks", options), region, credentials }),
  };
}
