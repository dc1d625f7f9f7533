/** Adds and lifts freezes, in the one row that every worker reads before it writes to a cluster. */

import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { labelSelection } from "#functions/api/request/label-selection.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { requireLater } from "#functions/api/write/require-later.ts";
import { audit, sendSideBySide } from "#functions/api/write/write-object.ts";
import { everyOwner } from "#shared/adapters/concerned-owners.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict, StarlingError } from "#shared/base/errors.ts";
import { type FreezeObject, freezeObject } from "#shared/fleet/api/freeze-object.ts";
import { matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { later } from "#shared/fleet/rows/due.ts";
import {
  type Freeze,
  type FreezesRow,
  freezeStateAmong,
  isInForce,
  type LiftedFreeze,
} from "#shared/fleet/rows/freezes-row.ts";
import { clusterOfKey, keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";

/** Number of freezes at once: every worker reads all of them before each write. */
const maxFreezes = 50;
/**
 * Seconds for which a lifted freeze is kept, because deadlines that began before it do not count its time; no deadline
 * is longer.
 */
const keptDays = 7;
const maxTries = 6;

export interface FreezeAnswer {
  readonly outcome: "created" | "configured" | "unchanged" | "deleted";
  readonly freeze: FreezeObject;
  /** Freezes in force that still cover some of the clusters that one was lifted from. */
  readonly held?: { readonly clusters: number; readonly by: readonly string[] };
}

export interface FreezeRequest {
  readonly name: string;
  /** A label selector in text; when absent, every cluster. */
  readonly clusters: string | undefined;
  readonly until: string | undefined;
  readonly caller: Caller & { readonly reason: string };
}

/** @throws StarlingError `BadRequest`, `Conflict` when a freeze of that name covers other clusters. */
export async function freeze(ports: ApiPorts, request: FreezeRequest): Promise<FreezeAnswer> {
  const { name, until, caller } = request;
  const now = ports.clock.now();
  const clusters = labelSelection(request.clusters);
  requireLater(until, now, "to freeze until a thaw");
  const desired: Freeze = {
    name,
    ...defined({ clusters }),
    by: caller.principal,
    at: now.toISOString(),
    reason: caller.reason,
    ...defined({ until }),
  };
  const { before, after } = await change(ports, { verb: "freeze", name, caller }, (row) => {
    const { kept, lifted } = settled(row, now);
    const same = kept.find((one) => one.name === name);
    if (same === undefined && kept.length >= maxFreezes) {
      throw refusal("Conflict", `${maxFreezes} freezes are in force, which is the most; thaw one: ${namesOf(kept)}`);
    }
    if (same !== undefined && same.clusters?.text !== clusters?.text) {
      const covers = same.clusters === undefined ? "every cluster" : same.clusters.text;
      throw refusal("Conflict", `freeze ${name} covers ${covers} already; give this one another name`);
    }
    if (same !== undefined && same.until === until) return undefined;
    // The first person who froze stays recorded, whoever changes the end.
    const next = same === undefined ? desired : withUntil(same, until);
    return { freezes: [...kept.filter((one) => one !== same), next], lifted };
  });
  const now_ = after.freezes.find((one) => one.name === name) ?? desired;
  const was = before?.freezes.find((one) => one.name === name && isInForce(one, now));
  const covered = coveredBy(now_, await readFleet(ports));
  const answer = freezeObject(now_, { row: after, clusters: covered.length, now });
  if (after === before) return { outcome: "unchanged", freeze: answer };
  // Workers that wait for a freeze that is shorter now read it again.
  await report(ports, was === undefined ? [] : covered);
  return { outcome: was === undefined ? "created" : "configured", freeze: answer };
}

/** Lifts a freeze: the work that it held begins at once. @throws StarlingError `NotFound` */
export async function thaw(
  ports: ApiPorts,
  { name, caller }: { readonly name: string; readonly caller: Caller },
): Promise<FreezeAnswer> {
  const now = ports.clock.now();
  let gone: Freeze | undefined;
  const { after } = await change(ports, { verb: "thaw", name, caller }, (row) => {
    const { kept, lifted } = settled(row, now);
    gone = kept.find((one) => one.name === name);
    if (gone === undefined) {
      const known = kept.length === 0 ? "nothing is frozen" : `there are ${namesOf(kept)}`;
      throw refusal("NotFound", `there is no freeze ${name}; ${known}`);
    }
    const ended: LiftedFreeze = { ...gone, lifted: { by: caller.principal, at: now.toISOString() } };
    return { freezes: kept.filter((one) => one !== gone), lifted: [...lifted, ended] };
  });
  if (gone === undefined) throw new Error("a freeze was lifted that nobody found");
  const fleet = await readFleet(ports);
  const covered = coveredBy(gone, fleet);
  await report(ports, covered);
  const lifted = freezeObject(gone, { row: after, clusters: covered.length, now });
  return { outcome: "deleted", freeze: lifted, ...defined({ held: heldBy(after.freezes, { covered, fleet }) }) };
}

/** Freezes in force, the oldest first. */
export async function listFreezes(ports: ApiPorts): Promise<readonly FreezeObject[]> {
  const now = ports.clock.now();
  const row = await readFreezesRow(ports);
  const freezes = (row?.freezes ?? []).filter((one) => isInForce(one, now));
  if (row === undefined || freezes.length === 0) return [];
  const fleet = await readFleet(ports);
  return freezes
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .map((one) => freezeObject(one, { row, clusters: coveredBy(one, fleet).length, now }));
}

/** @throws StarlingError `FreezesUnreadable` */
async function readFreezesRow({ table }: Pick<ApiPorts, "table">): Promise<FreezesRow | undefined> {
  const row = await table.get(keys.freezeState);
  if (row === undefined) return undefined;
  const reading = freezeStateAmong([row]);
  if (!reading.ok) throw new StarlingError(reading.message, { code: "FreezesUnreadable", retry: "transient" });
  return { ...row, type: "Freezes", ...reading.freezeState };
}

type Halves = Pick<FreezesRow, "freezes" | "lifted">;

/** Reads, decides and writes under the version that was read, and writes the audit line. */
async function change(
  ports: ApiPorts,
  act: { readonly verb: string; readonly name: string; readonly caller: Caller },
  decide: (row: FreezesRow | undefined) => Halves | undefined,
): Promise<{ readonly before: FreezesRow | undefined; readonly after: FreezesRow }> {
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const before = await readFreezesRow(ports);
    const halves = decide(before);
    if (halves === undefined && before !== undefined) return { before, after: before };
    const version = (before?.version ?? 0) + 1;
    const after: FreezesRow = {
      ...keys.freezeState,
      type: "Freezes",
      schema: rowSchema,
      version,
      freezes: halves?.freezes ?? [],
      lifted: halves?.lifted ?? [],
    };
    try {
      await ports.table.write([{ put: after, when: before === undefined ? "absent" : { version: before.version } }]);
    } catch (error) {
      if (isConflict(error)) continue;
      throw error;
    }
    const { verb, name, caller } = act;
    audit(ports, { verb, caller, reference: { kind: "Freeze", name }, before: before?.version, after: version });
    return { before, after };
  }
  throw refusal("Conflict", `the freezes were being written by others ${maxTries} times in a row; try again`);
}

/** A freeze whose time has passed ended by itself; one that ended long ago is forgotten. */
function settled(row: FreezesRow | undefined, now: Date): { kept: readonly Freeze[]; lifted: readonly LiftedFreeze[] } {
  const freezes = row?.freezes ?? [];
  const over = freezes
    .filter((one) => !isInForce(one, now))
    .map((one): LiftedFreeze => ({ ...one, lifted: { by: one.by, at: one.until ?? one.at } }));
  const since = later(now, -keptDays * 24 * 3600);
  const lifted = [...(row?.lifted ?? []), ...over].filter((one) => one.lifted.at > since).slice(-maxFreezes);
  return { kept: freezes.filter((one) => isInForce(one, now)), lifted };
}

function withUntil({ until: _until, ...freeze }: Freeze, until: string | undefined): Freeze {
  return { ...freeze, ...defined({ until }) };
}

function namesOf(freezes: readonly Freeze[]): string {
  return freezes.map(({ name }) => name).join(", ");
}

interface Registered {
  readonly name: string;
  /** Absent when a newer version wrote the entry, so that the number is unknown. */
  readonly labels: FleetRow["labels"] | undefined;
}

async function readFleet({ table }: ApiPorts): Promise<readonly Registered[]> {
  const rows = allItems((start) => table.query({ ...ranges.fleet, newer: "kept", ...start }));
  return Array.fromAsync(rows, (row) => ({
    name: clusterOfKey(row),
    labels: isNewer(row) ? undefined : row.labels,
  }));
}

/** The registered clusters that the freeze covers now. */
function coveredBy({ clusters }: Freeze, fleet: readonly Registered[]): readonly string[] {
  const covered = ({ labels }: Registered) =>
    clusters === undefined || (labels !== undefined && matchesSelector(clusters.selector, labels));
  return fleet.filter(covered).map(({ name }) => name);
}

function heldBy(
  freezes: readonly Freeze[],
  { covered, fleet }: { readonly covered: readonly string[]; readonly fleet: readonly Registered[] },
): FreezeAnswer["held"] {
  const lifted = new Set(covered);
  const holding = freezes
    .map((one) => ({ name: one.name, clusters: coveredBy(one, fleet).filter((name) => lifted.has(name)) }))
    .filter(({ clusters }) => clusters.length > 0);
  if (holding.length === 0) return undefined;
  const held = new Set(holding.flatMap(({ clusters }) => clusters));
  return { clusters: held.size, by: holding.map(({ name }) => name) };
}

/** Messages are hints: a worker that misses one reads the freezes when its row is due. */
async function report(ports: ApiPorts, clusters: readonly string[]): Promise<void> {
  const messages: Message[] = [
    ...(await everyOwner(ports.table)),
    ...clusters.map((cluster) => ({ to: "apply", cluster }) as const),
  ];
  await sendSideBySide(ports, messages);
}
