/** The role of a cluster's account that Starling assumes for one Cluster: its name, and its two policies. */
import { externalIdOf } from "#shared/base/external-id.ts";

/** Where Starling may assume roles, unless the settings of its stacks say otherwise. */
export const defaultRolePath = "/starling/clusters/";

export interface RoleTrust {
  /** ARN of the role of Starling's apply function: output `ApplyRole`. */
  readonly applyRole: string;
  /** Id of the installation, `starling.<account>.<region>`: the first part of output `ExternalId`. */
  readonly installationId: string;
  /** The Cluster's name in Starling. */
  readonly cluster: string;
}

/** For this Cluster and no other: nobody who writes a Cluster chooses the external id. */
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

/** All that the role may do in AWS: what it may do in the cluster is the access entry's to say. */
export function describePolicy(clusterArn: string) {
  return {
    Version: "2012-10-17",
    Statement: [{ Effect: "Allow", Action: "eks:DescribeCluster", Resource: clusterArn }],
  };
}
