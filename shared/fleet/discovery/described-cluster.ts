/** The consequence of EKS's answer about one cluster: pure. */
import { defined } from "#shared/base/defined.ts";
import { goneSince } from "#shared/fleet/discovery/gone.ts";
import { type Parameters, parametersFrom } from "#shared/fleet/discovery/parameters.ts";
import type { ClusterToDescribe } from "#shared/fleet/discovery/plan-scan.ts";
import {
  labelsFrom,
  matchesTags,
  type Tags,
  tagsThatMatter,
  valuesFrom,
} from "#shared/fleet/discovery/tagged-labels.ts";
import { discoveredZone, type ZonesOfVpcs } from "#shared/fleet/discovery/zone-of-vpc.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import type { FoundRow, RefusedCluster } from "#shared/fleet/rows/discovery-rows.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, Discovered } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { notServedText, type ServedNames, servesName } from "#shared/fleet/served-names.ts";

export interface Description {
  readonly status: string;
  readonly version: string;
  readonly tags: Tags;
  readonly createdAt?: string;
  /** Absent for a cluster outside of AWS, which EKS only lists. */
  readonly vpcId?: string;
}

/** The ClusterDiscovery that scans. */
export interface Scan {
  readonly discovery: string;
  readonly generation: number;
  readonly spec: ClusterDiscoverySpec;
  readonly zonesOfVpcs: ZonesOfVpcs;
  readonly served: ServedNames;
  readonly now: Date;
}

export type Become =
  | { readonly is: "found"; readonly found: FoundRow; readonly discovered: Discovered }
  /** The Cluster stays as it is, and only the known facts are written. */
  | { readonly is: "noted"; readonly found: FoundRow; readonly goneSince?: string }
  | { readonly is: "refused"; readonly refused: RefusedCluster }
  | { readonly is: "nothing" };

/** Clusters in these states cannot be reached yet, or any more. */
const unborn: ReadonlySet<string> = new Set(["CREATING", "PENDING"]);
const ended: ReadonlySet<string> = new Set(["DELETING", "FAILED"]);

/**
 * @param description - undefined when the account has no such cluster.
 * @param parameters - parameters of its account and region; undefined when they could not be read.
 */
export function become(
  { eks, name, found: stored }: ClusterToDescribe,
  description: Description | undefined,
  {
    scan,
    before,
    parameters,
  }: {
    readonly scan: Scan;
    readonly before: ClusterRow | undefined;
    readonly parameters: Parameters | undefined;
  },
): Become {
  const { spec, discovery, generation } = scan;
  // A forgotten cluster begins like a new one.
  const found = stored?.forgotten === undefined ? stored : undefined;
  const row: FoundRow = {
    ...keys.found(eks.arn),
    type: "Found",
    schema: rowSchema,
    version: (stored?.version ?? 0) + 1,
    arn: eks.arn,
    by: discovery,
    generation,
    cluster: name,
    tags: found?.tags ?? {},
    ...defined({ parameters: found?.parameters, vpcId: found?.vpcId, zone: found?.zone }),
    describedAt: scan.now.toISOString(),
    ...(stored?.by === discovery ? defined({ forgottenAt: stored.forgotten?.at ?? stored.forgottenAt }) : {}),
  };
  if (description === undefined) {
    if (found === undefined) return { is: "nothing" };
    const since = goneSince(found, spec, scan.now);
    return { is: "noted", found: { ...row, goneSince: since }, goneSince: since };
  }
  if (!matchesTags(spec.eks.tags, description.tags)) {
    return found === undefined ? { is: "nothing" } : { is: "noted", found: { ...row, unselected: true } };
  }
  if (found === undefined && ended.has(description.status)) return { is: "nothing" };
  if (found === undefined && unborn.has(description.status)) {
    const message = `EKS says that it is ${description.status}; it is registered when that is over`;
    return { is: "refused", refused: { arn: eks.arn, reason: "NotReady", message } };
  }
  const said = parametersFrom(spec, { eks, seen: parameters, before: found?.parameters });
  if (found === undefined && spec.values?.ssm !== undefined && said === undefined) {
    const message = `its parameters below ${spec.values.ssm.path} could not be read; it is registered when they are`;
    return { is: "refused", refused: { arn: eks.arn, reason: "ParametersUnseen", message } };
  }
  const { tags, version, createdAt, vpcId } = description;
  const zone = discoveredZone(spec, vpcId, scan.zonesOfVpcs);
  // A zone that people wrote into the Cluster goes before this one. A cluster that is there already reports it itself.
  const isNewThere = before?.spec.access?.zone === undefined && (found === undefined || found.zone !== zone);
  if (zone !== undefined && isNewThere && !servesName(scan.served, zone, name)) {
    const message = `its zone would be ${zone}, which ${notServedText(scan.served, zone, name)}`;
    return { is: "refused", refused: { arn: eks.arn, reason: "NameNotServed", message } };
  }
  const accepted = before?.discovered?.labels ?? {};
  const { labels, refused } = labelsFrom(spec, { eks, version, tags }, accepted);
  const tagged = valuesFrom(spec, tags, before?.discovered?.values ?? {});
  const discovered: Discovered = {
    by: discovery,
    arn: eks.arn,
    labels,
    values: { ...tagged.values, ...said?.values },
    ...((spec.access?.role ?? zone) === undefined ? {} : { access: defined({ role: spec.access?.role, zone }) }),
    ...defined({ createdAt }),
  };
  const notTaken = {
    ...(refused.length === 0 ? {} : { refusedTags: refused }),
    ...(tagged.refused.length === 0 ? {} : { refusedValues: tagged.refused }),
  };
  const { parameters: _parameters, zone: _zone, ...others } = row;
  const about = { tags: tagsThatMatter(spec, tags), vpcId: vpcId ?? "" };
  const seen = { ...about, ...notTaken, ...defined({ parameters: said, zone }) };
  return { is: "found", found: { ...others, ...seen }, discovered };
}
