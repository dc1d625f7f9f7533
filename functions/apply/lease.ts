/**
 * The lease on a cluster: one worker at a time, each with a fence higher than all before it. Whoever finds it taken
 * says so by raising `wanted`; the holder sees that when it lets go, and looks for work once more.
 */
import { keys } from "#shared/domain/rows/keys.ts";
import { ROW_SCHEMA, type Row, type RowKey } from "#shared/domain/rows/row.ts";
import { isConflict } from "#shared/errors.ts";
import type { Condition, Table, Write } from "#shared/ports.ts";

export interface Lease {
  readonly key: RowKey;
  readonly owner: string;
  readonly fence: number;
  readonly wanted: number;
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
  try {
    const row = (await table.update({
      update: key,
      set: { type: "Lease", schema: ROW_SCHEMA, owner: wish.owner, leaseUntil: wish.until.toISOString() },
      add: { fence: 1, wanted: 0, version: 1 },
      when: [
        { attribute: "leaseUntil", absent: true },
        { attribute: "leaseUntil", lessThan: wish.now.toISOString() },
        // It was given before, and the answer was lost: the SDK asks again.
        { attribute: "owner", equals: wish.owner },
      ],
      any: true,
    })) as LeaseRow;
    return { key, owner: wish.owner, fence: row.fence, wanted: row.wanted };
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
  return { update: lease.key, remove: ["owner", "leaseUntil"], when };
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
 * Reads what was wanted meanwhile, keeping the lease.
 * @returns undefined when the lease is no longer ours.
 */
export async function renewWanted(lease: Lease, table: Table): Promise<Lease | undefined> {
  try {
    const row = (await table.update({
      update: lease.key,
      add: { wanted: 0 },
      when: [{ attribute: "owner", equals: lease.owner }],
    })) as LeaseRow;
    return { ...lease, wanted: row.wanted };
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}
