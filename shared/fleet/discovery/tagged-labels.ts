/** Labels and values of a discovered cluster, from its tags: pure. */
import { ownValue } from "#shared/base/own-value.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import {
  type ClusterDiscoverySpec,
  ownLabelPrefix,
  type TagSelector,
  versionLabel,
} from "#shared/fleet/kinds/cluster-discovery.ts";
import { type LabelSelector, matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { labelValueSchema } from "#shared/fleet/kinds/metadata.ts";
import type { RefusedTag } from "#shared/fleet/rows/discovery-rows.ts";

export type Tags = Readonly<Record<string, string>>;
type Texts = Readonly<Record<string, string>>;

/** Longer ones are no values of a Cluster either. */
const maxValue = 1024;

/** A selector of Kubernetes, over keys and values that Kubernetes does not take. */
export function matchesTags(selector: TagSelector | undefined, tags: Tags): boolean {
  return selector === undefined || matchesSelector(selector as LabelSelector, tags);
}

/** A tag that every match has, so that lists by tag are enough; undefined where clusters without any may match. */
export function requiredTag(
  selector: TagSelector | undefined,
): { readonly key: string; readonly values: readonly string[] } | undefined {
  const [label] = Object.entries(selector?.matchLabels ?? {});
  if (label !== undefined) return { key: label[0], values: [label[1]] };
  for (const expression of selector?.matchExpressions ?? []) {
    // As many values as the service takes.
    if (expression.operator === "In" && expression.values.length <= 20) return expression;
    if (expression.operator === "Exists") return { key: expression.key, values: [] };
  }
  return undefined;
}

/** The tags that a look has to compare: those that say something about the cluster. */
export function tagsThatMatter({ labels, values, eks }: ClusterDiscoverySpec, tags: Tags): Tags {
  const keys = [
    ...Object.values(labels?.fromTags ?? {}),
    ...(values?.fromTags ?? []),
    ...Object.keys(eks.tags?.matchLabels ?? {}),
    ...(eks.tags?.matchExpressions ?? []).map(({ key }) => key),
  ];
  const found: Record<string, string> = {};
  for (const key of [...new Set(keys)].sort()) {
    const value = ownValue(tags, key);
    if (value !== undefined) found[key] = value;
  }
  return found;
}

/** @param accepted - the labels that it had: what its tag says now may be none that is allowed. */
export function labelsFrom(
  spec: ClusterDiscoverySpec,
  cluster: { readonly eks: EksArn; readonly version: string; readonly tags: Tags },
  accepted: Texts,
): { readonly labels: Texts; readonly refused: readonly RefusedTag[] } {
  const { fromTags = {}, allowed = {}, set = {} } = spec.labels ?? {};
  const labels: Record<string, string> = { ...set };
  const refused: RefusedTag[] = [];
  for (const [label, tag] of Object.entries(fromTags)) {
    const value = ownValue(cluster.tags, tag);
    const among = ownValue(allowed, label);
    // A label that is bound to a list does not go because somebody took the tag away.
    const isTaken = value === undefined ? among === undefined : isAllowed(value, among);
    const kept = ownValue(accepted, label);
    const next = isTaken ? value : kept;
    if (next !== undefined) labels[label] = next;
    const said = { ...(value === undefined ? {} : { value }), ...(kept === undefined ? {} : { kept }) };
    if (!isTaken) refused.push({ label, tag, ...said });
  }
  labels[`${ownLabelPrefix}account`] = cluster.eks.accountId;
  labels[`${ownLabelPrefix}region`] = cluster.eks.region;
  labels[versionLabel] = cluster.version;
  return { labels, refused };
}

function isAllowed(value: string, among: readonly string[] | undefined): boolean {
  return among === undefined ? labelValueSchema.safeParse(value).success : among.includes(value);
}

export function valuesFrom({ values }: ClusterDiscoverySpec, tags: Tags): Texts {
  const found: Record<string, string> = {};
  for (const name of values?.fromTags ?? []) {
    const value = ownValue(tags, name);
    if (value !== undefined && value.length <= maxValue) found[name] = value;
  }
  return found;
}
