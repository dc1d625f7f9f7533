import type { WrittenRow } from "#functions/api/write/object-change.ts";
import { stateEntry } from "#shared/adapters/state-entries.ts";
import { allItems } from "#shared/base/all-pages.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { type Owner, stateIndex, syncName } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

/** Counts what a write deletes, so that people know what they confirm. */
export interface Consequences {
  readonly message: string;
  /** Syncs on clusters whose objects would be deleted. */
  readonly syncs: number;
  readonly clusters: number;
  /** The change is more than a guard allows: only this hash passes it. */
  readonly guardHash?: string;
}

/** The templates that a SyncGroup drops: applying the document deletes their objects from clusters. */
export async function consequencesOf(
  table: Table,
  { document, before }: { readonly document: Document; readonly before: WrittenRow | undefined },
): Promise<Consequences | undefined> {
  if (document.kind !== "SyncGroup" || before?.type !== "SyncGroup") return undefined;
  const kept = new Set(document.spec.templates.map((template) => template.name));
  const dropped = before.spec.templates.map((template) => template.name).filter((name) => !kept.has(name));
  if (dropped.length === 0) return undefined;
  const owner: Owner = { namespace: before.namespace, kind: "SyncGroup", name: before.name };
  const counted = await countSyncs(table, { owner, names: dropped.map((template) => syncName(owner, template)) });
  if (counted.syncs === 0) return undefined;
  const templates = `${dropped.length === 1 ? "template" : "templates"} ${dropped.join(", ")}`;
  return {
    message: `SyncGroup ${before.namespace}/${before.name} drops ${templates}: the objects of ${countText(counted)} are deleted`,
    ...counted,
  };
}

/** Number of an owner's Syncs on clusters, and of these clusters; only Syncs with these names, when given. */
export async function countSyncs(
  table: Table,
  { owner, names }: { readonly owner: Owner; readonly names?: readonly string[] },
): Promise<{ readonly syncs: number; readonly clusters: number }> {
  const clusters = new Set<string>();
  let syncs = 0;
  const range = stateIndex.range(owner);
  for await (const found of allItems((start) => table.queryIndex({ ...range, ...start }))) {
    const entry = stateEntry(found);
    // A Sync that was forgotten before is not affected.
    if (entry === undefined || entry.state === "Orphaned") continue;
    if (names !== undefined && !names.includes(entry.sync)) continue;
    syncs++;
    clusters.add(entry.cluster);
  }
  return { syncs, clusters: clusters.size };
}

export function countText({ syncs, clusters }: { readonly syncs: number; readonly clusters: number }): string {
  return `${syncs} ${syncs === 1 ? "Sync" : "Syncs"} on ${clusters} ${clusters === 1 ? "cluster" : "clusters"}`;
}
