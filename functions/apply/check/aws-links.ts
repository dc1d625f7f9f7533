/** Checks what IAM, STS and EKS need before there is an address to connect to. */
import type { CheckedWay } from "#functions/apply/check/checked-way.ts";
import type { EksTarget } from "#shared/adapters/aws/eks-access.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import { roleOutput } from "#shared/fleet/kinds/zone-name.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";

export async function awsLinks(
  cluster: ClusterRow,
  { connector, eks, zone }: CheckedWay,
): Promise<readonly LinkFinding[]> {
  const target = connector.targetOf(cluster);
  if (target === undefined) return [];
  const assumed = await assumedRole(target, { eks, zone });
  if (assumed.some(({ state }) => state !== "ok")) return assumed;
  return [...assumed, ...(await describedCluster(target, eks))];
}

type Role = NonNullable<EksTarget["role"]>;

/** Without a role Starling uses its own identity, which needs no permission. */
async function assumedRole(
  target: EksTarget,
  { eks, zone }: Pick<CheckedWay, "eks" | "zone">,
): Promise<readonly LinkFinding[]> {
  const { role } = target;
  if (role === undefined) return [];
  try {
    await eks.session(target);
  } catch (error) {
    return [roleProblem(error, { ...target, role, zone: zone.own })];
  }
  return [{ link: "role", state: "ok", value: role.arn }, await onlyWith(role.externalId, { target, eks })];
}

interface RefusedRole extends EksTarget {
  readonly role: Role;
  /** The zone whose workers the role refuses. */
  readonly zone: string;
}

function roleProblem(error: unknown, { cluster, role, zone }: RefusedRole): LinkFinding {
  const [code, message] = [errorCode(error), errorMessage(error)];
  const found = { link: "role", value: role.arn, code, message } as const;
  if (code === "RoleDenied") return { ...found, state: "broken", remedy: deniedRemedy(message, { role, zone }) };
  if (code === "TokenTooLarge") {
    const remedy = "take session tags and session policies away from the role of Starling's apply function";
    return { ...found, state: "broken", remedy };
  }
  if (code === "RegionDisabled") {
    const remedy = `in account ${cluster.accountId}: activate the STS endpoint that the message names, in the account settings of IAM`;
    return { ...found, state: "broken", remedy };
  }
  return { ...found, state: "unknown", remedy: "look at the AWS Health Dashboard, and check again in a minute" };
}

/** STS does not distinguish these causes, except when the caller's own policy denies the call. */
function deniedRemedy(message: string, { role: { arn, externalId }, zone }: Omit<RefusedRole, "cluster">): string {
  if (message.includes("no identity-based policy allows")) {
    const account = arn.split(":")[4] ?? "";
    return `Starling's own role may not assume it: deploy the stacks with account ${account} in clusterAccounts (or organization), and the role in the path of clusterRoles`;
  }
  const name = arn.split("/").at(-1) ?? "";
  return `see that the role exists, trusts output ${roleOutput(zone)} of the control stack, and asks for the external id ${externalId}: aws iam get-role --role-name ${quoted(name)} --query Role.AssumeRolePolicyDocument`;
}

/** The role must refuse a wrong external id: otherwise every Cluster, and everybody whom the role trusts, can use it. */
async function onlyWith(
  externalId: string,
  { target, eks }: { readonly target: EksTarget; readonly eks: CheckedWay["eks"] },
): Promise<LinkFinding> {
  const found = { link: "externalId", value: externalId } as const;
  const arn = target.role?.arn ?? "";
  try {
    await eks.session({ ...target, role: { arn, externalId: "starling-check/another-external-id" } });
  } catch (error) {
    if (errorCode(error) === "RoleDenied") return { ...found, state: "ok" };
    return {
      ...found,
      state: "unknown",
      code: errorCode(error),
      message: errorMessage(error),
      remedy: "check again in a minute",
    };
  }
  const message = `role ${arn} can be assumed with any external id: whoever may write a Cluster can reach this one by it`;
  const remedy = `let its trust policy ask for it: "Condition": {"StringEquals": {"sts:ExternalId": "${externalId}"}}`;
  return { ...found, state: "broken", code: "ExternalIdIgnored", message, remedy };
}

const eksRemedies: Readonly<Record<string, (cluster: EksArn) => string>> = {
  EksDenied: ({ arn }) => `allow eks:DescribeCluster on ${arn} to the role`,
  EksClusterNotFound: ({ name, region }) =>
    `correct spec.eks.arn, or spec.access: aws eks describe-cluster --name ${name} --region ${region} --query cluster.arn`,
  EksClusterNotActive: ({ name, region }) => `aws eks wait cluster-active --name ${name} --region ${region}`,
};

/** Checks that the cluster's account has the region, and reads EKS's description of the cluster there. */
async function describedCluster(target: EksTarget, eks: CheckedWay["eks"]): Promise<readonly LinkFinding[]> {
  const { cluster } = target;
  const region: LinkFinding = { link: "region", state: "ok", value: cluster.region };
  const found = { link: "eks", value: cluster.arn } as const;
  try {
    await eks.endpoint(target);
    return [region, { ...found, state: "ok" }];
  } catch (error) {
    const [code, message] = [errorCode(error), errorMessage(error)];
    const regionRemedy = remedyOfRegion({ code, message }, cluster);
    if (regionRemedy !== undefined) return [{ ...region, state: "broken", code, message, remedy: regionRemedy }];
    const remedy = eksRemedies[code]?.(cluster);
    if (remedy !== undefined) return [region, { ...found, state: "broken", code, message, remedy }];
    return [region, { ...found, state: "unknown", code, message, remedy: "check again in a minute" }];
  }
}

/** @returns undefined when the region is not the cause. */
function remedyOfRegion(
  { code, message }: { readonly code: string; readonly message: string },
  { region, accountId }: EksArn,
): string | undefined {
  if (code === "RegionOff") {
    return `in account ${accountId}: aws account enable-region --region-name ${region}; or correct the region in spec.eks.arn`;
  }
  return /ENOTFOUND/.test(message) ? "correct the region in spec.eks.arn: there is no EKS of that name" : undefined;
}
