import { Annotations, Aws } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import type { Grant } from "#infra/constructs/starling-function.ts";
import type { Settings } from "#infra/settings.ts";
import { defined } from "#shared/base/defined.ts";

/** The roles in the accounts of clusters that `apply` may assume. The operator sets all of it. */
export interface ClusterRoles {
  /** Path and name, which may end in a `*`. */
  readonly names: string;
  /** Accounts besides Starling's own. */
  readonly accounts: readonly string[];
  /** Organization whose member accounts are allowed. If accounts are named, they must be members. */
  readonly organization?: string;
}

export function clusterRoles(
  settings: Pick<Settings, "installation" | "clusterRoles" | "clusterAccounts" | "organization">,
): ClusterRoles {
  const { installation, clusterRoles: names = `${installation}/clusters/*`, clusterAccounts, organization } = settings;
  return { names, accounts: clusterAccounts, ...defined({ organization }) };
}

/** The path of the roles for discovery. It differs from the path of the roles that enter clusters. */
function discoveryRoleNames(installation: string): string {
  return `${installation}/discovery/*`;
}

export function assumeDiscoveryRoles(installation: string, clusterRoles: ClusterRoles): Grant {
  return {
    ...assumeClusterRoles({ ...clusterRoles, names: discoveryRoleNames(installation) }),
    reason:
      "ClusterDiscoveries are written later, with a role of this path in the accounts or the organization named here; " +
      "its trust policy asks for an external id that is the ClusterDiscovery's own.",
  };
}

/** The right to assume cluster roles. Without settings: only in Starling's own account, so that every other account is a decision. */
export function assumeClusterRoles({ names, accounts, organization }: ClusterRoles): Grant {
  const everywhere = organization !== undefined && accounts.length === 0;
  const from = everywhere ? ["*"] : [Aws.ACCOUNT_ID, ...accounts];
  return {
    action: "sts:AssumeRole",
    arns: from.map((account) => `arn:${Aws.PARTITION}:iam::${account}:role/${names}`),
    ...(organization === undefined ? {} : { conditions: { StringEquals: { "aws:ResourceOrgID": organization } } }),
    reason:
      "Clusters are registered later, each with a role of this path, in the accounts or the organization named here; " +
      "its trust policy asks for an external id that is the Cluster's own.",
  };
}

/** Prints the allowed accounts at each synthesis. Otherwise the first cluster in another account would fail without a hint. */
export function sayWhichAccounts(scope: IConstruct, { names, accounts, organization }: ClusterRoles): void {
  if (accounts.length > 0 || organization !== undefined) return;
  const remedy = "clusterAccounts (ids, separated by commas) or organization";
  Annotations.of(scope).addInfoV2(
    "starling:clusterAccounts",
    `apply may assume roles ${names} only in its own account; to allow other accounts, set ${remedy}`,
  );
}
