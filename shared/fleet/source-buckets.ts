/** The buckets that Sources may read: the setting `sourceBuckets`, as the stacks hand it to the functions. */

import { dnsLabel } from "#shared/base/name-schema.ts";

/** `acme-manifests`, `111122223333/acme-manifests`, `acme-manifests:shop+payments`. */
export interface AllowedBucket {
  readonly name: string;
  /** The account that owns it; absent for the account of the installation. */
  readonly account?: string;
  /** Namespaces whose Sources may read it; absent for all. */
  readonly namespaces?: readonly string[];
}

export interface BucketRules {
  readonly allowed: readonly AllowedBucket[];
  /** The bucket in which Starling keeps artifacts, renderings and inventories. */
  readonly own: string;
}

export const bucketName = /^(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const account = /^\d{12}$/;

/** @returns undefined when the text is no entry of the setting. */
export function parseAllowedBucket(entry: string): AllowedBucket | undefined {
  const [place = "", spaces, ...more] = entry.split(":");
  const [owner, name = "", ...deeper] = place.includes("/") ? place.split("/") : [undefined, place];
  const namespaces = spaces?.split("+");
  if (more.length > 0 || deeper.length > 0 || !bucketName.test(name)) return undefined;
  if (owner !== undefined && !account.test(owner)) return undefined;
  if (namespaces?.every((each) => dnsLabel.test(each)) === false) return undefined;
  return {
    name,
    ...(owner === undefined ? {} : { account: owner }),
    ...(namespaces === undefined ? {} : { namespaces }),
  };
}

/** @param text - entries separated by commas; empty for none. */
export function parseAllowedBuckets(text: string): readonly AllowedBucket[] {
  return text.split(",").flatMap((entry) => parseAllowedBucket(entry) ?? []);
}

/** @returns why Sources of the namespace may not read the bucket, and what an operator does about it; or undefined. */
export function bucketProblem(bucket: string, namespace: string, { allowed, own }: BucketRules): string | undefined {
  if (bucket === own) return ownBucketProblem;
  const entry = allowed.find(({ name }) => name === bucket);
  if (entry === undefined) {
    return `is not among the buckets that this installation reads: an operator adds it to the setting sourceBuckets, and deploys`;
  }
  if (entry.namespaces === undefined || entry.namespaces.includes(namespace)) return undefined;
  return `is not for Sources of the namespace ${namespace}: an operator adds it to the entry of the bucket in the setting sourceBuckets, and deploys`;
}

export const ownBucketProblem =
  "is Starling's own bucket, which holds the artifacts of all namespaces; name a bucket of your own";
