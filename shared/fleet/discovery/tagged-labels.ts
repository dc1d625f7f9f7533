/** Labels and values of a discovered cluster, from its tags: pure. */
import { defined } from "#shared/base/defined.ts";
import { ownValue } from "#shared/base/own-value.ts";
import type { EksArn } from "#shared/fleet/eks-arn.ts";
import type { ClusterDiscoverySpec, TagSelector } from "#shared/fleet/kinds/cluster-discovery.ts";
import { type LabelSelector, matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { labelValueSchema } from "#shared/fleet/kinds/metadata.ts";
import { ownLabelPrefix, versionLabel } from "#shared/fleet/kinds/own-labels.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";
import type { RefusedTag, RefusedValue } from "#shared/fleet/rows/discovery-rows.ts";

export type Tags = Readonly<Record<string, string>>;
type Texts = Readonly<Record<string, string>>;

/** Longer texts are no values of a Cluster either. */
const maxValue = 1024;

/** A selector of Kubernetes, over keys and values that Kubernetes does not allow. */
export function matchesTags(selector: TagSelector | undefined, tags: Tags): boolean {
  return selector === undefined || matchesSelector(selector as LabelSelector, tags);
}

/** A tag that every match has, so that lists by tag suffice; undefined when clusters without any may match. */
export function requiredTag(
  selector: TagSelector | undefined,
): { readonly key: string; readonly values: readonly string[] } | undefined {
  const [label] = Object.entries(selector?.matchLabels ?? {});
  if (label !== undefined) return { key: label[0], values: [label[1]] };
  for (const expression of selector?.matchExpressions ?? []) {
    // As many values as the service allows.
    if (expression.operator === "In" && expression.values.length <= 20) return expression;
    if (expression.operator === "Exists") return { key: expression.key, values: [] };
  }
  return undefined;
}

/** The tags that a scan has to compare: those that set something of the cluster. */
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
    const said = defined({ value: ownValue(cluster.tags, tag), kept: ownValue(accepted, label) });
    const taken = isTaken(said.value, ownValue(allowed, label), isLabelValue);
    const next = taken ? said.value : said.kept;
    if (next !== undefined) labels[label] = next;
    if (!taken) refused.push({ label, tag, ...said });
  }
  labels[`${ownLabelPrefix}account`] = cluster.eks.accountId;
  labels[`${ownLabelPrefix}region`] = cluster.eks.region;
  labels[versionLabel] = cluster.version;
  return { labels, refused };
}

/** Whether a label takes the value of its tag. A label with a list of allowed values stays when its tag is removed. */
function isTaken(
  value: string | undefined,
  among: readonly string[] | undefined,
  isFit: (value: string) => boolean,
): boolean {
  if (value === undefined) return among === undefined;
  return among === undefined ? isFit(value) : among.includes(value);
}

function isLabelValue(value: string): boolean {
  return labelValueSchema.safeParse(value).success;
}

/** @param accepted - the values that it had. */
export function valuesFrom(
  { values: { fromTags = [], allowed = {} } = {} }: ClusterDiscoverySpec,
  tags: Tags,
  accepted: Values,
): { readonly values: Texts; readonly refused: readonly RefusedValue[] } {
  const values: Record<string, string> = {};
  const refused: RefusedValue[] = [];
  for (const name of fromTags) {
    const before = ownValue(accepted, name);
    const among = ownValue(allowed, name);
    const said = defined({ value: ownValue(tags, name), kept: typeof before === "string" ? before : undefined });
    const taken = isTaken(said.value, among, (value) => value.length <= maxValue);
    const next = taken || among === undefined ? said.value : said.kept;
    if (next !== undefined && next.length <= maxValue) values[name] = next;
    if (!taken && among !== undefined) refused.push({ name, ...said });
  }
  return { values, refused };
}
