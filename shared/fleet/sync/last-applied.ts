import { defined } from "#shared/base/defined.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";

/**
 * The row as if what was applied last were desired, and nobody had asked for anything: for checks while the newest
 * assignment may not begin. Requests stay pending.
 * @returns undefined when nothing was applied whole, or another attempt has begun since.
 */
export function asLastApplied(row: SyncRow): SyncRow | undefined {
  const { held: _held, operations: _operations, reconcile: _reconcile, ...kept } = row;
  const { desired, observed } = row;
  const applied = observed?.applied;
  if (desired.action === "orphan" || applied === undefined || applied.attempt !== observed?.attempt) return undefined;
  const { attempt, revision, renderDigest } = applied;
  const { handledReconcile } = observed;
  return {
    ...kept,
    desired: { ...desired, action: "apply", attempt, revision, renderDigest },
    ...defined({ reconcile: handledReconcile }),
  };
}
