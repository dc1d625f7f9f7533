/** The role of a cluster's account that Starling assumes for one Cluster: its name, and its two policies. */
import { externalIdOf } from "#shared/base/external-id.ts";

/** Path of the roles that Starling may assume, unless the settings of its stacks name another. */
export const defaultRolePath = "/starling/clusters/";

export interface RoleTrust {
  /** ARN of the role of Starling's apply function: output `ApplyRole`. */
  readonly applyRole: string;
  /** Id of the installation, `starling.<account>.<region>`: the first part of output `ExternalId`. */
  readonly installationId: string;
  /** The Cluster's name in Starling. */
  readonly cluster: string;
}

/** The external id belongs to this Cluster only, so that nobody who writes a Cluster can choose it. */
export function trustPolicy({ applyRole, installationId, cluster }: RoleTrust) {
  return {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: "sts:AssumeRole",
        Principal: { AWS: applyRole },
        Condition: { StringEquals: { "sts:ExternalId": externalIdOf(installationId, cluster) } },
      },
    ],
  };
}

export const describePolicyName = "describe-cluster";

/** The role's rights in AWS; the access entry gives the rights in the cluster. */
export function describePolicy(clusterArn: string) {
  return {
    Version: "2012-10-17",
    Statement: [{ Effect: "Allow", Action: "eks:DescribeCluster", Resource: clusterArn }],
  };
}
