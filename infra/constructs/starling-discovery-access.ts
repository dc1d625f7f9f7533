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
  /** In the path that Starling may assume roles of; `/starling/discovery/` by default. */
  readonly rolePath?: string;
  /** The role's name, the same in each account; `look` by default. */
  readonly roleName?: string;
  /** What `spec.values.ssm.path` begins with, such as `/starling/clusters`; left out: no parameter may be read. */
  readonly parameterPath?: string;
  /** In the account of `spec.eks.organization`: the role may list its accounts and units, too. */
  readonly organization?: boolean;
}

/** Lets one ClusterDiscovery list the EKS clusters of this account, in all regions: one role. */
export class StarlingDiscoveryAccess extends Construct {
  readonly roleArn: string;
  /** What the ClusterDiscovery says in `spec.eks.role.name`. */
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
  "It only looks, at what has no resource of its own to name (lists), or is not there yet: clusters and parameters that are made later.";

/** What IAM would refuse in the middle of a deployment, or Starling would never ask for. */
function checked(given: Readonly<Partial<Record<keyof typeof rules, string>>>): void {
  for (const [name, { fits, desired }] of Object.entries(rules)) {
    const value = given[name as keyof typeof rules];
    if (value === undefined || Token.isUnresolved(value) || fits.test(value)) continue;
    throw new Error(`${name} of StarlingDiscoveryAccess is "${value}"; give it ${desired}`);
  }
}

const rules = {
  rolePath: { fits: /^\/([\w+=,.@-]+\/)+$/, desired: "a path such as /starling/discovery/" },
  roleName: { fits: /^[\w+=,.@-]{1,64}$/, desired: "at most 64 of A-Z, a-z, 0-9 and +=,.@_-" },
  parameterPath: {
    fits: /^(\/[A-Za-z0-9_.-]+)+$/,
    desired:
      "what the path begins with, without expressions and without a slash at its end, such as /starling/clusters",
  },
} as const;
