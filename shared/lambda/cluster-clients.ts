import { EKSClient } from "@aws-sdk/client-eks";
import { STSClient } from "@aws-sdk/client-sts";
import {
  type ClientCredentials,
  type ClientOptions,
  type CoreClients,
  clientConfig,
  coreClients,
} from "#shared/lambda/core-clients.ts";

/** With those that reach clusters: they are in the bundle of the one function that does, and in no other. */
export interface ClusterClients extends CoreClients {
  /** The STS of a region, asked with the function's own credentials: its region's endpoint, never the global one. */
  sts(scope: { readonly region: string }): STSClient;
  /** The EKS of a region, asked with the credentials of whoever may see the clusters there. */
  eks(scope: { readonly region: string; readonly credentials: ClientCredentials }): EKSClient;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function clusterClients(options?: ClientOptions<keyof ClusterClients>): ClusterClients {
  return {
    ...coreClients(options),
    sts: ({ region }) => new STSClient({ ...clientConfig("sts", options), region }),
    eks: ({ region, credentials }) => new EKSClient({ ...clientConfig("eks", options), region, credentials }),
  };
}
