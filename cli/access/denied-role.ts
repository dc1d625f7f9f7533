/** Finds why a role refuses Starling. STS does not say why; the role's trust policy does, for people who may read it. */
import type { EksAccounts } from "#cli/access/eks-accounts.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";

export interface DeniedRole {
  /** The finding of the check: broken, `RoleDenied`. */
  readonly finding: LinkFinding;
  /** The external id that Starling sends for the Cluster. */
  readonly externalId: string;
}

interface TrustStatement {
  readonly principals: readonly string[];
  /** Absent: the statement requires none. */
  readonly externalIds?: readonly string[];
}

/** Narrows the finding to its cause. If the role cannot be read, the message also says why. */
export async function explained(denied: DeniedRole, accounts: EksAccounts): Promise<LinkFinding> {
  const { finding } = denied;
  const [, partition = "", account = "", path = ""] =
    /^arn:([\w-]+):iam::(\d+):role\/(.*)$/.exec(finding.value ?? "") ?? [];
  const asked = await readTrust(
    { arn: finding.value ?? "", name: path.split("/").at(-1) ?? "", account, partition },
    accounts,
  );
  if ("problem" in asked)
    return { ...finding, message: `${finding.message} (its trust policy was not read: ${asked.problem})` };
  if (asked.trust === undefined) {
    const remedy = `create the role: \`starling cluster add\` prints the commands; docs/tasks/eks-access.md shows the policy`;
    return { ...finding, code: "RoleMissing", message: `the role does not exist: ${finding.value}`, remedy };
  }
  return judged(denied, asked.trust);
}

/** The caller's role. The message of STS names it; roles of functions have no path. */
function callerOf({ message = "" }: LinkFinding): string | undefined {
  const [, partition, account, name] = /arn:([\w-]+):sts::(\d{12}):assumed-role\/([\w+=,.@-]+)\//.exec(message) ?? [];
  return name === undefined ? undefined : `arn:${partition}:iam::${account}:role/${name}`;
}

function judged({ finding, externalId }: DeniedRole, trust: readonly TrustStatement[]): LinkFinding {
  const caller = callerOf(finding);
  const trusting = trust.filter(({ principals }) =>
    principals.some((one) => caller === undefined || lets(one, caller)),
  );
  if (trusting.length === 0) {
    const whom = [...new Set(trust.flatMap(({ principals }) => principals))].join(", ") || "nobody";
    const message = `the role trusts ${whom}, not ${caller}`;
    const remedy = `add "Principal": {"AWS": "${caller}"} to the trust policy; a principal that begins with AROA is a deleted role`;
    return { ...finding, code: "RoleTrustsOthers", message, remedy };
  }
  const ids = trusting.flatMap(({ externalIds = [] }) => externalIds);
  if (
    trusting.every(({ externalIds }) => externalIds !== undefined && !externalIds.some((one) => fits(one, externalId)))
  ) {
    const message = `the role requires the external id ${ids.join(" or ")}; Starling sends ${externalId} for this Cluster`;
    const remedy = `set "Condition": {"StringEquals": {"sts:ExternalId": "${externalId}"}} in the trust policy`;
    return { ...finding, link: "externalId", value: externalId, code: "ExternalIdOther", message, remedy };
  }
  const remedy =
    "check clusterRoles and clusterAccounts (or organization) in the settings of Starling's stacks, and service control policies";
  return {
    ...finding,
    code: "RoleNotAllowed",
    message: "the role trusts Starling, but Starling's own account does not allow it to assume the role",
    remedy,
  };
}

/** Whether a principal of the policy covers the caller: the role itself, or all of its account. */
function lets(principal: string, caller: string): boolean {
  const account = caller.split(":")[4];
  return principal === caller || principal === "*" || principal === account || principal.endsWith(`::${account}:root`);
}

/** `*` stands for any text, as in StringLike. */
function fits(pattern: string, text: string): boolean {
  const literal = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`).test(text);
}

interface RoleName {
  readonly arn: string;
  readonly name: string;
  readonly account: string;
  readonly partition: string;
}

/** @returns no trust for a role that does not exist, or has another path. */
async function readTrust(
  { arn, name, account, partition }: RoleName,
  accounts: EksAccounts,
): Promise<{ readonly trust: readonly TrustStatement[] | undefined } | { readonly problem: string }> {
  const { GetRoleCommand, IAMClient, NoSuchEntityException } = await import("@aws-sdk/client-iam");
  // IAM has one region in each partition.
  const region = { "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1" }[partition] ?? "us-east-1";
  try {
    const client = new IAMClient({ region, credentials: await accounts.keys(account, region) });
    const { Role: role } = await client.send(new GetRoleCommand({ RoleName: name })).finally(() => client.destroy());
    const found = role?.Arn ?? "";
    if (found.split(":")[4] !== account)
      return { problem: `these credentials belong to account ${found.split(":")[4]}` };
    return {
      trust: found === arn ? statementsIn(decodeURIComponent(role?.AssumeRolePolicyDocument ?? "")) : undefined,
    };
  } catch (error) {
    return error instanceof NoSuchEntityException ? { trust: undefined } : { problem: errorMessage(error) };
  }
}

type OneOrMore = string | readonly string[];

interface PolicyText {
  readonly Statement?: PolicyStatement | readonly PolicyStatement[];
}

interface PolicyStatement {
  readonly Effect: string;
  readonly Action: OneOrMore;
  readonly Principal?: { readonly AWS?: OneOrMore } | "*";
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, OneOrMore>>>>;
}

function statementsIn(text: string): readonly TrustStatement[] {
  const { Statement = [] } = JSON.parse(text) as PolicyText;
  return listOf<PolicyStatement>(Statement)
    .filter(
      ({ Effect, Action }) =>
        Effect === "Allow" && listOf(Action).some((one) => /^(sts:(AssumeRole|\*)|\*)$/.test(one)),
    )
    .map(({ Principal, Condition = {} }) => {
      const ids = ["StringEquals", "StringLike"].flatMap((operator) =>
        listOf(Condition[operator]?.["sts:ExternalId"] ?? []),
      );
      const principals = Principal === "*" ? ["*"] : listOf(Principal?.AWS ?? []);
      return { principals, ...(ids.length === 0 ? {} : { externalIds: ids }) };
    });
}

function listOf<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}
