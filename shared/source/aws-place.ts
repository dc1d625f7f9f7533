/** Repositories of AWS, which Starling's own role may read. */

export interface AwsPlace {
  readonly service: "ecr" | "codecommit" | "codeconnections" | "codestar-connections";
  /** With its DNS suffix, for the endpoint of the service: `amazonaws.com`. */
  readonly suffix: string;
  readonly region: string;
  /** Absent for CodeCommit, which has the account of whoever asks. */
  readonly account?: string;
  /** The last part of the ARN: `repository/acme/shop`, `shop`, `connection/8f2a…`. */
  readonly resource: string;
}

const suffix = "(amazonaws\\.com(?:\\.cn)?)";
const region = "([a-z]{2}(?:-[a-z]+)+-\\d)";
const ecr = new RegExp(`^oci://(\\d{12})\\.dkr\\.ecr(?:-fips)?\\.${region}\\.${suffix}/([a-z0-9._/-]+?)/?$`);
const codeCommit = new RegExp(`^https://git-codecommit(?:-fips)?\\.${region}\\.${suffix}/v1/repos/([\\w.-]+)$`);
const connections = new RegExp(
  `^https://(codeconnections|codestar-connections)\\.${region}\\.${suffix}/git-http/(\\d{12})/${region}/([0-9a-f-]{36})/[\\w./-]+$`,
);

/** @returns undefined for the address of anything else. It has to be written as AWS shows it. */
export function awsPlace(address: string): AwsPlace | undefined {
  if (/\/\.{1,2}(\/|$)/.test(address)) return undefined;
  return ecrPlace(address) ?? codeCommitPlace(address) ?? connectionPlace(address);
}

function ecrPlace(address: string): AwsPlace | undefined {
  const [, account, at, domain, name] = ecr.exec(address) ?? [];
  if (account === undefined || at === undefined || domain === undefined || name === undefined) return undefined;
  return { service: "ecr", suffix: domain, region: at, account, resource: `repository/${name}` };
}

function codeCommitPlace(address: string): AwsPlace | undefined {
  const [, at, domain, name] = codeCommit.exec(address) ?? [];
  if (at === undefined || domain === undefined || name === undefined) return undefined;
  return { service: "codecommit", suffix: domain, region: at, resource: name };
}

function connectionPlace(address: string): AwsPlace | undefined {
  const [, service, at, domain, account, own, id] = connections.exec(address) ?? [];
  if (service === undefined || at === undefined || domain === undefined || account === undefined) return undefined;
  if (own !== at || id === undefined) return undefined;
  const named = service === "codeconnections" ? service : "codestar-connections";
  return { service: named, suffix: domain, region: at, account, resource: `connection/${id}` };
}

/** An entry of the setting `awsSources`: what Starling's role may read, and for the Sources of which namespace. */
export interface AwsGrant {
  /** Absent: of every namespace. */
  readonly namespaces?: readonly string[];
  /** With `*` for any text. */
  readonly arn: string;
}

/** `arn:aws:ecr:eu-west-1:111122223333:repository/shop/*:shop+payments`, or an ARN alone. */
export const awsGrantForm =
  /^(arn:aws[a-z-]*:(?:ecr:[a-z0-9-]+:\d{12}:repository\/[\w./*-]+|codecommit:[a-z0-9-]+:\d{12}:[\w.*-]+|(?:codeconnections|codestar-connections):[a-z0-9-]+:\d{12}:connection\/[\w*-]+))(?::([a-z0-9-]+(?:\+[a-z0-9-]+)*))?$/;

export function awsGrant(entry: string): AwsGrant {
  const [, arn, namespaces] = awsGrantForm.exec(entry) ?? [];
  if (arn === undefined) throw new Error(`awsSources has an entry that is none: ${entry}`);
  return namespaces === undefined ? { arn } : { arn, namespaces: namespaces.split("+") };
}

/** Whether a Source may be read with Starling's role. IAM decides the same, and does not know the namespace. */
export function isGranted(grants: readonly AwsGrant[], place: AwsPlace, namespace: string): boolean {
  return grants.some((grant) => {
    if (grant.namespaces?.includes(namespace) === false) return false;
    const [, , service, at, account, resource = ""] = grant.arn.split(":");
    const isThere = service === place.service && at === place.region;
    return isThere && (place.account ?? account) === account && isLike(place.resource, resource);
  });
}

function isLike(text: string, pattern: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(text);
}
