import { printTable } from "#cli/format/print-table.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";
import type { ApiList, ClusterObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { zoneOf } from "#shared/fleet/rows/cluster-entry.ts";
import { formatAge } from "#shared/words/age.ts";
import { silentZoneText } from "#shared/words/causes.ts";

export interface ZonesOptions {
  readonly cluster?: string;
  readonly group?: string;
  readonly selector?: string;
  readonly state?: string;
  readonly continue?: string;
  readonly watch?: boolean;
}

/** Flags of other lists. They have no effect here, so they are refused. */
const idleFlags = ["cluster", "group", "selector", "state", "continue", "watch"] as const;
const allOfThem = Number.MAX_SAFE_INTEGER;

/** A zone in the form of `-o json`. */
interface CountedZone extends ZoneObject {
  readonly clusters: { readonly total: number; readonly unreachable: number };
}

type Listed = ClusterObject | UnreadableObject<"Cluster">;

/** Lists the places from which clusters are reached, with the clusters of each. */
export async function getZones(session: Session, names: readonly string[], options: ZonesOptions): Promise<ExitReason> {
  const idle = idleFlags.find((flag) => options[flag] !== undefined);
  if (idle !== undefined) throw usageFailure(`--${idle} does not go with zones`, "starling get zones");
  const { items } = await session.api.call<ApiList<ZoneObject>>({ method: "GET", path: "/v1/zones" });
  const missing = names.find((name) => !items.some(({ metadata }) => metadata.name === name));
  if (missing !== undefined) throw noSuchZone(missing, items);
  const clusters = await readList<Listed>(session, { path: "/v1/clusters", limit: allOfThem });
  const counted = items
    .filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
    .map((zone) => withClusters(zone, clusters.items));
  print(session, counted);
  for (const zone of counted) noteSilence(session, zone);
  const lost = names.length === 0 ? lostText(items, clusters.items) : undefined;
  if (lost !== undefined) session.note(lost);
  return "done";
}

/** `rollout status` sends people here. */
function noteSilence(session: Session, { metadata: { name }, workers }: ZoneObject): void {
  if (workers?.silentSince === undefined) return;
  const what = silentZoneText(name, workers.silentSince);
  session.note(`ZoneSilent: ${what}; find the broken link: \`starling zone check ${name}\``);
}

/** Clusters whose zone was removed from the settings are in none of the lines. @returns undefined when there are none. */
function lostText(zones: readonly ZoneObject[], clusters: readonly Listed[]): string | undefined {
  const known = new Set(zones.map(({ metadata }) => metadata.name));
  const named = clusters.flatMap((cluster) => (isUnreadable(cluster) ? [] : [zoneOfObject(cluster)]));
  const lost = named.filter((zone) => !known.has(zone));
  if (lost.length === 0) return undefined;
  const each = [...Map.groupBy(lost, (zone) => zone)].map(([zone, those]) => `${zone} (${those.length})`).sort();
  const are = lost.length === 1 ? "cluster is" : "clusters are";
  return `${lost.length} ${are} in zones that the installation does not have: ${each.join(", ")}; add these zones to the setting zones and deploy, or give the clusters another zone: \`starling get clusters -o wide\``;
}

/** The failure for a name that no zone has. */
export function noSuchZone(name: string, zones: readonly ZoneObject[]): CliFailure {
  const names = zones.map(({ metadata }) => metadata.name);
  const message = `there is no zone ${name}${didYouMean(name, names)}; the zones are ${names.join(", ")}`;
  return new CliFailure(message, { exit: "no", next: "starling get zones" });
}

function withClusters(zone: ZoneObject, clusters: readonly Listed[]): CountedZone {
  const own = clusters.flatMap((cluster) =>
    !isUnreadable(cluster) && zoneOfObject(cluster) === zone.metadata.name ? [cluster] : [],
  );
  return { ...zone, clusters: { total: own.length, unreachable: own.filter(isUnreachable).length } };
}

/** The workers report the condition. In a zone that is down, only the planner says of a Sync that its cluster is unreachable. */
function isUnreachable({ status: { conditions, syncs } }: ClusterObject): boolean {
  return (
    conditions.some(({ type, status }) => type === "Reachable" && status === "False") ||
    (syncs?.others.some(({ state }) => state === "Unreachable") ?? false)
  );
}

/** The zone whose workers reach the cluster. */
export function zoneOfObject({ spec, status }: ClusterObject): string {
  const { discovered } = status;
  return zoneOf(discovered === undefined ? { spec } : { spec, discovered });
}

function print(session: Session, zones: readonly CountedZone[]): void {
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise({ kind: "ZoneList", metadata: {}, items: zones }, output));
    return;
  }
  if (output === "name") {
    for (const { metadata } of zones) session.io.out(`zone/${metadata.name}\n`);
    return;
  }
  const wide = output === "wide";
  const rows = zones.map((zone) => [
    zone.metadata.name,
    zone.network.type,
    zone.network.addresses.join(",") || "-",
    zone.workers?.version ?? "-",
    ranText(session, zone),
    String(zone.clusters.total),
    String(zone.clusters.unreachable),
    zone.readsSources === true ? "read" : "-",
    ...(wide ? [zone.account ?? "-", zone.region ?? "-", zone.clusterNames?.join(",") ?? "*"] : []),
  ]);
  const columns = ["NAME", "NETWORK", "ADDRESSES", "VERSION", "RAN", "CLUSTERS", "UNREACHABLE", "SOURCES"];
  if (wide) columns.push("ACCOUNT", "REGION", "NAMES");
  printTable(session, { columns, rows });
}

/** How long ago a worker of the zone last said that it runs. */
function ranText(session: Session, { workers }: ZoneObject): string {
  return workers === undefined ? "-" : formatAge(workers.ranAt, session.io.now());
}
