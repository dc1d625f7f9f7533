/** Decides by the lists of a scan which clusters are new, and about which ones EKS has to be asked alone: pure. */

import { defined } from "#shared/base/defined.ts";
import { isOverdue, isToBeConfirmed, planForgetting } from "#shared/fleet/discovery/gone.ts";
import { type Parameters, parametersFrom, sameParameters } from "#shared/fleet/discovery/parameters.ts";
import { matchesTags, type Tags, tagsThatMatter } from "#shared/fleet/discovery/tagged-labels.ts";
import { discoveredZone, type ZonesOfVpcs } from "#shared/fleet/discovery/zone-of-vpc.ts";
import { type EksArn, parseEksArn } from "#shared/fleet/eks-arn.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import { clusterNameOf } from "#shared/fleet/kinds/cluster-name.ts";
import type { FoundRow, RefusedCluster } from "#shared/fleet/rows/discovery-rows.ts";
import { jittered, later } from "#shared/fleet/rows/due.ts";

/** One account in one region, as far as it was seen. */
export interface SeenPlace {
  readonly account: string;
  readonly region: string;
  /** ARNs of its clusters; absent when they were not listed. */
  readonly clusters?: readonly string[];
  /** Tags by ARN; absent when they could not be read. */
  readonly tags?: ReadonlyMap<string, Tags>;
  /** Absent when they could not be read, or are not configured. */
  readonly parameters?: Parameters;
}

/** A cluster that EKS is asked about alone, because a list has too little. */
export interface ClusterToDescribe {
  readonly eks: EksArn;
  /** The name that it has, or would have. */
  readonly name: string;
  /** Includes a record of a forgotten cluster. */
  readonly found?: FoundRow;
}

/** A new cluster: its name is still to be chosen. */
export function isNewcomer({ found }: ClusterToDescribe): boolean {
  return found === undefined || found.forgotten !== undefined;
}

export interface ScanPlan {
  readonly candidates: readonly ClusterToDescribe[];
  readonly refused: readonly RefusedCluster[];
  /** Clusters of other ClusterDiscoveries, by name. */
  readonly others: readonly FoundRow[];
}

export interface ScanFacts {
  readonly discovery: string;
  readonly generation: number;
  readonly spec: ClusterDiscoverySpec;
  /** Records of all ClusterDiscoveries. */
  readonly known: ReadonlyMap<string, FoundRow>;
  /** Deleted ClusterDiscoveries: another one may take over what they found. */
  readonly orphaned: ReadonlySet<string>;
  readonly seen: readonly SeenPlace[];
  readonly zonesOfVpcs: ZonesOfVpcs;
  readonly now: Date;
}

/** Seconds until a new version, or wrong tags of a list, are noticed. */
const describeEverySeconds = 86_400;

export function planScan(facts: ScanFacts): ScanPlan {
  const { known, seen, spec, discovery, orphaned } = facts;
  const others: FoundRow[] = [];
  const newcomers: Newcomer[] = [];
  const candidates: ClusterToDescribe[] = [];
  const listed = new Set<string>();
  for (const place of seen) {
    for (const arn of place.clusters ?? []) {
      const eks = parseEksArn(arn);
      if (eks === undefined || listed.has(arn)) continue;
      listed.add(arn);
      const found = known.get(arn);
      const isSelected = place.tags === undefined || matchesTags(spec.eks.tags, place.tags.get(arn) ?? {});
      const isOrphan = found !== undefined && found.by !== discovery && orphaned.has(found.by);
      if (found === undefined || found.forgotten !== undefined) {
        // Its forgetting has not finished.
        const isOpen = found?.forgotten?.open === true && !isOrphan;
        if (isSelected && !isOpen) newcomers.push({ eks, ...defined({ found }) });
      } else if (isOrphan) {
        if (isSelected) candidates.push({ eks, name: found.cluster, found });
      } else if (found.by !== discovery) {
        if (isSelected) others.push(found);
      } else if (isOther({ found, eks }, place, facts)) {
        candidates.push({ eks, name: found.cluster, found });
      }
    }
  }
  candidates.push(...missing(facts, listed));
  const { named, refused } = namesOf(spec.name, newcomers);
  return { candidates: [...candidates, ...named], refused, others };
}

/** Something about it may have changed since it was written. */
function isOther(
  { found, eks }: { readonly found: FoundRow; readonly eks: EksArn },
  place: SeenPlace,
  { spec, generation, zonesOfVpcs, now }: ScanFacts,
): boolean {
  if (found.generation !== generation || found.goneSince !== undefined || isStale(found, now)) return true;
  const isOut = found.unselected !== undefined;
  const before = found.parameters;
  if (!isOut && !sameParameters(before, parametersFrom(spec, { eks, seen: place.parameters, before }))) return true;
  const isUnplaced = found.vpcId === undefined && zonesOfVpcs.size > 0;
  if (!isOut && (isUnplaced || discoveredZone(spec, found.vpcId, zonesOfVpcs) !== found.zone)) return true;
  if (place.tags === undefined) return false;
  const tags = place.tags.get(eks.arn) ?? {};
  const isSelected = matchesTags(spec.eks.tags, tags);
  if (isSelected === isOut) return true;
  return isSelected && !sameTags(found.tags, tagsThatMatter(spec, tags));
}

function isStale({ describedAt, arn }: FoundRow, now: Date): boolean {
  return later(describedAt, jittered(describeEverySeconds, `${arn}${describedAt}`)) <= now.toISOString();
}

function sameTags(a: Tags, b: Tags): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}

/** Own clusters that are missing in the lists of listed places: EKS has to be asked about them. */
function missing(
  { seen, known, discovery, spec, now }: ScanFacts,
  listed: ReadonlySet<string>,
): readonly ClusterToDescribe[] {
  const places = new Set(
    seen.flatMap(({ account, region, clusters }) => (clusters === undefined ? [] : [`${account} ${region}`])),
  );
  const own = [...known.values()].filter(({ by }) => by === discovery);
  const overdue = own.filter((row) => isOverdue(row, spec, now));
  const desired = new Set([
    ...own.filter((row) => isToBeConfirmed(row, spec, now)),
    // An earlier scan has asked, and died before it forgot them.
    ...planForgetting(own, overdue, { spec, now }).now,
  ]);
  const found: ClusterToDescribe[] = [];
  for (const row of own) {
    const eks = parseEksArn(row.arn);
    if (eks === undefined || row.forgotten !== undefined || listed.has(row.arn)) continue;
    if (!places.has(`${eks.accountId} ${eks.region}`)) continue;
    const isKnownToBeOut = row.unselected === true || row.goneSince !== undefined;
    if (isKnownToBeOut && !isStale(row, now) && !desired.has(row)) continue;
    found.push({ eks, name: row.cluster, found: row });
  }
  return found;
}

interface Newcomer {
  readonly eks: EksArn;
  /** The cluster was forgotten. */
  readonly found?: FoundRow;
}

/** Two new clusters with one name both stay without it: nobody can know which one was meant. */
function namesOf(
  template: string,
  newcomers: readonly Newcomer[],
): { readonly named: readonly ClusterToDescribe[]; readonly refused: readonly RefusedCluster[] } {
  const refused: RefusedCluster[] = [];
  const byName = new Map<string, Newcomer[]>();
  for (const newcomer of newcomers) {
    const named = clusterNameOf(template, newcomer.eks);
    if (named.ok) byName.set(named.name, [...(byName.get(named.name) ?? []), newcomer]);
    else refused.push({ arn: newcomer.eks.arn, reason: "NameInvalid", message: named.message });
  }
  const named: ClusterToDescribe[] = [];
  for (const [name, clusters] of byName) {
    const [only] = clusters;
    const arns = clusters.map(({ eks }) => eks.arn);
    if (arns.length === 1 && only !== undefined) named.push({ ...only, name });
    else
      refused.push(
        ...arns.map((arn) =>
          collision(
            arn,
            name,
            arns.filter((each) => each !== arn),
          ),
        ),
      );
  }
  return { named, refused };
}

export function collision(arn: string, name: string, others: readonly string[]): RefusedCluster {
  const message = `its name would be ${name}, which is that of ${others.join(" and ")}, too: tell them apart in spec.name, or by eks.tags`;
  return { arn, reason: "NameCollision", message };
}
