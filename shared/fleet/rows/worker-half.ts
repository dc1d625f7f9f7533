import { defined } from "#shared/base/defined.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** What the cluster's worker writes of a Sync's row; the rest is the planner's, or people's. */
type WorkerHalf = {
  readonly [Field in "observed" | "held" | "deaths"]: SyncRow[Field] | undefined;
};

/** The row with another half of the worker's. Whoever puts one together says all of it: none is forgotten, or left over. */
export function withWorkerHalf(row: SyncRow, { observed, held, deaths }: WorkerHalf): SyncRow {
  const { observed: _observed, held: _held, deaths: _deaths, ...kept } = row;
  return {
    ...kept,
    ...defined({ observed, held, deaths }),
  };
}
