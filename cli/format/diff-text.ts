import { clustersText } from "#cli/format/clusters-text.ts";
import { unifiedDiff } from "#cli/format/unified-diff.ts";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { canonicalJson, parseJson } from "#shared/base/json.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";
import { isSecret, maskedObject, maskedPair } from "#shared/kube/masked-object.ts";
import type { ObjectDifference } from "#shared/kube/object-differences.ts";
import { describeObject, type ObjectId } from "#shared/kube/object-id.ts";

/** An object on both sides; absent: it is not there. */
export interface ObjectSides {
  readonly id: ObjectId;
  readonly before?: KubeObject;
  readonly after?: KubeObject;
}

/** Of one Sync, on clusters that are alike: without `sides` this is what `-o json` prints. */
export interface ShownDiff {
  readonly sync: string;
  readonly clusters: readonly string[];
  readonly against: "live" | "assigned";
  readonly revision: string;
  readonly differences: readonly ObjectDifference[];
  /** What is not told by objects: a cluster that leaves, options of `apply`, a rendering that fails. */
  readonly notes: readonly string[];
  /** Objects that the server would not take. */
  readonly refused: readonly { readonly id: ObjectId; readonly reason: string; readonly message: string }[];
  /** What could not be found out. */
  readonly unread: readonly { readonly kind: string; readonly message: string }[];
  /** What git has no more, and stays. */
  readonly kept: readonly { readonly id: ObjectId; readonly why: string }[];
  readonly sides: readonly ObjectSides[];
}

/** As `diff -u` has it, with comments where `patch` takes none for a change. Values of Secrets are `***`. */
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
  const comments = [
    `${sync} on ${clustersText(clusters)}, ${revision} against what is ${against === "live" ? "in the cluster" : "assigned"}`,
    ...notes,
    ...refused.map(({ id, message }) => `${describeObject(id)} would be refused: ${message}`),
    ...unread.map(({ kind, message }) => `not compared: ${kind}: ${message}`),
    ...kept.map(({ id, why }) => `${describeObject(id)} is not in git any more, and stays: ${why}`),
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

/** With sorted keys: a server answers the same object in this order and in that. */
function yamlOf(object: KubeObject | undefined): string {
  return object === undefined ? "" : manifestYaml(parseJson(canonicalJson(object)));
}
