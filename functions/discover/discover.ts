import { askClusters } from "#functions/discover/ask-clusters.ts";
import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { beginScan, endScan } from "#functions/discover/discovery-writes.ts";
import { findNames } from "#functions/discover/find-names.ts";
import { dropForgotten, forgetClusters } from "#functions/discover/forget-clusters.ts";
import { lookerOf, placeText, seePlaces } from "#functions/discover/see-places.ts";
import { type ClusterWrite, writeClusters } from "#functions/discover/write-clusters.ts";
import { everyOwner, ownersTaking } from "#shared/adapters/concerned-owners.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { become, type Scan } from "#shared/fleet/discovery/described-cluster.ts";
import { failedDiscoveryStatus, type ScanResult, scannedStatus } from "#shared/fleet/discovery/discovery-status.ts";
import { isForgottenToday, isOverdue, planForgetting } from "#shared/fleet/discovery/gone.ts";
import { planScan, type SeenPlace } from "#shared/fleet/discovery/plan-scan.ts";
import type { DiscoveryRow, FoundRow, RefusedCluster } from "#shared/fleet/rows/discovery-rows.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { InvocationContext } from "#shared/lambda/sqs-handler.ts";
import type { Write } from "#shared/ports.ts";

/** Part of an invocation's time that is kept for writing the result. */
const reservedShare = 0.3;

/**
 * Scans the accounts and regions of a ClusterDiscovery, and writes the result as the `discovered` half of Clusters.
 * Lists name the clusters and their tags. EKS is asked about a single cluster when the cluster is new, when its tags have
 * changed, when no list has it, and once a day. A cluster or a place that cannot be seen stays as it is.
 *
 * A failure of an account is written into the row; only a failure of the table or the queue is thrown.
 */
export async function discover(name: string, ports: DiscoverPorts, context: InvocationContext): Promise<void> {
  const begun = await beginScan(name, context.getRemainingTimeInMillis(), ports);
  if (begun === undefined) return;
  const { row: started, isAfterDeath } = begun;
  // A scan that died may have written clusters and informed no planner.
  const reported = isAfterDeath ? "everybody" : "those concerned";
  const given = context.getRemainingTimeInMillis();
  const hasTime = () => context.getRemainingTimeInMillis() > given * reservedShare;
  const scanned = await scan(started, { hasTime, reported, ports });
  if ("code" in scanned) {
    ports.log.warn("no look was possible", { kind: "ClusterDiscovery", name, ...scanned });
    return endScan(
      started,
      { settle: (fresh) => failedDiscoveryStatus(fresh, scanned, ports.clock.now()), again: false },
      ports,
    );
  }
  const settle = (fresh: DiscoveryRow) => scannedStatus(fresh, scanned.result, ports.clock.now());
  return endScan(started, { settle, again: scanned.isLeft }, ports);
}

interface ScanContext {
  readonly hasTime: () => boolean;
  readonly reported: "those concerned" | "everybody";
  readonly ports: DiscoverPorts;
}

type Scanned =
  | { readonly result: ScanResult; readonly isLeft: boolean }
  | { readonly code: string; readonly message: string };

async function scan(row: DiscoveryRow, { hasTime, reported, ports }: ScanContext): Promise<Scanned> {
  const { table, clock } = ports;
  const looker = lookerOf(row, ports.installation);
  const seen = await attempt(() => seePlaces(row, { looker, hasTime }, ports));
  if ("code" in seen) return seen;
  const known = await knownClusters(ports);
  const orphaned = await orphanedBy(known, { own: row.name, seen: seen.places }, ports);
  const now = clock.now();
  const { zonesOfVpcs, served } = ports;
  const about = { discovery: row.name, generation: row.generation, spec: row.spec, zonesOfVpcs, served, now };
  const plan = planScan({ ...about, known, orphaned, seen: seen.places });
  const names = await findNames(plan.candidates, table);
  const asked = await askClusters(names.candidates, { looker, hasTime }, ports);
  const refused: RefusedCluster[] = [...plan.refused, ...names.refused, ...plan.others.map(foundByAnother)];
  const writes: ClusterWrite[] = [];
  const parametersIn = new Map(seen.places.map((place) => [placeText(place), place.parameters]));
  for (const { candidate, description } of asked.answers) {
    const before = names.registered.get(candidate.name);
    const { accountId: account, region } = candidate.eks;
    const parameters = parametersIn.get(placeText({ account, region }));
    const became = become(candidate, description, { scan: about, before, parameters });
    if (became.is === "refused") refused.push(became.refused);
    if (became.is === "found") writes.push({ ...became, before, foundBefore: candidate.found });
    if (became.is === "noted") {
      const { found, goneSince } = became;
      // A cluster that was gone and exists again, with other tags, is no longer gone.
      const { goneSince: _before, ...discovered } = before?.discovered ?? {};
      const gone = "by" in discovered ? { discovered: { ...discovered, ...defined({ goneSince }) } } : {};
      writes.push({ found, before, foundBefore: candidate.found, ...gone });
    }
  }
  const written = await writeClusters(writes, ports);
  if (reported === "everybody") await ports.sender.send(await everyOwner(table));
  else if (written.clusters.length > 0) await ports.sender.send(await ownersTaking(written.clusters, table));
  const after = new Map([...known, ...written.found.map((found) => [found.arn, found] as const)]);
  const { own, ...forgetting } = await forgetGone(after, { row, about, orphaned, answered: written.found }, ports);
  return {
    isLeft: asked.left > 0 || seen.resume !== undefined,
    result: {
      accounts: seen.accounts,
      unseen: [...seen.unseen, ...asked.unseen],
      refused,
      refusedTags: own.flatMap(({ cluster, refusedTags = [] }) => refusedTags.map((each) => ({ cluster, ...each }))),
      refusedValues: own.flatMap(({ cluster, refusedValues = [] }) =>
        refusedValues.map((each) => ({ cluster, ...each })),
      ),
      refusedParameters: own.flatMap(({ parameters }) => parameters?.refused ?? []),
      clusters: {
        found: own.length,
        unselected: own.filter(({ unselected }) => unselected === true).length,
        gone: own.filter(({ goneSince }) => goneSince !== undefined).length,
      },
      ...forgetting,
      failed: written.failed,
      resume: seen.resume,
    },
  };
}

/**
 * Forgets clusters that have been gone for long enough, as this scan confirmed, and finishes earlier scans that broke off.
 * @param after - what every ClusterDiscovery has found by now, by ARN.
 */
async function forgetGone(
  after: ReadonlyMap<string, FoundRow>,
  scan: {
    readonly row: DiscoveryRow;
    readonly about: Scan;
    readonly orphaned: ReadonlySet<string>;
    readonly answered: readonly FoundRow[];
  },
  ports: DiscoverPorts,
): Promise<Pick<ScanResult, "forgotten" | "forgetting" | "kept"> & { readonly own: readonly FoundRow[] }> {
  const { spec, now, discovery } = scan.about;
  const rows = [...after.values()];
  const own = rows.filter(({ by }) => by === discovery);
  const overdue = scan.answered.filter((found) => isOverdue(found, spec, now));
  const forgetting = planForgetting(own, overdue, { spec, now });
  const open = own.filter(({ forgotten }) => forgotten?.open === true);
  const { found, kept } = await forgetClusters(forgetting.now, { open, desired: stillDesired(scan.row) }, ports);
  await dropForgotten(
    rows.filter(({ by }) => by === discovery || scan.orphaned.has(by)),
    ports,
  );
  const byArn = new Map([...own, ...found].map((row) => [row.arn, row]));
  const all = [...byArn.values()];
  return {
    own: all.filter((row) => row.forgotten === undefined),
    forgotten: all.filter((row) => isForgottenToday(row, now)),
    forgetting,
    kept,
  };
}

/** Reads the spec again, because people who switch forgetting off, or delete the ClusterDiscovery, do not wait for a scan to end. */
function stillDesired({ name, uid, generation }: DiscoveryRow): Write {
  const when = [
    { attribute: "uid", equals: uid },
    { attribute: "generation", equals: generation },
  ];
  return { check: keys.discovery(name), when };
}

async function attempt<T extends object>(
  work: () => Promise<T>,
): Promise<T | { readonly code: string; readonly message: string }> {
  try {
    return await work();
  } catch (error) {
    return { code: errorCode(error), message: errorMessage(error) };
  }
}

/** The found clusters of every ClusterDiscovery, by ARN. Rows that only a newer version can read are left alone. */
async function knownClusters({ table }: DiscoverPorts): Promise<ReadonlyMap<string, FoundRow>> {
  const rows = allItems((start) => table.query({ ...ranges.found, ...start }));
  return new Map((await Array.fromAsync(rows)).map((row) => [row.arn, row]));
}

/** Names of clusters that no longer exist, but still have an observation or something to drop. */
async function orphanedBy(
  known: ReadonlyMap<string, FoundRow>,
  { own, seen }: { readonly own: string; readonly seen: readonly SeenPlace[] },
  { table }: DiscoverPorts,
): Promise<ReadonlySet<string>> {
  const listed = seen.flatMap(({ clusters = [] }) => clusters.flatMap((arn) => known.get(arn) ?? []));
  const forgotten = [...known.values()].filter((found) => found.forgotten !== undefined);
  const others = new Set([...listed, ...forgotten].map(({ by }) => by).filter((by) => by !== own));
  if (others.size === 0) return others;
  const rows = await table.getMany([...others].map(keys.discovery), { newer: "kept" });
  for (const row of rows) others.delete(isNewer(row) ? keys.discovery.read(row).name : row.name);
  return others;
}

function foundByAnother({ arn, by, cluster }: FoundRow): RefusedCluster {
  const message = `ClusterDiscovery ${by} has found it before, as ${cluster}: leave it out of one of them`;
  return { arn, reason: "FoundByAnother", message };
}
