import { Annotations, Aws } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import type { Grant } from "#infra/constructs/starling-function.ts";
import type { Settings } from "#infra/settings.ts";
import { defined } from "#shared/base/defined.ts";

/** Which roles in the accounts of clusters `apply` may assume: all of it is the operator's to say. */
export interface ClusterRoles {
  /** Path and name, which may end in a `*`. */
  readonly names: string;
  /** Besides Starling's own. */
  readonly accounts: readonly string[];
  /** Whose member accounts are meant, where none are named, and whose the named ones have to be. */
  readonly organization?: string;
}

export function clusterRoles(
  settings: Pick<Settings, "installation" | "clusterRoles" | "clusterAccounts" | "organization">,
): ClusterRoles {
  const { installation, clusterRoles: names = `${installation}/clusters/*`, clusterAccounts, organization } = settings;
  return { names, accounts: clusterAccounts, ...defined({ organization }) };
}

/** The path of the roles that clusters are discovered with: apart from those that reach clusters. */
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

/** With nothing named it is Starling's own account only: any other is to be let in on purpose, here as well as there. */
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

/** Told at each synthesis, since the first cluster of another account would be the first to tell. */
export function sayWhichAccounts(scope: IConstruct, { names, accounts, organization }: ClusterRoles): void {
  if (accounts.length > 0 || organization !== undefined) return;
  const remedy = "clusterAccounts (ids, separated by commas) or organization";
  Annotations.of(scope).addInfoV2(
    "starling:clusterAccounts",
    `apply may assume roles ${names} of its own account only; name others by setting ${remedy}`,
  );
}
