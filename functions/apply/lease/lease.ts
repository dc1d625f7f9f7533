/**
 * The lease on a cluster: one worker at a time, each with a fence higher than all before it. It is short and renewed by
 * its holder, so that a worker that died keeps nobody out for long. Whoever finds it taken says so by raising `desired`;
 * the holder sees that when it lets go, and looks for work once more.
 */

import { defined } from "#shared/base/defined.ts";
import { isConflict } from "#shared/base/errors.ts";
import { dueAttributes, later, timerAttributes } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Begun } from "#shared/fleet/rows/lease-row.ts";
import { isSlow, type PlaceUse } from "#shared/fleet/rows/place-use.ts";
import { nextRoutine, type Routine } from "#shared/fleet/rows/routine.ts";
import { type RowKeyOf, rowSchema } from "#shared/fleet/rows/row.ts";
import type { Precondition, RowUpdate, Table, Write } from "#shared/ports.ts";

/** A lease that nobody gave back is looked at so long after its end: clocks differ. */
const overdueSeconds = 5;

export interface Lease {
  readonly key: RowKeyOf<"Lease">;
  readonly owner: string;
  readonly fence: number;
  readonly desired: number;
  /** Who asks after this may have it. */
  readonly until: Date;
  /** As it was found. */
  readonly routine: Routine;
  /** As it was found; where the lease is let go, as it is left. */
  readonly use?: PlaceUse | undefined;
  /** Whoever had it before died with it. */
  readonly death?: { readonly begun?: Begun };
}

interface LeaseWish {
  readonly owner: string;
  readonly now: Date;
  readonly until: Date;
}

/** @returns undefined when another worker has it; that one has been told. */
export async function acquireLease(cluster: string, wish: LeaseWish, table: Table): Promise<Lease | undefined> {
  const given = await acquireUnless(() => false, { cluster, wish }, table);
  return given === "left" ? undefined : given;
}

/** @returns `slow` where nobody has it, and the cluster is to have a worker of the slow lane. */
export async function acquireInCommonLane(
  cluster: string,
  wish: LeaseWish,
  table: Table,
): Promise<Lease | "slow" | undefined> {
  const given = await acquireUnless((use) => isSlow(use, wish.now), { cluster, wish }, table);
  return given === "left" ? "slow" : given;
}

async function acquireUnless(
  isLeft: (use: PlaceUse | undefined) => boolean,
  { cluster, wish }: { readonly cluster: string; readonly wish: LeaseWish },
  table: Table,
): Promise<Lease | "left" | undefined> {
  const key = keys.lease(cluster);
  const isFree: Precondition = { attribute: "leaseUntil", absent: true };
  const free = await take(key, { wish, when: [isFree] }, table);
  if (free !== undefined) return isLeft(free.use) ? leaveAlone(free, table) : free;
  const found = await table.update({ update: key, set: { schema: rowSchema }, add: { desired: 1 } });
  const now = wish.now.toISOString();
  if (found.leaseUntil !== undefined && found.leaseUntil >= now) return undefined;
  // Who is to take it sees where its holder died.
  if (isLeft(found.use)) return "left";
  const given = await take(key, { wish, when: [isFree, { attribute: "leaseUntil", lessThan: now }] }, table);
  if (given === undefined || found.owner === undefined || found.failed === true) return given;
  return { ...given, death: defined({ begun: found.begun }) };
}

/** It has the timer that it had: nobody has looked. */
async function leaveAlone(lease: Lease, table: Table): Promise<"left"> {
  const when: Precondition[] = [{ attribute: "owner", equals: lease.owner }];
  await table.update({ update: lease.key, remove: holding, when });
  return "left";
}

async function take(
  key: RowKeyOf<"Lease">,
  { wish, when }: { readonly wish: LeaseWish; readonly when: readonly Precondition[] },
  table: Table,
): Promise<Lease | undefined> {
  const { owner, until } = wish;
  try {
    const row = await table.update({
      update: key,
      set: { type: "Lease", schema: rowSchema, owner, leaseUntil: until.toISOString() },
      add: { fence: 1, desired: 0, version: 1 },
      // Its timer stays, for whoever dies with it before anything was written.
      remove: note,
      // It may have been given before, and the answer was lost: the SDK asks again.
      when: [...when, { attribute: "owner", equals: owner }],
      any: true,
    });
    const { fence, desired, routine = {}, use } = row;
    return { key, owner, fence, desired, until, routine, ...defined({ use }) };
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

/** Goes with every write made under the lease. */
export function leaseCheck(lease: Lease): Write {
  return { check: lease.key, when: [{ attribute: "owner", equals: lease.owner }] };
}

/** The same, and says what is begun next: that costs what the check alone does. */
export function leaseNote(lease: Lease, begun: Begun): RowUpdate<"Lease"> {
  return { update: lease.key, set: { begun }, when: [{ attribute: "owner", equals: lease.owner }] };
}

/** The same, where nothing is begun after it: what has come to rest has no timer but the cluster's, which is yet to be set. */
export function leaseEnding(lease: Lease): RowUpdate<"Lease"> {
  return {
    update: lease.key,
    set: { ...overdue(lease, lease.until) },
    when: [{ attribute: "owner", equals: lease.owner }],
  };
}

/** Lets go until the routine's time has come, unless somebody wanted the lease meanwhile. */
export function leaseRelease(lease: Lease, routine: Routine): RowUpdate<"Lease"> {
  const { use } = lease;
  const when: Precondition[] = [
    { attribute: "owner", equals: lease.owner },
    { attribute: "desired", equals: lease.desired },
  ];
  const next = nextRoutine(keys.lease.read(lease.key).cluster, routine);
  const noUse = use === undefined ? ["use"] : [];
  const timer = next === undefined ? {} : { routine, ...dueAttributes(lease.key, next) };
  const noTimer = next === undefined ? ["routine", ...timerAttributes] : ["dispatches"];
  return {
    update: lease.key,
    set: { ...timer, ...defined({ use }) },
    remove: [...holding, ...noUse, ...noTimer],
    when,
  };
}

/** Lets go, whoever wants it. */
export async function abandonLease(lease: Lease, routine: Routine, table: Table): Promise<void> {
  try {
    await table.update({ ...leaseRelease(lease, routine), when: [{ attribute: "owner", equals: lease.owner }] });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/** What is begun in the cluster has to end before another one begins: a holder that fails says so, and keeps the lease. */
export async function tellFailure(lease: Lease, table: Table): Promise<void> {
  const when: Precondition[] = [{ attribute: "owner", equals: lease.owner }];
  await table.update({ update: lease.key, set: { failed: true }, when });
}

/**
 * Holds it for longer. From then on its own row is due at its end: who works for long may find, when it dies, that the
 * timers of its Syncs have gone far ahead. The first one costs nothing of that kind, as most looks end before.
 * @returns the lease, with what was wanted meanwhile; undefined when it is no longer ours.
 */
export async function renewLease(
  lease: Lease,
  { until, begun }: { readonly until: Date; readonly begun: Begun | undefined },
  table: Table,
): Promise<Lease | undefined> {
  const noted = begun === undefined ? {} : { begun };
  try {
    const row = await table.update({
      update: lease.key,
      set: { leaseUntil: until.toISOString(), ...noted, ...overdue(lease, until) },
      add: { desired: 0 },
      ...(begun === undefined ? { remove: ["begun"] } : {}),
      when: [{ attribute: "owner", equals: lease.owner }],
    });
    return { ...lease, desired: row.desired, until };
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

function overdue({ key }: Lease, until: Date) {
  return dueAttributes(key, later(until, overdueSeconds));
}

const note: readonly string[] = ["begun", "failed"];
const holding: readonly string[] = ["owner", "leaseUntil", ...note];
