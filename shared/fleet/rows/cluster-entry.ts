/** A Cluster as it counts: what people write goes before what was discovered. */
import { defined } from "#shared/base/defined.ts";
import { canonicalJson } from "#shared/base/json.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import { versionLabel } from "#shared/fleet/kinds/own-labels.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { clusterSchema } from "#shared/fleet/rows/needed-schema.ts";
import { type ClusterRow, type FleetRow, incarnationOf } from "#shared/fleet/rows/object-rows.ts";
import { type ServedNames, servesName } from "#shared/fleet/served-names.ts";

type Texts = Readonly<Record<string, string>>;

interface Labelled extends Pick<ClusterRow, "labels" | "discovered"> {
  readonly spec?: Pick<ClusterSpec, "kubeVersion">;
}

/** With the version of Kubernetes that somebody wrote down, where nobody looks it up. */
export function clusterLabels({ labels, spec, discovered }: Labelled): Texts {
  const version = spec?.kubeVersion;
  return { ...(version === undefined ? {} : { [versionLabel]: version }), ...discovered?.labels, ...labels };
}

/** How it is reached, and its values. */
export function specOf({ spec, discovered }: Pick<ClusterRow, "spec" | "discovered">): ClusterSpec {
  if (discovered === undefined || spec.endpoint !== undefined) return spec;
  const { arn, access, values } = discovered;
  return {
    ...spec,
    eks: spec.eks ?? { arn },
    ...(spec.access === undefined && access === undefined ? {} : { access: { ...access, ...spec.access } }),
    values: { ...values, ...spec.values },
  };
}

/** The zone whose workers reach it. */
export function zoneOf(row: Pick<ClusterRow, "spec" | "discovered">): string {
  return specOf(row).access?.zone ?? homeZone;
}

/** Its entry in the fleet's directory. */
export function fleetRow(row: ClusterRow): FleetRow {
  const { eks, values = {} } = specOf(row);
  const zone = zoneOf(row);
  const discoveredValues = Object.keys(values).filter((name) => !Object.hasOwn(row.spec.values ?? {}, name));
  return {
    ...keys.fleet(row.name),
    type: "Fleet",
    schema: clusterSchema(row),
    version: row.version,
    name: row.name,
    uid: incarnationOf(row),
    labels: clusterLabels(row),
    values,
    ...(discoveredValues.length === 0 ? {} : { discoveredValues }),
    ...defined({ arn: eks?.arn }),
    ...(zone === homeZone ? {} : { zone }),
  };
}

export function zoneOfEntry({ zone = homeZone }: Pick<FleetRow, "zone">): string {
  return zone;
}

export interface ServingZones {
  /** The zones of the installation besides `home`. */
  readonly zones?: ReadonlySet<string>;
  readonly servedNames?: ServedNames;
}

/**
 * The zone whose workers get the messages about the cluster: those of `home` report a zone that was removed, and one that
 * does not serve the cluster's name.
 */
export function servingZone(
  entry: Pick<FleetRow, "zone" | "name">,
  { zones = new Set(), servedNames = new Map() }: ServingZones,
): string {
  const zone = zoneOfEntry(entry);
  return zones.has(zone) && servesName(servedNames, zone, entry.name) ? zone : homeZone;
}

/** Everything that the entry says. An entry of the same text is not written again. */
export function entryText({ schema, uid, labels, values, discoveredValues, arn, zone }: FleetRow): string {
  return canonicalJson([schema, uid, labels, values, discoveredValues ?? [], arn ?? "", zone ?? homeZone]);
}
