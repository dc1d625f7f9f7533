import type { Row } from "#shared/fleet/rows/row.ts";

/** What a holder works at. */
export interface Begun {
  /** `namespace/name` */
  readonly sync: string;
  /** What was wanted of it. */
  readonly wants: string;
  /** Nothing else was begun in the invocation. */
  readonly alone: boolean;
}

/** Who works on a cluster. Kept when nobody does, for its numbers. */
export interface LeaseRow extends Row {
  readonly type: "Lease";
  readonly fence: number;
  readonly wanted: number;
  readonly owner?: string;
  readonly leaseUntil?: string;
  /** Kept while it is held: who finds it on a lease that was not given back knows where its holder died. */
  readonly begun?: Begun;
  /** The holder failed, and lives. */
  readonly failed?: true;
}
