/** Names of EKS clusters and IAM roles, and where the STS of a region is: no call is needed to know them. */

/** The partitions of AWS that clusters are reached in, and the domain of their regional endpoints. */
const stsDomains = {
  aws: "amazonaws.com",
  "aws-cn": "amazonaws.com.cn",
  "aws-us-gov": "amazonaws.com",
} as const;
export type AwsPartition = keyof typeof stsDomains;

export interface EksArn {
  readonly arn: string;
  readonly partition: AwsPartition;
  readonly region: string;
  readonly accountId: string;
  /** The cluster's name, which is the only thing of it that a token is bound to. */
  readonly name: string;
}

/** At most 100 characters of a name, as CreateCluster takes them. */
const clusterArn = /^arn:(aws|aws-cn|aws-us-gov):eks:([a-z0-9-]{1,40}):(\d{12}):cluster\/([0-9A-Za-z][\w-]{0,99})$/;

/** `arn:<partition>:eks:<region>:<account>:cluster/<name>`, or undefined when the text is not one. */
export function parseEksArn(arn: string): EksArn | undefined {
  const parts = clusterArn.exec(arn);
  if (parts === null) return undefined;
  const [, partition = "", region = "", accountId = "", name = ""] = parts;
  return { arn, partition: partition as AwsPartition, region, accountId, name };
}

/** EKS answers about clusters of the caller's account only, so the role is one of that account. */
export function roleArnIn({ partition, accountId }: EksArn, name: string): string {
  return `arn:${partition}:iam::${accountId}:role/${name}`;
}

/** The region's own STS: a token for it needs no other region to be up, and no verifier refuses it. */
export function stsHost({ partition, region }: Pick<EksArn, "partition" | "region">): string {
  return `sts.${region}.${stsDomains[partition]}`;
}

/** The partition that a region is in: its name says it. */
export function partitionOf(region: string): AwsPartition {
  if (region.startsWith("cn-")) return "aws-cn";
  return region.startsWith("us-gov-") ? "aws-us-gov" : "aws";
}
