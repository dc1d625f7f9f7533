import { allItems } from "#shared/base/all-pages.ts";
import { type ClusterToDescribe, collision, isNewcomer } from "#shared/fleet/discovery/plan-scan.ts";
import { specOf } from "#shared/fleet/rows/cluster-entry.ts";
import type { RefusedCluster } from "#shared/fleet/rows/discovery-rows.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, newerRowText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

export interface NamedCandidates {
  readonly candidates: readonly ClusterToDescribe[];
  /** Registered clusters, by name. */
  readonly registered: ReadonlyMap<string, ClusterRow>;
  readonly refused: readonly RefusedCluster[];
}

/**
 * Finds the clusters whose names are free, or are their own already. A cluster that people have registered keeps the name
 * that they gave it. The fleet is read only when a new cluster was found.
 */
export async function findNames(candidates: readonly ClusterToDescribe[], table: Table): Promise<NamedCandidates> {
  const isNew = candidates.some(isNewcomer);
  const byHand = isNew ? await registeredArns(table) : new Map<string, string>();
  const named = candidates.map((candidate) => {
    const name = isNewcomer(candidate) ? byHand.get(candidate.eks.arn) : undefined;
    return name === undefined ? candidate : { ...candidate, name };
  });
  const rows = await table.getMany(
    named.map(({ name }) => keys.cluster(name)),
    { newer: "kept" },
  );
  const registered = new Map(rows.filter((row) => row.type === "Cluster").map((row) => [row.name, row]));
  const unread = new Map(rows.filter(isNewer).map((row) => [clusterOfKey(row), newerRowText(row)]));
  const refused: RefusedCluster[] = [];
  const free = named.filter(({ name, eks: { arn } }) => {
    const message = unread.get(name);
    if (message !== undefined) refused.push({ arn, reason: "Unreadable", message });
    const other = registered.get(name);
    const isOther = other !== undefined && specOf(other).eks?.arn !== arn;
    if (isOther) refused.push(collision(arn, name, [addressOf(other)]));
    return message === undefined && !isOther;
  });
  return { candidates: free, registered, refused };
}

function addressOf(row: ClusterRow): string {
  const { eks, endpoint } = specOf(row);
  return `the Cluster at ${eks?.arn ?? endpoint?.server ?? "no address"}`;
}

/** The name of the Cluster at each ARN; where several Clusters have one ARN, the first. */
async function registeredArns(table: Table): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for await (const row of allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start }))) {
    if (row.type === "Fleet" && row.arn !== undefined && !found.has(row.arn)) found.set(row.arn, row.name);
  }
  return found;
}
