/**
 * The lease on a cluster: one worker at a time, each with a fence higher than all before it. It is short and renewed by
 * its holder, so that a worker that died keeps nobody out for long. Whoever finds it taken says so by raising `wanted`;
 * the holder sees that when it lets go, and looks for work once more.
 */
import { dueAttributes, later } from "#shared/domain/rows/due.ts";
import { keys } from "#shared/domain/rows/keys.ts";
import { ROW_SCHEMA, type Row, type RowKey } from "#shared/domain/rows/row.ts";
import { isConflict } from "#shared/errors.ts";
import type { Condition, Table, Write } from "#shared/ports.ts";

/** A lease that nobody gave back is looked at so long after its end: clocks differ. */
const OVERDUE_SECONDS = 5;

export interface Lease {
  readonly key: RowKey;
  readonly owner: string;
  readonly fence: number;
  readonly wanted: number;
  /** Who asks after this may have it. */
  readonly until: Date;
}

interface LeaseRow extends Row {
  readonly fence: number;
  readonly wanted: number;
}

/** @returns undefined when another worker has it; that one has been told. */
export async function acquireLease(
  cluster: string,
  wish: { readonly owner: string; readonly now: Date; readonly until: Date },
  table: Table,
): Promise<Lease | undefined> {
  const key = keys.lease(cluster);
  const { owner, until } = wish;
  try {
    const row = (await table.update({
      update: key,
      set: { type: "Lease", schema: ROW_SCHEMA, owner, leaseUntil: until.toISOString() },
      add: { fence: 1, wanted: 0, version: 1 },
      remove: timer,
      when: [
        { attribute: "leaseUntil", absent: true },
        { attribute: "leaseUntil", lessThan: wish.now.toISOString() },
        // It was given before, and the answer was lost: the SDK asks again.
        { attribute: "owner", equals: owner },
      ],
      any: true,
    })) as LeaseRow;
    return { key, owner, fence: row.fence, wanted: row.wanted, until };
  } catch (error) {
    if (!isConflict(error)) throw error;
    await table.update({ update: key, add: { wanted: 1 } });
    return undefined;
  }
}

/** Goes with every write made under the lease. */
export function leaseCheck(lease: Lease): Write {
  return { check: lease.key, when: [{ attribute: "owner", equals: lease.owner }] };
}

/** Lets go, unless somebody wanted the lease meanwhile. */
export function leaseRelease(lease: Lease): Extract<Write, { update: RowKey }> {
  const when: Condition[] = [
    { attribute: "owner", equals: lease.owner },
    { attribute: "wanted", equals: lease.wanted },
  ];
  return { update: lease.key, remove: ["owner", "leaseUntil", ...timer], when };
}

/** Lets go, whoever wants it. */
export async function abandonLease(lease: Lease, table: Table): Promise<void> {
  const { update, remove } = leaseRelease(lease);
  try {
    await table.update({ update, remove: remove ?? [], when: [{ attribute: "owner", equals: lease.owner }] });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/**
 * Holds it for longer. From then on its own row is due at its end: who works for long may find, when it dies, that the
 * timers of its Syncs have gone far ahead. The first one costs nothing of that kind, as most looks end before.
 * @returns the lease, with what was wanted meanwhile; undefined when it is no longer ours.
 */
export async function renewLease(lease: Lease, until: Date, table: Table): Promise<Lease | undefined> {
  try {
    const row = (await table.update({
      update: lease.key,
      set: { leaseUntil: until.toISOString(), ...dueAttributes(lease.key, later(until, OVERDUE_SECONDS)) },
      add: { wanted: 0 },
      when: [{ attribute: "owner", equals: lease.owner }],
    })) as LeaseRow;
    return { ...lease, wanted: row.wanted, until };
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

const timer: readonly string[] = ["dueShard", "dueKey", "dispatches"];
