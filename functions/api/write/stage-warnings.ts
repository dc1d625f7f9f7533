import { clustersInDocuments, readFleetUntil } from "#functions/api/write/cluster-warnings.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import type { SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { stageOf } from "#shared/fleet/rollout/desired-plan.ts";
import type { Table } from "#shared/ports.ts";

/**
 * The first stage of a group verifies every rollout on a cluster. A group that has clusters only in later stages stands
 * still until a cluster is registered in the first, so `apply` warns about it.
 */
export async function stageWarnings(
  table: Table,
  documents: readonly Document[],
): Promise<readonly (readonly string[])[]> {
  const open = new Map(
    documents.flatMap((document, index) => (mayStandStill(document) ? [[index, document.spec] as const] : [])),
  );
  const later = new Set<number>();
  if (open.size > 0)
    await readFleetUntil(table, clustersInDocuments(documents), (clusters) => {
      for (const [index, { clusters: selection, rollout }] of open) {
        const stages = clusters.filter((one) => selects(selection, one)).map((one) => stageOf(rollout, one));
        if (stages.includes(firstOf(rollout))) open.delete(index);
        else if (stages.length > 0) later.add(index);
      }
      return open.size > 0;
    });
  return documents.map((_, index) => {
    const spec = open.get(index);
    return spec === undefined || !later.has(index) ? [] : [warning(firstOf(spec.rollout))];
  });
}

function mayStandStill(document: Document): document is Extract<Document, { kind: "SyncGroup" }> {
  if (document.kind !== "SyncGroup") return false;
  const { stages } = document.spec.rollout;
  return stages.length > 1 && stages[0]?.optional !== true;
}

function firstOf({ stages: [first] }: SyncGroupSpec["rollout"]): string {
  return first?.name ?? "";
}

function warning(stage: string): string {
  return (
    `no registered cluster is in stage ${stage}, the first: nothing is rolled out to later stages until one is; ` +
    "to pass it without: optional: true"
  );
}
