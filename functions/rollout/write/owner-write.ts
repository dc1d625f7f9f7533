import { canonicalJson } from "#shared/base/json.ts";
import { ownerStatus, type StatusFacts } from "#shared/fleet/rollout/owner-status.ts";
import { due } from "#shared/fleet/rows/due.ts";
import { isUnplanned, type OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import type { Write } from "#shared/ports.ts";

/**
 * Part of every transaction of the planner: it writes the owner's status when that changed, and otherwise checks that
 * the owner is still as it was read. So a decision that was made before a suspend or a new spec is never written after
 * it.
 */
export function ownerWrite(row: OwnerRow, facts: StatusFacts): Write {
  const status = ownerStatus(row, facts);
  const { asOf: _new, ...changed } = status;
  const { asOf: _old, ...before } = row.status;
  const same = canonicalJson(changed) === canonicalJson(before);
  const key = { pk: row.pk, sk: row.sk };
  if (same && row.dueKey === undefined && !isUnplanned(row)) return { check: key, when: { version: row.version } };
  const next: OwnerRow = { ...due(row, undefined), status, version: row.version + 1 };
  return { put: next, when: { version: row.version } };
}
