import { canonicalArn } from "#local/aws/iam/principal-arns.ts";

export type EksStatus = "CREATING" | "ACTIVE" | "UPDATING" | "DELETING" | "FAILED" | "PENDING";

export interface AccessEntry {
  readonly principalArn: string;
  readonly kubernetesGroups: readonly string[];
  /** May contain `{{SessionName}}`. */
  readonly username: string;
  /** ARNs of EKS access policies with the scope of the whole cluster. */
  readonly policies: readonly string[];
}

export interface EksCluster {
  readonly arn: string;
  readonly name: string;
  readonly region: string;
  readonly accountId: string;
  readonly status: EksStatus;
  /** For example `1.36`. */
  readonly version: string;
  readonly endpoint: string;
  /** The certificate authority: PEM in base64. */
  readonly caData: string;
  readonly tags: Readonly<Record<string, string>>;
  /** The default is `API`. */
  readonly authenticationMode?: "API" | "API_AND_CONFIG_MAP" | "CONFIG_MAP";
  /** The default is true: every address can reach the endpoint. */
  readonly publicAccess?: boolean;
  /** The default is a VPC that all clusters of this machine share. */
  readonly vpcId?: string;
  /** The addresses that can reach a public endpoint. The default is all. */
  readonly publicCidrs?: readonly string[];
  readonly createdAt: Date;
  readonly accessEntries: readonly AccessEntry[];
}

/** The only cluster-wide policy that the local EKS knows. */
export const clusterAdminPolicy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy";

/** A request that EKS refuses. `code` is the name of its exception. */
export class EksRefusal extends Error {
  readonly code:
    | "ResourceNotFoundException"
    | "InvalidParameterException"
    | "InvalidRequestException"
    | "ResourceInUseException";

  constructor(code: EksRefusal["code"], message: string) {
    super(message);
    this.code = code;
  }
}

function checkGroups(groups: readonly string[]): void {
  const reserved = groups.find((group) => group.startsWith("system:"));
  if (reserved === undefined) return;
  throw new EksRefusal(
    "InvalidParameterException",
    `The kubernetes group name ${reserved} is invalid, it cannot start with system:`,
  );
}

/** The EKS clusters in all accounts and regions of this machine, by ARN. */
export class EksRegister {
  readonly #clusters = new Map<string, EksCluster>();

  /** Adds a cluster, or replaces the cluster with the same ARN. */
  put(cluster: EksCluster): void {
    this.#clusters.set(cluster.arn, cluster);
  }

  remove(arn: string): void {
    this.#clusters.delete(arn);
  }

  find(arn: string): EksCluster | undefined {
    return this.#clusters.get(arn);
  }

  /** The clusters of an account and region, sorted by name. */
  list(where: { readonly accountId: string; readonly region: string }): readonly EksCluster[] {
    return [...this.#clusters.values()]
      .filter(({ accountId, region }) => accountId === where.accountId && region === where.region)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** @throws EksRefusal */
  addAccessEntry(arn: string, entry: AccessEntry): void {
    const cluster = this.get(arn);
    checkGroups(entry.kubernetesGroups);
    if (cluster.authenticationMode === "CONFIG_MAP") {
      throw new EksRefusal(
        "InvalidRequestException",
        "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.",
      );
    }
    if (cluster.accessEntries.some(({ principalArn }) => principalArn === entry.principalArn)) {
      throw new EksRefusal(
        "ResourceInUseException",
        "The specified access entry resource is already in use on this cluster.",
      );
    }
    this.put({ ...cluster, accessEntries: [...cluster.accessEntries, entry] });
  }

  /** @throws EksRefusal */
  associatePolicy(arn: string, principalArn: string, policyArn: string): void {
    const cluster = this.get(arn);
    const accessEntries = cluster.accessEntries.map((entry) =>
      entry.principalArn === principalArn
        ? { ...entry, policies: [...new Set([...entry.policies, policyArn])] }
        : entry,
    );
    if (!accessEntries.some((entry) => entry.principalArn === principalArn)) {
      throw new EksRefusal(
        "ResourceNotFoundException",
        `The specified principalArn could not be found: ${principalArn}`,
      );
    }
    this.put({ ...cluster, accessEntries });
  }

  /** @throws EksRefusal */
  accessEntry(arn: string, principalArn: string): AccessEntry {
    const found = this.get(arn).accessEntries.find((entry) => entry.principalArn === principalArn);
    if (found !== undefined) return found;
    throw new EksRefusal("ResourceNotFoundException", `The specified principalArn could not be found: ${principalArn}`);
  }

  /** Replaces the groups of an entry. @throws EksRefusal */
  setGroups(arn: string, principalArn: string, kubernetesGroups: readonly string[]): void {
    checkGroups(kubernetesGroups);
    const before = this.accessEntry(arn, principalArn);
    const cluster = this.get(arn);
    const accessEntries = cluster.accessEntries.map((entry) =>
      entry === before ? { ...entry, kubernetesGroups } : entry,
    );
    this.put({ ...cluster, accessEntries });
  }

  /** The access entry of the identity whose ARN STS gives. */
  accessEntryOf(arn: string, callerArn: string): AccessEntry | undefined {
    const caller = canonicalArn(callerArn);
    return this.find(arn)?.accessEntries.find(({ principalArn }) => canonicalArn(principalArn) === caller);
  }

  /** @throws EksRefusal `ResourceNotFoundException` */
  get(arn: string): EksCluster {
    const cluster = this.find(arn);
    if (cluster !== undefined) return cluster;
    const name = arn.split("/").at(-1);
    throw new EksRefusal("ResourceNotFoundException", `No cluster found for name: ${name}.`);
  }
}
