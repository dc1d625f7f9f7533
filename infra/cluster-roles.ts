import { Annotations, Aws } from "aws-cdk-lib";
import type { IConstruct } from "constructs";
import type { Grant } from "#infra/constructs/starling-function.ts";
import { defined } from "#shared/base/defined.ts";

/** Which roles in the accounts of clusters `apply` may assume: all of it is the operator's to say, in context. */
export interface ClusterRoles {
  /** Path and name, which may end in a `*`. */
  readonly names: string;
  /** Besides Starling's own. */
  readonly accounts: readonly string[];
  /** Whose member accounts are meant, where none are named, and whose the named ones have to be. */
  readonly organization?: string;
}

/**
 * @param context.clusterRoles - `starling/clusters/*` and the like.
 * @param context.clusterAccounts - account ids, separated by commas.
 * @throws Error that names the context and says what to write.
 */
export function clusterRoles(
  installation: string,
  context: { readonly clusterRoles?: string; readonly clusterAccounts?: string; readonly organization?: string },
): ClusterRoles {
  const { clusterRoles: names = `${installation}/clusters/*`, clusterAccounts = "", organization } = context;
  // The roles of functions are made without a path: this is what keeps them, whatever they are called, from being assumed.
  if (!/^[\w+=,.@-]+\/([\w+=,.@-]+\/)*[\w+=,.@-]*\*?$/.test(names)) {
    const wanted = `a path and a name, such as ${installation}/clusters/*, so that no role of Starling's own is among them`;
    throw new Error(`context clusterRoles is "${names}"; give it ${wanted}`);
  }
  const accounts = clusterAccounts.split(",").map((account) => account.trim());
  const wrong = clusterAccounts === "" ? undefined : accounts.find((account) => !/^\d{12}$/.test(account));
  if (wrong !== undefined) {
    throw new Error(`context clusterAccounts has "${wrong}"; give it account ids of 12 digits, separated by commas`);
  }
  if (organization !== undefined && !/^o-[a-z0-9]{10,32}$/.test(organization)) {
    throw new Error(`context organization is "${organization}"; give it the id of one, such as o-a1b2c3d4e5`);
  }
  return {
    names,
    accounts: clusterAccounts === "" ? [] : accounts,
    ...defined({ organization }),
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
    `apply may assume roles ${names} of its own account only; name others by context ${remedy}`,
  );
}
