import { clustersText } from "#cli/format/clusters-text.ts";
import { unifiedDiff } from "#cli/format/unified-diff.ts";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { canonicalJson, parseJson } from "#shared/base/json.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";
import { isSecret, maskedObject, maskedPair } from "#shared/kube/masked-object.ts";
import type { ObjectDifference } from "#shared/kube/object-differences.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";

/** An object on both sides. A side is absent if it does not have the object. */
export interface ObjectSides {
  readonly id: ObjectId;
  readonly before?: KubeObject;
  readonly after?: KubeObject;
}

/** The diff of one Sync on clusters with equal differences. `-o json` prints it without `sides`. */
export interface ShownDiff {
  readonly sync: string;
  readonly clusters: readonly string[];
  readonly against: "live" | "assigned";
  readonly revision: string;
  readonly differences: readonly ObjectDifference[];
  /** Changes that objects do not show: a removed cluster, apply options, a failed rendering. */
  readonly notes: readonly string[];
  /** Objects that the server would refuse. */
  readonly refused: readonly { readonly id: ObjectId; readonly reason: string; readonly message: string }[];
  /** Kinds that could not be compared, and why. */
  readonly unread: readonly { readonly kind: string; readonly message: string }[];
  /** Objects that git no longer has, and that stay. */
  readonly kept: readonly { readonly id: ObjectId; readonly why: string }[];
  readonly sides: readonly ObjectSides[];
}

/** A unified diff, with comments that `patch` ignores. Values of Secrets are `***`. */
export function diffText({
  sync,
  clusters,
  against,
  revision,
  notes,
  refused,
  unread,
  kept,
  sides,
}: ShownDiff): string {
  const isEqual = [notes, refused, unread, sides].every(({ length }) => length === 0);
  const comments = [
    `${sync} on ${clustersText(clusters)}, ${revision} compared with ${against === "live" ? "the cluster" : "the assigned rendering"}${isEqual ? ": no differences" : ""}`,
    ...notes,
    ...refused.map(({ id, message }) => `${describeObject(id)} would be refused: ${message}`),
    ...unread.map(({ kind, message }) => `not compared: ${kind}: ${message}`),
    ...kept.map(({ id, why }) => `${describeObject(id)} is no longer in git, and stays: ${why}`),
  ];
  const lines = [...comments.map((comment) => `# ${comment}`), ...sides.flatMap((one) => objectLines(one, against))];
  return lines.map((line) => `${plainLine(line)}\n`).join("");
}

function objectLines({ id, before, after }: ObjectSides, against: ShownDiff["against"]): readonly string[] {
  const name = describeObject(id);
  const [old, now] = masked(before, after);
  return [
    `diff ${name}`,
    `--- ${old === undefined ? "/dev/null" : `${against}/${name}`}`,
    `+++ ${now === undefined ? "/dev/null" : `git/${name}`}`,
    ...unifiedDiff(yamlOf(old), yamlOf(now)),
  ];
}

function masked(before: KubeObject | undefined, after: KubeObject | undefined) {
  if (before === undefined || after === undefined)
    return [before && maskedObject(before), after && maskedObject(after)];
  return isSecret(before) || isSecret(after) ? maskedPair(before, after) : [before, after];
}

/** YAML with sorted keys, because a server does not keep the order of keys. */
function yamlOf(object: KubeObject | undefined): string {
  return object === undefined ? "" : manifestYaml(parseJson(canonicalJson(object)));
}
