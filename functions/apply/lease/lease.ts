/**
 * The lease on a cluster: one worker at a time, each with a higher fence than all before it. The lease is short and its
 * holder renews it, so that a worker that died blocks nobody for long. A worker that finds the lease taken raises
 * `desired`; the holder sees that when it releases the lease, and reads the work once more.
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

/** Seconds after the end of a lease that was not released until it is checked, because clocks differ. */
const overdueSeconds = 5;

export interface Lease {
  readonly key: RowKeyOf<"Lease">;
  readonly owner: string;
  readonly fence: number;
  readonly desired: number;
  /** A request after this time may take the lease. */
  readonly until: Date;
  /** The lease row as it was found. */
  readonly routine: Routine;
  /** The lease row as it was found, or, when the lease is released, as it is left. */
  readonly use?: PlaceUse | undefined;
  /** The holder before died with the lease. */
  readonly death?: { readonly begun?: Begun };
}

interface LeaseWish {
  readonly owner: string;
  readonly now: Date;
  readonly until: Date;
}

/** @returns undefined when another worker has the lease; that worker has been informed. */
export async function acquireLease(cluster: string, wish: LeaseWish, table: Table): Promise<Lease | undefined> {
  const given = await acquireUnless(() => false, { cluster, wish }, table);
  return given === "left" ? undefined : given;
}

/** @returns `slow` when the lease is free, but the cluster belongs to the slow lane. */
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
  // The next holder sees at which Sync this one died.
  if (isLeft(found.use)) return "left";
  const given = await take(key, { wish, when: [isFree, { attribute: "leaseUntil", lessThan: now }] }, table);
  if (given === undefined || found.owner === undefined || found.failed === true) return given;
  return { ...given, death: defined({ begun: found.begun }) };
}

/** The row keeps its timer, because nobody has checked the cluster. */
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
      // The timer stays, in case the holder dies before it has written anything.
      remove: note,
      // The lease may have been granted before, when the answer was lost and the SDK tried again.
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

/** The condition of every write under the lease. */
export function leaseCheck(lease: Lease): Write {
  return { check: lease.key, when: [{ attribute: "owner", equals: lease.owner }] };
}

/** The same condition, together with the next step of the worker: both cost one write. */
export function leaseNote(lease: Lease, begun: Begun): RowUpdate<"Lease"> {
  return { update: lease.key, set: { begun }, when: [{ attribute: "owner", equals: lease.owner }] };
}

/**
 * The same condition, when nothing begins after it: an idle cluster has only the timer of its row, which is not set
 * yet.
 */
export function leaseEnding(lease: Lease): RowUpdate<"Lease"> {
  return {
    update: lease.key,
    set: { ...overdue(lease, lease.until) },
    when: [{ attribute: "owner", equals: lease.owner }],
  };
}

/** Releases the lease until the next routine check, unless another worker wanted it meanwhile. */
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

/** Releases the lease, whoever wants it. */
export async function abandonLease(lease: Lease, routine: Routine, table: Table): Promise<void> {
  try {
    await table.update({ ...leaseRelease(lease, routine), when: [{ attribute: "owner", equals: lease.owner }] });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/**
 * A request to the cluster must end before another worker begins. A holder that fails records the failure and keeps the
 * lease.
 */
export async function reportFailure(lease: Lease, table: Table): Promise<void> {
  const when: Precondition[] = [{ attribute: "owner", equals: lease.owner }];
  await table.update({ update: lease.key, set: { failed: true }, when });
}

/**
 * Extends the lease. From then on the lease row is due at its end, because the timers of the Syncs may lie far in the
 * future when a long-running worker dies. The first extension costs no such write, since most checks end before.
 * @returns the lease, with the wish of other workers; undefined when the lease is lost.
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
