/** The role of an account that a ClusterDiscovery lists its clusters with: its name, and its policies. */
import { discoveryIdentity } from "#shared/fleet/discovery/discovery-identity.ts";

/**
 * Path of the roles that Starling may assume for discovery, by the name of its installation; apart from those that
 * reach clusters.
 */
export const defaultDiscoveryPath = "/starling/discovery/";
export const defaultDiscoveryRole = "scan";

export interface DiscoveryTrust {
  /** ARN of the role of Starling's discover function: output `DiscoverRole`. */
  readonly discoverRole: string;
  /** Id of the installation, `starling.<account>.<region>`: the first part of output `ExternalId`. */
  readonly installationId: string;
  /** Name of the ClusterDiscovery. */
  readonly discovery: string;
}

/** The external id belongs to this ClusterDiscovery only, so that nobody who writes one can choose it. */
export function discoveryTrustPolicy({ discoverRole, installationId, discovery }: DiscoveryTrust) {
  return {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: "sts:AssumeRole",
        Principal: { AWS: discoverRole },
        Condition: { StringEquals: { "sts:ExternalId": discoveryIdentity(installationId, discovery) } },
      },
    ],
  };
}

/** The policy of the role itself; the other two are optional. */
export const discoveryPolicies = {
  clusters: {
    name: "list-clusters",
    document: () => allowing(["eks:ListClusters", "eks:DescribeCluster", "tag:GetResources"], "*"),
  },
  /** The path and everything below it, because requests name the path. */
  parameters: {
    name: "read-parameters",
    document: (path: { readonly partition: string; readonly account: string; readonly path: string }) => {
      const arn = `arn:${path.partition}:ssm:*:${path.account}:parameter${path.path}`;
      return allowing("ssm:GetParametersByPath", [arn, `${arn}/*`]);
    },
  },
  /** For the account that may list the organization. */
  organization: {
    name: "list-accounts",
    document: () =>
      allowing(["organizations:ListAccountsForParent", "organizations:ListOrganizationalUnitsForParent"], "*"),
  },
} as const;

function allowing<A extends string | readonly string[], R extends string | readonly string[]>(Action: A, Resource: R) {
  return { Version: "2012-10-17", Statement: [{ Effect: "Allow", Action, Resource }] };
}
