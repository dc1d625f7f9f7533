import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { everyOwner } from "#shared/adapters/concerned-owners.ts";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { forgetSyncs, requireForgettable } from "#shared/adapters/forget-syncs.ts";
import { errorCode, errorMessage, isConflict, StarlingError } from "#shared/base/errors.ts";
import { answeredAt, isForgottenToday } from "#shared/fleet/discovery/gone.ts";
import type { FoundRow, KeptCluster } from "#shared/fleet/rows/discovery-rows.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Write } from "#shared/ports.ts";

type Ports = Pick<DiscoverPorts, "table" | "clock" | "sender" | "log">;

export interface Forgotten {
  /** The rows as the table has them now. */
  readonly found: readonly FoundRow[];
  readonly kept: readonly KeptCluster[];
}

/**
 * Forgets clusters that are gone: it deletes the Cluster and leaves its objects, which are gone as well. One transaction
 * deletes the Cluster and its entry in the fleet's directory, and records the deletion. So the next scan finishes what a
 * function that dies leaves behind, and every forgotten cluster is counted.
 * @param open - clusters of earlier scans that did not finish.
 * @param wanted - checks that the ClusterDiscovery still has the spec that this scan uses.
 */
export async function forgetClusters(
  gone: readonly FoundRow[],
  { open, desired }: { readonly open: readonly FoundRow[]; readonly desired: Write },
  ports: Ports,
): Promise<Forgotten> {
  const found: FoundRow[] = [...open];
  const kept: KeptCluster[] = [];
  for (const row of gone) {
    const done = await removeInTries(row, desired, ports);
    if ("found" in done) found.push(done.found);
    if ("kept" in done) kept.push(done.kept);
  }
  const settled = await settleForgotten(
    found.filter(({ forgotten }) => forgotten?.open === true),
    ports,
  );
  const byArn = new Map([...found, ...settled].map((row) => [row.arn, row]));
  return { found: [...byArn.values()], kept };
}

type Removed = { readonly found: FoundRow } | { readonly kept: KeptCluster };

/** Number of tries against a cluster's worker, which writes its observations to the same row; the next scan may be hours away. */
const removalTries = 5;

async function removeInTries(row: FoundRow, desired: Write, ports: Ports): Promise<Removed> {
  for (let attempt = 1; ; attempt++) {
    const done = await removeCluster(row, desired, ports);
    const isOvertaken = "kept" in done && done.kept.reason === "Conflict";
    if (!isOvertaken || attempt === removalTries) return done;
  }
}

async function removeCluster(row: FoundRow, desired: Write, { table, clock, log }: Ports): Promise<Removed> {
  const { cluster: name, arn } = row;
  const now = clock.now().toISOString();
  const keep = (reason: KeptCluster["reason"], message: string): Removed => ({
    kept: { cluster: name, reason, message },
  });
  try {
    const syncs = await requireForgettable(table, name);
    const cluster = await table.get(keys.cluster(name));
    if (cluster?.spec.eks !== undefined) {
      return keep("RegisteredByHand", `somebody wrote it: starling delete cluster ${name} --cascade orphan`);
    }
    const when = { version: row.version };
    const next = { ...row, version: row.version + 1 };
    const answered = answeredAt(cluster, syncs);
    if (answered !== undefined && row.goneSince !== undefined && answered > row.goneSince) {
      const found: FoundRow = { ...next, goneSince: now };
      await table.write([{ put: found, when }]);
      return { found };
    }
    const found: FoundRow = { ...next, forgotten: { at: now, open: true } };
    const own = cluster?.discovered?.arn === arn ? cluster : undefined;
    const deletions =
      own === undefined
        ? []
        : [{ delete: { pk: own.pk, sk: own.sk }, when: { version: own.version } }, { delete: keys.fleet(name) }];
    await writeWithFleet(table, [{ put: found, when }, desired, ...deletions]);
    const about = { kind: "ClusterDiscovery", name: row.by, cluster: name, arn };
    log.info("a cluster is forgotten", { ...about, goneSince: row.goneSince });
    return { found };
  } catch (error) {
    if (isConflict(error)) return keep("Conflict", "somebody else wrote it just now; the next scan tries again");
    if (errorCode(error) === "NewerRow") return keep("NewerRow", errorMessage(error));
    throw error;
  }
}

/**
 * Drops the assignments of forgotten clusters, and informs the owners that planned with them. When another cluster has
 * been registered under the name, the assignments may belong to it, and the planner distinguishes the two.
 */
async function settleForgotten(open: readonly FoundRow[], ports: Ports): Promise<readonly FoundRow[]> {
  if (open.length === 0) return [];
  const { table, sender } = ports;
  const done: FoundRow[] = [];
  for (const row of open) {
    const others = await table.getMany([keys.fleet(row.cluster)], { newer: "kept" });
    if (others.length > 0 || (await isForgotten(row, ports))) done.push(row);
  }
  await sender.send(await everyOwner(table));
  const settled: FoundRow[] = [];
  for (const row of done) {
    const { forgotten } = row;
    if (forgotten === undefined) continue;
    const next: FoundRow = { ...row, version: row.version + 1, forgotten: { at: forgotten.at } };
    if (await written(() => table.write([{ put: next, when: { version: row.version } }]))) settled.push(next);
  }
  return settled;
}

/** @returns false when other writers win every time; the next scan tries again. */
async function isForgotten({ cluster }: FoundRow, ports: Ports): Promise<boolean> {
  try {
    await forgetSyncs(ports, cluster, "the next scan tries again");
    return true;
  } catch (error) {
    if (error instanceof StarlingError && (error.code === "Conflict" || error.code === "NewerRow")) return false;
    throw error;
  }
}

/** Rows that were kept only for the limit on forgetting, and are older than the limit needs. */
export async function dropForgotten(rows: readonly FoundRow[], { table, clock }: Ports): Promise<void> {
  const now = clock.now();
  for (const row of rows) {
    if (row.forgotten === undefined || row.forgotten.open === true || isForgottenToday(row, now)) continue;
    await written(() => table.write([{ delete: keys.found(row.arn), when: { version: row.version } }]));
  }
}

/** @returns false when another writer was faster. */
async function written(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}
