/** The commands that give Starling access to a cluster. People type them with rights in the cluster's account. */
import { quoted } from "#shared/base/shell-word.ts";
import { describePolicy, describePolicyName, trustPolicy } from "#shared/fleet/access/cluster-role-policy.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";

export interface DesiredAccess {
  /** The Cluster's name. */
  readonly cluster: string;
  readonly eks: EksArn;
  /** With its path. Absent: Starling's own role enters the cluster. */
  readonly roleName?: string;
  /** The role of Starling's apply function. */
  readonly applyRole: string;
  readonly installationId: string;
  readonly group: string;
}

/** The principal of the access entry. */
export function principalOf({ eks, roleName, applyRole }: DesiredAccess): string {
  return roleName === undefined ? applyRole : `arn:${eks.partition}:iam::${eks.accountId}:role/${roleName}`;
}

/** Commands for the account of the cluster; they need rights to write roles. */
export function roleSteps(access: DesiredAccess): readonly string[] {
  const { roleName, eks } = access;
  if (roleName === undefined) return [];
  const at = roleName.lastIndexOf("/");
  const [path, name] = [`/${roleName.slice(0, at + 1)}`, quoted(roleName.slice(at + 1))];
  const [trust, policy] = [JSON.stringify(trustPolicy(access)), JSON.stringify(describePolicy(eks.arn))];
  return [
    `aws iam create-role --path ${quoted(path)} --role-name ${name} --assume-role-policy-document ${quoted(trust)}`,
    `aws iam put-role-policy --role-name ${name} --policy-name ${describePolicyName} --policy-document ${quoted(policy)}`,
  ];
}

/** Commands for EKS and the cluster. `--grant` does the same. */
export function clusterSteps(access: DesiredAccess): readonly string[] {
  const { eks, group } = access;
  const where = `--region ${eks.region}`;
  const context = quoted(eks.arn);
  return [
    `aws eks create-access-entry ${where} --cluster-name ${eks.name} --principal-arn ${quoted(principalOf(access))} --kubernetes-groups ${quoted(group)}`,
    `aws eks update-kubeconfig ${where} --name ${eks.name}`,
    `starling cluster rbac --group ${quoted(group)} | kubectl --context ${context} apply --server-side -f -`,
  ];
}
