import { foreignList } from "#shared/base/foreign-text.ts";
import type { ObjectWarning } from "#shared/fleet/rows/sync-row.ts";
import type { ApplySetResult } from "#shared/kube/engine/apply-set.ts";
import type { PruneResult } from "#shared/kube/engine/prune-set.ts";
import { describeObject } from "#shared/kube/object-id.ts";

/** Warnings of the API server, such as deprecated APIs and objections of a policy; each text once. */
export function objectWarnings({ objects }: Pick<ApplySetResult, "objects">): readonly ObjectWarning[] {
  const about = new Map<string, string[]>();
  for (const object of objects) {
    if (!("warnings" in object)) continue;
    const { id, warnings } = object;
    const isSecret = id.group === "" && id.kind === "Secret";
    // Webhooks quote values in their warnings.
    const reported = isSecret && warnings.length > 0 ? ["the server's words about a Secret are withheld"] : warnings;
    for (const message of reported) about.set(message, [...(about.get(message) ?? []), describeObject(id)]);
  }
  return [...about].map(([message, names]) => ({ object: foreignList(names, 1), message }));
}

/** Warnings about deletions, whatever their outcome. */
export function deletionWarningsOf(pruned: PruneResult): readonly ObjectWarning[] {
  if (pruned.outcome === "refused") return [];
  return pruned.notes.map(({ id, message }) => ({ object: describeObject(id), message }));
}
