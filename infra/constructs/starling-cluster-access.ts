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

/** Where Kubernetes objects can be put: a `Cluster` of aws-cdk-lib/aws-eks or aws-eks-v2 that has a kubectl provider. */
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
  /** Name of the EKS cluster, of this stack's account and region; its authentication mode has to know access entries. */
  readonly eksCluster: string;
  /** In the path that Starling may assume roles of; `/starling/clusters/` by default. */
  readonly rolePath?: string;
  /** The role's name; that of the Cluster by default. */
  readonly roleName?: string;
  /** The Kubernetes group that Starling is in; `starling` by default. */
  readonly group?: string;
  /** What manifests of the fleet may hold; the kinds that most have by default. */
  readonly fleetRules?: readonly AccessRule[];
  /** Left out, apply `starling-rbac.yaml` to the cluster by kubectl. */
  readonly manifests?: ManifestTarget;
}

/** Lets Starling into one EKS cluster: a role for this Cluster only, its access entry, and what its group may do. */
export class StarlingClusterAccess extends Construct {
  readonly roleArn: string;
  /** What the Cluster says in `spec.access.role.name`. */
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

/** What IAM and EKS would refuse in the middle of a deployment. */
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
    throw new Error(`${desired} of StarlingClusterAccess is "${value}"; give it ${example}`);
  }
}
