import type { EKSClient } from "@aws-sdk/client-eks";
import { OrganizationsClient } from "@aws-sdk/client-organizations";
import { ResourceGroupsTaggingAPIClient } from "@aws-sdk/client-resource-groups-tagging-api";
import { SSMClient } from "@aws-sdk/client-ssm";
import type { STSClient } from "@aws-sdk/client-sts";
import { type AccountClients, accountClients } from "#shared/lambda/cluster-clients.ts";
import {
  type ClientCredentials,
  type ClientOptions,
  clientConfig,
  type RowClients,
  rowClients,
} from "#shared/lambda/core-clients.ts";

interface Scope {
  readonly region: string;
  readonly credentials: ClientCredentials;
}

/** Clients for listing clusters of accounts. Only one function has them in its bundle. */
export interface DiscoveryClients extends RowClients {
  readonly sts: STSClient;
  eks(scope: Scope): EKSClient;
  tagging(scope: Scope): ResourceGroupsTaggingAPIClient;
  organizations(scope: Scope): OrganizationsClient;
  ssm(scope: Scope): SSMClient;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function discoveryClients(options?: ClientOptions<keyof RowClients | keyof AccountClients>): DiscoveryClients {
  return { ...rowClients(options), ...accountClients(options), ...listingClients(options) };
}

/** On a local machine, these services are at the port of its EKS. */
export function listingClients(
  options?: ClientOptions<keyof AccountClients>,
): Pick<DiscoveryClients, "tagging" | "organizations" | "ssm"> {
  const config = clientConfig("eks", options);
  return {
    tagging: (scope) => new ResourceGroupsTaggingAPIClient({ ...config, ...scope }),
    organizations: (scope) => new OrganizationsClient({ ...config, ...scope }),
    ssm: (scope) => new SSMClient({ ...config, ...scope }),
  };
}
