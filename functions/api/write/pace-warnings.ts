import type { Document } from "#shared/fleet/kinds/document.ts";
import { resolveCount } from "#shared/fleet/kinds/quantities.ts";

/**
 * A bound of zero does not stop a rollout: one cluster still changes, so that a small share of few clusters is no
 * standstill.
 */
export function paceWarnings(documents: readonly Document[]): readonly (readonly string[])[] {
  return documents.map((document) => {
    if (document.kind !== "SyncGroup") return [];
    const { namespace, name } = document.metadata;
    const { maxConcurrent, stages } = document.spec.rollout;
    const fields = [
      ["spec.rollout.maxConcurrent", maxConcurrent] as const,
      ...stages.map((stage) => [`maxConcurrent of stage ${stage.name}`, stage.maxConcurrent] as const),
    ];
    return fields
      .filter(([, count]) => count !== undefined && resolveCount(count, Number.MAX_SAFE_INTEGER) === 0)
      .map(
        ([field, count]) =>
          `${field} is ${count}, which means 1: one cluster at a time changes; ` +
          `to change none: starling suspend syncgroup/${name} -n ${namespace}`,
      );
  });
}
