import { defined } from "#shared/base/defined.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/** The fields of a Sync's row that the cluster's worker writes. The planner and people write the others. */
type WorkerHalf = {
  readonly [Field in "observed" | "held" | "deaths"]: SyncRow[Field] | undefined;
};

/** The row with new fields of the worker. Callers must pass all three, so that none is forgotten or left over. */
export function withWorkerHalf(row: SyncRow, { observed, held, deaths }: WorkerHalf): SyncRow {
  const { observed: _observed, held: _held, deaths: _deaths, ...kept } = row;
  return {
    ...kept,
    ...defined({ observed, held, deaths }),
  };
}
