import type { PlaceUse } from "#shared/fleet/rows/place-use.ts";
import type { Routine } from "#shared/fleet/rows/routine.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/**
 * A worker reads its rows again, before it writes to its cluster, when it read them longer ago than this. Until then it
 * relies on what it read: it may still write an assignment that was forgotten or paused meanwhile.
 */
export const believedSeconds = 15;

/** The work that the holder of a lease has begun. */
export interface Begun {
  /** `namespace/name` */
  readonly sync: string;
  /** The text of the Sync's assignment when the work began. */
  readonly desired: string;
  /** Its attempt then; absent in rows of older versions. */
  readonly attempt?: number;
  /** True when the invocation began no other Sync. */
  readonly alone: boolean;
  /** The holder may also have died at a later check: checks that find nothing new write nothing. */
  readonly routine?: true;
}

/** Says which worker holds a cluster, and when the cluster is checked next. The row stays without a holder, for its numbers. */
export interface LeaseRow extends Row {
  readonly type: "Lease";
  readonly fence: number;
  readonly desired: number;
  readonly owner?: string;
  readonly leaseUntil?: string;
  /** Present while the lease is held. On a lease that was not released, it shows where the holder died. */
  readonly begun?: Begun;
  /** True when the holder failed without dying. */
  readonly failed?: true;
  /** Absent when no Sync of the cluster is idle. The row is due for the routine while no worker holds it. */
  readonly routine?: Routine;
  /** Absent when the cluster has taken no time worth noting. */
  readonly use?: PlaceUse;
}
