import { Stack, Token } from "aws-cdk-lib";
import { CfnAccessEntry } from "aws-cdk-lib/aws-eks";
import { CfnRole } from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import {
  type AccessRule,
  accessGroup,
  accessGroupText,
  defaultGroup,
  rbacManifests,
} from "#shared/fleet/access/cluster-rbac.ts";
import {
  defaultRolePath,
  describePolicy,
  describePolicyName,
  trustPolicy,
} from "#shared/fleet/access/cluster-role-policy.ts";

/** A target for Kubernetes objects: a `Cluster` of aws-cdk-lib/aws-eks or aws-eks-v2 that has a kubectl provider. */
export interface ManifestTarget {
  addManifest(id: string, ...manifest: Record<string, unknown>[]): unknown;
}

export interface StarlingClusterAccessProps {
  /** Output `ApplyRole` of the control stack. */
  readonly applyRole: string;
  /** Output `ExternalId` up to its slash: `starling.<account>.<region>`. */
  readonly installationId: string;
  /** `metadata.name` of the Cluster in Starling. */
  readonly cluster: string;
  /** Name of the EKS cluster in this stack's account and region; its authentication mode must support access entries. */
  readonly eksCluster: string;
  /** Path of the roles that Starling may assume. Default: `/starling/clusters/`. */
  readonly rolePath?: string;
  /** Name of the role. Default: the name of the Cluster. */
  readonly roleName?: string;
  /** Kubernetes group of Starling. Default: `starling`. */
  readonly group?: string;
  /** Rights for the kinds that manifests of the fleet may have. Default: the most common kinds. */
  readonly fleetRules?: readonly AccessRule[];
  /** Absent: apply `starling-rbac.yaml` to the cluster with kubectl. */
  readonly manifests?: ManifestTarget;
}

/** Gives Starling access to one EKS cluster: a role for this Cluster only, its access entry, and the rights of its group. */
export class StarlingClusterAccess extends Construct {
  readonly roleArn: string;
  /** The value of `spec.access.role.name` of the Cluster. */
  readonly accessRoleName: string;

  constructor(scope: Construct, id: string, props: StarlingClusterAccessProps) {
    super(scope, id);
    const { cluster, eksCluster, rolePath = defaultRolePath, roleName = cluster, group = defaultGroup } = props;
    checked({ rolePath, roleName, group });
    const { partition, region, account } = Stack.of(this);
    const role = new CfnRole(this, "Role", {
      path: rolePath,
      roleName,
      description: "Assumed by Starling, to keep one cluster in sync with git",
      assumeRolePolicyDocument: trustPolicy(props),
      policies: [
        {
          policyName: describePolicyName,
          policyDocument: describePolicy(`arn:${partition}:eks:${region}:${account}:cluster/${eksCluster}`),
        },
      ],
    });
    new CfnAccessEntry(this, "Entry", {
      clusterName: eksCluster,
      principalArn: role.attrArn,
      kubernetesGroups: [group],
      type: "STANDARD",
    });
    const { manifests, fleetRules } = props;
    const objects = rbacManifests(fleetRules === undefined ? { group } : { group, fleetRules });
    manifests?.addManifest(`${id}Rbac`, ...objects);
    this.roleArn = role.attrArn;
    this.accessRoleName = `${rolePath.slice(1)}${roleName}`;
  }
}

/** Refuses values that IAM and EKS would refuse in the middle of a deployment. */
function checked({ rolePath, roleName, group }: { rolePath: string; roleName: string; group: string }): void {
  const problems = [
    {
      value: rolePath,
      fits: /^\/([\w+=,.@-]+\/)+$/,
      desired: "rolePath",
      example: "a path such as /starling/clusters/",
    },
    {
      value: roleName,
      fits: /^[\w+=,.@-]{1,64}$/,
      desired: "roleName",
      example: "at most 64 of A-Z, a-z, 0-9 and +=,.@_-",
    },
    {
      value: group,
      fits: accessGroup,
      desired: "group",
      example: accessGroupText,
    },
  ];
  for (const { value, fits, desired, example } of problems) {
    if (Token.isUnresolved(value) || fits.test(value)) continue;
    throw new Error(`${desired} of StarlingClusterAccess is "${value}"; expected ${example}`);
  }
}
