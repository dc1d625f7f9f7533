import type { PlaceUse } from "#shared/fleet/rows/place-use.ts";
import type { Routine } from "#shared/fleet/rows/routine.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/**
 * A worker reads its rows again after so long at the latest, before it writes to its cluster. Until then it believes what it
 * read: an assignment that was forgotten or paused meanwhile may still be written.
 */
export const believedSeconds = 15;

/** What a holder works at. */
export interface Begun {
  /** `namespace/name` */
  readonly sync: string;
  /** What was wanted of it. */
  readonly desired: string;
  /** Nothing else was begun in the invocation. */
  readonly alone: boolean;
  /** Or another one after it: looks that find nothing new write nothing, and so nothing tells them apart. */
  readonly routine?: true;
}

/** Who works on a cluster, and when it is looked at next. Kept when nobody works there, for its numbers, too. */
export interface LeaseRow extends Row {
  readonly type: "Lease";
  readonly fence: number;
  readonly desired: number;
  readonly owner?: string;
  readonly leaseUntil?: string;
  /** Kept while it is held: who finds it on a lease that was not given back knows where its holder died. */
  readonly begun?: Begun;
  /** The holder failed, and lives. */
  readonly failed?: true;
  /** Absent when nothing on the cluster is at rest. The row is due for it when nobody holds it. */
  readonly routine?: Routine;
  /** Absent when the cluster took no time worth remembering. */
  readonly use?: PlaceUse;
}
