import type { TickPorts } from "#functions/tick/claim-due.ts";
import { readFleetVersions } from "#shared/adapters/fleet-versions.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { compareText } from "#shared/base/text-order.ts";
import { zoneOf, zoneOfEntry } from "#shared/fleet/rows/cluster-entry.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { versionsText } from "#shared/fleet/rows/fleet-version.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { StatedReason } from "#shared/fleet/rows/stated-reason.ts";
import { silenceUpdate, type ZoneRow } from "#shared/fleet/rows/zone-row.ts";
import { isOfServiceAway } from "#shared/kube/engine/credential-codes.ts";

export type ZonesPorts = Pick<TickPorts, "table" | "clock" | "metrics"> & {
  /** The zones of the installation besides `home`. */
  readonly zones?: ReadonlySet<string>;
  /** The zones whose queues did not take the last message. */
  readonly deafZones?: () => ReadonlySet<string>;
};

/** Zones that account for their unreachable clusters: their workers get no messages, do not run, or reach none of them. */
export type TroubledZones = ReadonlySet<string>;

/** Longer than the time between two tries of a cluster that does not answer. */
const idleSeconds = 600;
const clustersAtOnce = 100;
const queriesAtOnce = 10;
/** The server was not reached at all. */
const noAnswer: StatedReason = "Unreachable";
/** Reasons that the API server itself gives. Others, such as `RoleDenied`, say nothing about the way to it. */
const answersItself: ReadonlySet<string> = new Set([
  "IdentityMismatch",
  "Unauthorized",
] satisfies readonly StatedReason[]);

/**
 * Finds zones whose workers reach none of their clusters, notes that in the zone's row, and reports it. One cluster that
 * answers is enough for a zone, and is asked first the next time: only a zone without such a cluster has all its rows read.
 * The clusters of zones are remembered for as long as nobody writes to the fleet's directory.
 * A zone whose queue takes no messages is reported likewise.
 */
export function zonesSurvey(ports: ZonesPorts): () => Promise<TroubledZones> {
  const { table, clock, metrics, zones = new Set(), deafZones = () => new Set() } = ports;
  const memory: Memory = { witnesses: new Map() };
  return async () => {
    if (zones.size === 0) return new Set();
    const found = await table.getMany([...zones].map(keys.zone), { newer: "kept" });
    const rows = new Map(found.flatMap((row) => (row.type === "Zone" ? [[keyText(row), row] as const] : [])));
    const silent = await silentZones(zones, memory, ports);
    const deaf = deafZones();
    const troubled = new Set([...silent.keys(), ...deaf]);
    for (const zone of zones) {
      const row = rows.get(keyText(keys.zone(zone)));
      const since = silent.get(zone);
      if (since !== undefined || deaf.has(zone)) metrics.count("SilentZones", 1, { zone });
      if (row !== undefined && row.silentSince !== since) await table.update(silenceUpdate(zone, since));
      if (isIdle(row, clock.now())) troubled.add(zone);
    }
    return troubled;
  };
}

function isIdle(row: ZoneRow | undefined, now: Date): boolean {
  return row === undefined || later(row.workedAt, idleSeconds) <= now.toISOString();
}

/** The names of the clusters of each zone, and the versions of the directory in which they were read. */
interface Members {
  /** Absent where a row of a newer version hides them: the directory is then read each time. */
  readonly versions?: string;
  readonly byZone: ReadonlyMap<string, readonly string[]>;
}

/** A sandbox remembers this from one survey to the next. */
interface Memory {
  /** By zone, a cluster that has answered. */
  readonly witnesses: Map<string, string>;
  members?: Members;
}

/** Since when no cluster of a zone answers, by zone. */
async function silentZones(
  zones: ReadonlySet<string>,
  memory: Memory,
  { table }: ZonesPorts,
): Promise<ReadonlyMap<string, string>> {
  const { witnesses } = memory;
  const asked = [...zones].flatMap((zone) => witnesses.get(zone) ?? []);
  const known = (await clustersOf(asked, table)).filter(answers);
  const isKnown = async (zone: string) => {
    const witness = known.filter((row) => row.name === witnesses.get(zone) && zoneOf(row) === zone);
    return (await firstChecked(witness, table)) !== undefined;
  };
  const sure = await Promise.all([...zones].map(isKnown));
  const unsure = [...zones].filter((_zone, index) => sure[index] !== true);
  if (unsure.length === 0) return new Map();
  memory.members = await membersSince(memory.members, { zones, table });
  const silent = new Map<string, string>();
  for (const zone of unsure) {
    const names = memory.members.byZone.get(zone) ?? [];
    const since = await silentSince(names, { table, found: (witness) => witnesses.set(zone, witness) });
    if (since !== undefined) silent.set(zone, since);
  }
  return silent;
}

/** Reads the directory only when its versions show that somebody has written to it. */
async function membersSince(
  before: Members | undefined,
  { zones, table }: { readonly zones: ReadonlySet<string>; readonly table: ZonesPorts["table"] },
): Promise<Members> {
  const rows = await readFleetVersions(table);
  const versions = rows === undefined ? undefined : versionsText(rows);
  if (before !== undefined && versions !== undefined && before.versions === versions) return before;
  const byZone = new Map<string, string[]>([...zones].map((zone) => [zone, []]));
  for await (const row of allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start })))
    if (row.type === "Fleet") byZone.get(zoneOfEntry(row))?.push(row.name);
  return { byZone, ...defined({ versions }) };
}

/** @returns undefined when one of the clusters answers, and when the network was in the way of none. */
async function silentSince(
  names: readonly string[],
  { table, found }: Pick<ZonesPorts, "table"> & { readonly found: (witness: string) => void },
): Promise<string | undefined> {
  const lost: { readonly name: string; readonly since: string }[] = [];
  const answering: ClusterRow[] = [];
  const hasWitness = async (clusters: readonly ClusterRow[]) => {
    const witness = await firstChecked(clusters, table);
    if (witness !== undefined) found(witness.name);
    return witness !== undefined;
  };
  for (const part of inParts(names, clustersAtOnce)) {
    const rows = await clustersOf(part, table);
    const before = answering.length;
    answering.push(...rows.filter(answers));
    if (await hasWitness(answering.slice(before, queriesAtOnce))) return undefined;
    for (const row of rows) {
      const condition = reachable(row);
      if (condition?.status === "False" && isUnanswered(condition.reason))
        lost.push({ name: row.name, since: condition.since });
    }
  }
  // A query for each cluster without Syncs is worth it only when others are lost.
  if (lost.length === 0 || (await hasWitness(answering.slice(queriesAtOnce)))) return undefined;
  const latestFirst = lost.toSorted((a, b) => compareText(b.since, a.since));
  return (await firstChecked(latestFirst, table))?.since;
}

/** Nobody asks a cluster without Syncs: what its row says about it may be old. */
async function firstChecked<Named extends { readonly name: string }>(
  clusters: readonly Named[],
  table: ZonesPorts["table"],
): Promise<Named | undefined> {
  for (const part of inParts(clusters, queriesAtOnce)) {
    const found = await Promise.all(part.map(({ name }) => hasSyncs(name, table)));
    const checked = part.find((_cluster, index) => found[index]);
    if (checked !== undefined) return checked;
  }
  return undefined;
}

async function hasSyncs(cluster: string, table: ZonesPorts["table"]): Promise<boolean> {
  const syncs = allItems((start) => table.query({ ...ranges.syncsOn(cluster), limit: 1, newer: "kept", ...start }));
  for await (const _one of syncs) return true;
  return false;
}

async function clustersOf(names: readonly string[], table: ZonesPorts["table"]): Promise<readonly ClusterRow[]> {
  const rows = await table.getMany(names.map(keys.cluster), { newer: "kept" });
  return rows.filter((row) => row.type === "Cluster");
}

function reachable({ status }: ClusterRow) {
  return status.conditions.find(({ type }) => type === "Reachable");
}

/** A cluster that refuses a token, or that is another one than expected, answers. */
function answers(row: ClusterRow): boolean {
  const condition = reachable(row);
  return condition?.status === "True" || (condition?.status === "False" && answersItself.has(condition.reason));
}

/** Nothing came back from the way to the cluster. A service of AWS is asked from the same network. */
function isUnanswered(reason: string): boolean {
  return reason === noAnswer || isOfServiceAway(reason);
}
