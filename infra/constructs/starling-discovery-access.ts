import { Stack, Token } from "aws-cdk-lib";
import { CfnRole, CfnRolePolicy, PolicyStatement } from "aws-cdk-lib/aws-iam";
import { Construct } from "constructs";
import { acknowledgeWildcards } from "#infra/constructs/acknowledge-wildcards.ts";
import {
  defaultDiscoveryPath,
  defaultDiscoveryRole,
  discoveryPolicies,
  discoveryTrustPolicy,
} from "#shared/fleet/access/discovery-role-policy.ts";

export interface StarlingDiscoveryAccessProps {
  /** Output `DiscoverRole` of the control stack. */
  readonly discoverRole: string;
  /** Output `ExternalId` up to its slash: `starling.<account>.<region>`. */
  readonly installationId: string;
  /** `metadata.name` of the ClusterDiscovery. */
  readonly discovery: string;
  /** Path of the roles that Starling may assume. Default: `/starling/discovery/`. */
  readonly rolePath?: string;
  /** Name of the role, the same in each account. Default: `look`. */
  readonly roleName?: string;
  /** Beginning of `spec.values.ssm.path`, such as `/starling/clusters`. Absent: the role may read no parameter. */
  readonly parameterPath?: string;
  /** Set it in the account of `spec.eks.organization`, where the role may also list accounts and units. */
  readonly organization?: boolean;
}

/** Lets one ClusterDiscovery list the EKS clusters of this account, in all regions: one role. */
export class StarlingDiscoveryAccess extends Construct {
  readonly roleArn: string;
  /** The value of `spec.eks.role.name` of the ClusterDiscovery. */
  readonly discoveryRoleName: string;

  constructor(scope: Construct, id: string, props: StarlingDiscoveryAccessProps) {
    super(scope, id);
    const { rolePath = defaultDiscoveryPath, roleName = defaultDiscoveryRole, parameterPath, organization } = props;
    checked({ rolePath, roleName, ...(parameterPath === undefined ? {} : { parameterPath }) });
    const role = new CfnRole(this, "Role", {
      path: rolePath,
      roleName,
      description: "Assumed by Starling, to find the EKS clusters of this account",
      assumeRolePolicyDocument: discoveryTrustPolicy(props),
    });
    const { partition, account } = Stack.of(this);
    const { clusters, parameters, organization: members } = discoveryPolicies;
    this.#allow(role, "Clusters", { name: clusters.name, document: clusters.document() });
    if (parameterPath !== undefined) {
      const document = parameters.document({ partition, account, path: parameterPath });
      this.#allow(role, "Parameters", { name: parameters.name, document });
    }
    if (organization === true) this.#allow(role, "Organization", { name: members.name, document: members.document() });
    this.roleArn = role.attrArn;
    this.discoveryRoleName = `${rolePath.slice(1)}${roleName}`;
  }

  #allow(role: CfnRole, id: string, { name, document }: { readonly name: string; readonly document: Policy }): void {
    const policy = new CfnRolePolicy(this, id, { roleName: role.ref, policyName: name, policyDocument: document });
    for (const statement of document.Statement)
      acknowledgeWildcards(policy, PolicyStatement.fromJson(statement), reason);
  }
}

interface Policy {
  readonly Statement: readonly object[];
}

const reason =
  "It only reads: lists, which have no resource to name, and clusters and parameters that are created later.";

/** Refuses values that IAM would refuse in the middle of a deployment, or that Starling would never use. */
function checked(given: Readonly<Partial<Record<keyof typeof rules, string>>>): void {
  for (const [name, { fits, desired }] of Object.entries(rules)) {
    const value = given[name as keyof typeof rules];
    if (value === undefined || Token.isUnresolved(value) || fits.test(value)) continue;
    throw new Error(`${name} of StarlingDiscoveryAccess is "${value}"; expected ${desired}`);
  }
}

const rules = {
  rolePath: { fits: /^\/([\w+=,.@-]+\/)+$/, desired: "a path such as /starling/discovery/" },
  roleName: { fits: /^[\w+=,.@-]{1,64}$/, desired: "at most 64 of A-Z, a-z, 0-9 and +=,.@_-" },
  parameterPath: {
    fits: /^(\/[A-Za-z0-9_.-]+)+$/,
    desired:
      "the beginning of the path, without expressions and without a slash at its end, such as /starling/clusters",
  },
} as const;
