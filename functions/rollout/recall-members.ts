import { readFleet, readMembers, type StoredMember } from "#functions/rollout/fleet.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import { stateEntries } from "#functions/rollout/state-entries.ts";
import { isBlobLost } from "#shared/base/errors.ts";
import { type Subject, stateIndex } from "#shared/fleet/rows/keys.ts";
import type { Table } from "#shared/ports.ts";

export interface Recalled {
  readonly members: readonly StoredMember[];
  /** The list is gone: these are the clusters that have Syncs of the subject, without what they were rendered from. */
  readonly lost: boolean;
}

/** The members of a list, as far as they can be known when the list is lost: nobody who left is forgotten by that. */
export async function recallMembers(key: string, subject: Subject, ports: PlannerPorts): Promise<Recalled> {
  try {
    return { members: await readMembers(ports.blobs, key), lost: false };
  } catch (error) {
    if (!isBlobLost(error)) throw error;
    ports.log.warn("a list of clusters is lost, and made anew from their Syncs", { ...subject, key });
    return { members: await membersWithSyncs(subject, ports.table), lost: true };
  }
}

async function membersWithSyncs(subject: Subject, table: Table): Promise<readonly StoredMember[]> {
  const clusters = new Set<string>();
  for (const { sort } of await stateEntries(subject, table)) {
    const entry = stateIndex.parse(sort);
    if (entry !== undefined && entry.state !== "Orphaned" && entry.state !== "Gone") clusters.add(entry.cluster);
  }
  const uids = new Map((await readFleet(table)).clusters.map(({ name, uid }) => [name, uid]));
  return [...clusters].sort().map((cluster) => ({ cluster, uid: uids.get(cluster) ?? "", stage: 0, inputs: [] }));
}
